"""`max_min_fairness_perf`: heterogeneity-aware max-min fairness (least attained service, LAS)."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting
from optsched.policies.gavel_allocations.fair_rates import FairRates
from optsched.simulation.policy import Floats


@ALLOCATIONS.register("max_min_fairness_perf")
class MaxMinFairnessPerf(AllocationRule):
    """max min_m (gang_m / w_m) thr_m(X) / thr_m(X^equal): one small program, warm."""

    def __init__(self, setting: Setting) -> None:
        self._fair = FairRates(setting.capacity)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        return self._fair.shares(jobs)
