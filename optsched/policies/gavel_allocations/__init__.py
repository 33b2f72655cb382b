"""Gavel's allocation rules: what share of its time a job should spend on each GPU type. One a file, by Gavel's names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

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
class ActiveJobs:
    """The jobs that a rule divides the cluster among, in order of (arrival, index): m jobs, T types.

    ``ids`` i64[m] names them over time; ``rate`` f64[m, T] units of work a second of the whole gang, 0 where it may not
    run; ``gang`` i64[m] GPUs; ``weight`` f64[m]; ``elapsed`` f64[m] seconds since arrival; ``left`` f64[m] units of work
    (of rules that are clairvoyant, else nan); ``time_left`` f64[m] seconds to the due date, inf without one.
    """

    ids: Ints
    rate: Floats
    gang: Ints
    weight: Floats
    elapsed: Floats
    left: Floats
    time_left: Floats

    def agnostic(self, reference: Ints | None = None) -> ActiveJobs:
        """The same jobs as a rule sees them that knows no differences between types.

        Every type is as fast as the first of ``reference`` (positions of types, the preferred one first) where the job
        may run; rate 1 when there is no reference. As in Gavel also where a job may not run: it may be given time there
        that it cannot use.
        """
        if reference is None:
            return replace(self, rate=np.ones_like(self.rate))
        ordered = self.rate[:, reference]
        first = ordered[np.arange(len(ordered)), (ordered > 0).argmax(axis=1)]
        return replace(self, rate=np.repeat(first[:, None], self.rate.shape[1], axis=1))

    def some(self, rows: Ints) -> ActiveJobs:
        """A part of them."""
        return ActiveJobs(
            self.ids[rows],
            self.rate[rows],
            self.gang[rows],
            self.weight[rows],
            self.elapsed[rows],
            self.left[rows],
            self.time_left[rows],
        )


class AllocationRule(ABC):
    """A rule of one run, without memory at first. ``InputError`` when it needs what ``setting`` does not say.

    ``knowledge``: what it must be told of the jobs. ``aware``: it knows that types differ in speed; the round mechanism
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


def equal_share(capacity: Floats) -> Floats:
    """X^equal_r = c_r / sum c, f64[T]: the same row for every job; it sums to 1."""
    share: Floats = capacity / capacity.sum()
    return share


def isolated_share(gang: Ints, capacity: Floats) -> Floats:
    """X^iso_mr = (c_r / m) / gang_m, rows scaled down to a sum of at most 1: a 1/m-th of the cluster for each, f64[m, T]."""
    share: Floats = capacity[None, :] / (gang.size * gang[:, None])
    return share / np.maximum(1.0, share.sum(axis=1, keepdims=True))
