"""`max_min_fairness_water_filling_perf`: max-min fairness also beyond the bottleneck."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting
from optsched.policies.gavel_allocations.fair_rates import FairRates
from optsched.simulation.policy import Floats


@ALLOCATIONS.register("max_min_fairness_water_filling_perf")
class MaxMinFairnessWaterFillingPerf(AllocationRule):
    """The lexicographic maximum of the normalised throughputs, smallest first."""

    def __init__(self, setting: Setting) -> None:
        self._fair = FairRates(setting.capacity, fill=True)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        return self._fair.shares(jobs)
