"""`max_sum_throughput_perf`: the largest sum of throughputs."""

from __future__ import annotations

import numpy as np

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting
from optsched.policies.gavel_allocations.total_worth import TotalWorth
from optsched.simulation.policy import Floats


@ALLOCATIONS.register("max_sum_throughput_perf")
class MaxSumThroughputPerf(AllocationRule):
    """max sum_mr T_mr X_mr: steps of different models count alike, so small models win."""

    def __init__(self, setting: Setting) -> None:
        self._total = TotalWorth(setting.capacity, np.ones(setting.capacity.size))

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        return self._total.shares(jobs)
