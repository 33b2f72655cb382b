"""Finish-time fairness: nobody's finish, against its finish on a share of its own, later than it must be."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting, reference_order
from optsched.policies.gavel_allocations.isolated_time import IsolatedTime
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Knowledge


@ALLOCATIONS.register("finish_time_fairness_perf")
class FinishTimeFairnessPerf(AllocationRule):
    """min max_m (elapsed_m + left_m / thr_m(X)) / (isolated so far_m + left_m / thr_m(X^iso)), after Themis (NSDI 2020).

    Fractional programming on one live program (`level_search`) instead of a bisection.
    """

    knowledge = Knowledge.CLAIRVOYANT

    def __init__(self, setting: Setting) -> None:
        self._search = LevelSearch(setting.capacity)
        self._isolated = IsolatedTime(setting.capacity)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]; the ratio reached is kept as ``ratio``."""
        shares, self.ratio = self._search.least(jobs, jobs.elapsed, self._isolated.at(jobs))
        return self._search.centred(shares, jobs, jobs.elapsed, self._isolated.finish, self.ratio)


@ALLOCATIONS.register("finish_time_fairness")
class FinishTimeFairness(FinishTimeFairnessPerf):
    """As `finish_time_fairness_perf` with the speed of V100 GPUs (P100, K80, another where there are none) on every type."""

    aware = False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._reference = reference_order(setting.types)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        return super().shares(jobs.agnostic(self._reference))
