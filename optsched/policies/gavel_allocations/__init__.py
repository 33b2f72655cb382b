"""Gavel's allocation rules: what share of its time a job should spend on each GPU type. One a file, by Gavel's names."""

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
    """What does not change during a run: T GPU types, ``capacity`` f64[T] GPUs of each."""

    types: tuple[str, ...]
    capacity: Floats


class AllocationRule(ABC):
    """A rule of one run, without memory at first. ``InputError`` when it needs what ``setting`` does not say.

    ``knowledge``: what it must know of the jobs. ``aware``: it knows that types differ in speed; the round mechanism
    serves the types in a fixed order then, else in a random one.
    """

    knowledge: ClassVar[Knowledge] = Knowledge.NON_CLAIRVOYANT
    aware: ClassVar[bool] = True

    @abstractmethod
    def __init__(self, setting: Setting) -> None:
        """Before the first jobs arrive."""

    @abstractmethod
    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]: X >= 0, rows sum to at most 1, sum_m gang_m X_mr <= capacity_r. Every job has a type with rate > 0.

        Asked at every recomputation, in the order of time.
        """


ALLOCATIONS: Registry[type[AllocationRule]] = Registry(
    "allocation policy", package="optsched.policies.gavel_allocations"
)
REFERENCE = ("v100", "p100", "k80")  # whose speed stands for every type's where a rule knows no differences


def reference_order(types: tuple[str, ...], order: tuple[str, ...] = REFERENCE) -> Ints:
    """Positions of ``types``: those that ``order`` names first, in its order, then the others, the fastest device first.

    Jobs backfill types in this order, so that a fast one must not come last only because nobody named it.
    """
    place = {name: float(i) for i, name in enumerate(order)}
    keys = [(place.get(name.lower(), math.inf), -performance_ratio(name) if is_known(name) else 0.0) for name in types]
    return np.array(sorted(range(len(types)), key=keys.__getitem__), dtype=np.int64)
