"""`min_cost`: the most throughput for the money."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting
from optsched.policies.gavel_allocations.total_worth import TotalWorth, costs_of
from optsched.simulation.policy import Floats


@ALLOCATIONS.register("min_cost")
class MinCost(AllocationRule):
    """max sum_mr (T_mr / cost_r) X_mr."""

    def __init__(self, setting: Setting) -> None:
        self._total = TotalWorth(setting.capacity, costs_of("min_cost", setting))

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        return self._total.shares(jobs)
