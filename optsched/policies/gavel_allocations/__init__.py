"""Gavel's allocation rules: what share of its time a job should spend on each GPU type. One a file, by Gavel's names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs
from optsched.problem.arrays import Floats, Ints
from optsched.registry import Registry
from optsched.simulation.policy import Knowledge
from optsched.speeds.device_performance import is_known, performance_ratio


@dataclass(frozen=True)
class Setting:
    """What does not change during a run: T GPU types, ``capacity`` f64[T] GPUs of each, ``costs`` of a GPU-hour by type."""

    types: tuple[str, ...]
    capacity: Floats
    seed: int = 0
    costs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class JobClasses:
    """Jobs that a rule may treat alike, counted together: some sixty classes stand for any number of jobs.

    ``keys`` of k classes; ``of`` i64[m] the class of every job; ``first`` i64[k] a job of each; ``copies`` f64[k].
    """

    keys: list[Hashable]
    of: Ints
    first: Ints
    copies: Floats

    @classmethod
    def alike(cls, jobs: ActiveJobs) -> JobClasses:
        """Same rates, gang and weight; in the order of these. As `numpy.unique` by rows, in a fifth of the time."""
        rows = np.column_stack([jobs.rate, jobs.gang, jobs.weight])
        order = np.lexsort(rows.T[::-1])
        new = np.ones(order.size, dtype=np.bool_)
        new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
        of = np.empty_like(order)
        of[order] = np.cumsum(new) - 1
        first = order[new]
        return cls([rows[i].tobytes() for i in first], of, first, np.bincount(of).astype(np.float64))

    @classmethod
    def single(cls, jobs: ActiveJobs) -> JobClasses:
        """Every job a class of its own."""
        every = np.arange(jobs.ids.size)
        return cls(jobs.ids.tolist(), every, every, np.ones(jobs.ids.size))


class AllocationRule(ABC):
    """A rule of one run, without memory at first. ``InputError`` when it needs what ``setting`` does not say.

    ``knowledge``: what it must know of the jobs. ``aware``: it knows that types differ in speed; the round mechanism
    serves the types in a fixed order then, else in a random one. ``strict``: a job without a share does not run even where
    GPUs are idle.
    """

    knowledge: ClassVar[Knowledge] = Knowledge.NON_CLAIRVOYANT
    aware: ClassVar[bool] = True
    strict: ClassVar[bool] = False

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
