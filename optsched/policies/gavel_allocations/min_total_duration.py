"""`min_total_duration`: the makespan rule that takes all GPU types for as fast as a V100."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting, reference_order
from optsched.policies.gavel_allocations.min_total_duration_perf import MinTotalDurationPerf
from optsched.simulation.policy import Floats, Knowledge


@ALLOCATIONS.register("min_total_duration")
class MinTotalDuration(AllocationRule):
    """As `min_total_duration_perf` with the speed of V100 GPUs (P100, K80, another where there are none) on every type."""

    knowledge = Knowledge.CLAIRVOYANT
    aware = False

    def __init__(self, setting: Setting) -> None:
        self._aware = MinTotalDurationPerf(setting)
        self._reference = reference_order(setting.types)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        return self._aware.shares(jobs.agnostic(self._reference))
