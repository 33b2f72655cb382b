"""`max_min_fairness_water_filling`: water filling that takes all GPU types for equally fast."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting
from optsched.policies.gavel_allocations.fair_rates import FairRates
from optsched.simulation.policy import Floats


@ALLOCATIONS.register("max_min_fairness_water_filling")
class MaxMinFairnessWaterFilling(AllocationRule):
    """As `max_min_fairness_water_filling_perf` with rate 1 on every type."""

    aware = False

    def __init__(self, setting: Setting) -> None:
        self._fair = FairRates(setting.capacity, fill=True)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        return self._fair.shares(jobs.agnostic())
