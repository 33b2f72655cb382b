"""Finish-time fairness: nobody's finish, against its finish on a share of its own, later than it must be."""

from __future__ import annotations

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs, isolated_rate
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, Setting, reference_order
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Knowledge


class IsolatedTime:
    """How long jobs would have taken on a share of their own, in Gavel's form.

    Remembers, between two recomputations, what was left of every job and its isolated throughput then.
    """

    def __init__(self, capacity: Floats) -> None:
        self._capacity = capacity
        self._so_far = np.zeros(0)
        self._left = np.full(0, np.nan)
        self._rate = np.ones(0)
        self.finish = np.zeros(0)

    def at(self, jobs: ActiveJobs) -> Floats:
        """D_m, f64[m]: seconds for the work done (at the isolated throughputs of its time) and for the work left."""
        n = int(jobs.ids.max(initial=-1)) + 1
        if n > self._so_far.size:
            more = max(n, 2 * self._so_far.size) - self._so_far.size
            self._so_far = np.concatenate([self._so_far, np.zeros(more)])
            self._left = np.concatenate([self._left, np.full(more, np.nan)])
            self._rate = np.concatenate([self._rate, np.ones(more)])
        j = jobs.ids
        known = ~np.isnan(self._left[j])
        done = np.where(known, self._left[j] - jobs.left, 0.0)
        self._so_far[j] += np.maximum(done, 0.0) / self._rate[j]
        self._left[j] = jobs.left
        self._rate[j] = isolated_rate(jobs, self._capacity)
        self.finish = self._so_far[j] + jobs.left / self._rate[j]
        return self.finish


@ALLOCATIONS.register("finish_time_fairness_perf")
class FinishTimeFairnessPerf(AllocationRule):
    """min max_m (elapsed_m + left_m / thr_m(X)) / (isolated so far_m + left_m / thr_m(X^iso)), after Themis (NSDI 2020).

    Fractional programming on one live program (`level_search`) instead of a bisection.
    """

    knowledge = Knowledge.CLAIRVOYANT

    def __init__(self, setting: Setting) -> None:
        self._search = LevelSearch(setting.capacity)
        self._reference = None if self.aware else reference_order(setting.types)
        self._isolated = IsolatedTime(setting.capacity)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]; the ratio reached is kept as ``ratio``."""
        if self._reference is not None:
            jobs = jobs.agnostic(self._reference)
        shares, self.ratio = self._search.least(jobs, jobs.elapsed, self._isolated.at(jobs))
        return self._search.centred(shares, jobs, jobs.elapsed, self._isolated.finish, self.ratio)


@ALLOCATIONS.register("finish_time_fairness")
class FinishTimeFairness(FinishTimeFairnessPerf):
    """As `finish_time_fairness_perf` with the speed of V100 GPUs (P100, K80, another where there are none) on every type."""

    aware = False
