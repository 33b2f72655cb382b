"""Gavel's allocation rules: the share of time of a job on each GPU type. One a file, by Gavel's names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs
from optsched.problem.arrays import Floats, Ints
from optsched.registry import Registry
from optsched.simulation.policy import Knowledge
from optsched.speeds.throughput_sources import is_known, performance_ratio


@dataclass(frozen=True)
class Setting:
    """The part of the input that is constant in a run: T GPU types, ``capacity`` f64[T] GPUs of each."""

    types: tuple[str, ...]
    capacity: Floats


class AllocationRule(ABC):
    """An allocation rule of one run; ``InputError`` if it needs a fact that ``setting`` does not state.

    ``knowledge``: facts about jobs that it must know. ``aware``: it knows that types differ in speed; the round
    mechanism then serves the types in a fixed order, otherwise in a random one.

    Parameters
    ----------
    setting
        GPU types of the cluster and their numbers of GPUs.
    """

    knowledge: ClassVar[Knowledge] = Knowledge.NON_CLAIRVOYANT
    aware: ClassVar[bool] = True

    @abstractmethod
    def __init__(self, setting: Setting) -> None:
        """Prepare the rule before the first jobs arrive."""

    @abstractmethod
    def shares(self, jobs: ActiveJobs) -> Floats:
        """Return X f64[m, T]: X >= 0, rows sum to at most 1, sum_m gang_m X_mr <= capacity_r.

        Called at every recomputation, in the order of time.

        Parameters
        ----------
        jobs
            Active jobs; every job has a type with rate > 0.
        """


ALLOCATIONS: Registry[type[AllocationRule]] = Registry(
    "allocation policy", package="optsched.policies.gavel_allocations"
)
# The first of these in the cluster gives the speed of all types to a rule that knows no differences.
REFERENCE = ("v100", "p100", "k80")


def reference_order(types: tuple[str, ...], order: tuple[str, ...] = REFERENCE) -> Ints:
    """Return the positions of ``types``: those in ``order`` first, then the others, the fastest device first.

    Jobs backfill types in this order, so a fast type must not come last only because ``order`` does not list it.

    Parameters
    ----------
    types
        GPU types of the cluster.
    order
        Types that come first, in lower case.
    """
    place = {name: float(i) for i, name in enumerate(order)}
    keys = [(place.get(name.lower(), math.inf), -performance_ratio(name) if is_known(name) else 0.0) for name in types]
    return np.array(sorted(range(len(types)), key=keys.__getitem__), dtype=np.int64)
