"""`min_cost_slo`: the most throughput for the money among the allocations that meet all due dates."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting
from optsched.policies.gavel_allocations.total_worth import TotalWorth, costs_of
from optsched.simulation.policy import Floats, Knowledge


@ALLOCATIONS.register("min_cost_slo")
class MinCostSlo(AllocationRule):
    """As `min_cost` with thr_m(X) >= left_m / time_left_m for every job with a due date ahead.

    Where that is infeasible: without these constraints, as Gavel does.
    """

    knowledge = Knowledge.CLAIRVOYANT

    def __init__(self, setting: Setting) -> None:
        self._total = TotalWorth(setting.capacity, costs_of("min_cost_slo", setting), deadlines=True)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        return self._total.shares(jobs)
