"""`finish_time_fairness`: finish-time fairness that takes all GPU types for as fast as a V100."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting, reference_order
from optsched.policies.gavel_allocations.finish_time_fairness_perf import FinishTimeFairnessPerf
from optsched.simulation.policy import Floats, Knowledge


@ALLOCATIONS.register("finish_time_fairness")
class FinishTimeFairness(AllocationRule):
    """As `finish_time_fairness_perf` with the speed of V100 GPUs (P100, K80, another where there are none) on every type."""

    knowledge = Knowledge.CLAIRVOYANT
    aware = False

    def __init__(self, setting: Setting) -> None:
        self._aware = FinishTimeFairnessPerf(setting)
        self._reference = reference_order(setting.types)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        return self._aware.shares(jobs.agnostic(self._reference))
