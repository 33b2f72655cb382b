"""Finish-time fairness: minimise the largest ratio of a job's finish to its finish on a share of its own."""

from __future__ import annotations

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs, isolated_rate
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, Setting, reference_order
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Knowledge


@ALLOCATIONS.register("finish_time_fairness_perf")
class FinishTimeFairnessPerf(AllocationRule):
    """min max_m (elapsed_m + left_m / thr_m(X)) / (isolated so far_m + left_m / thr_m(X^iso)).

    After Themis (NSDI 2020). Fractional programming on one live program (`level_search`) instead of a bisection.
    """

    knowledge = Knowledge.CLAIRVOYANT

    def __init__(self, setting: Setting) -> None:
        self._search = LevelSearch(setting.capacity)
        self._reference = None if self.aware else reference_order(setting.types)
        # of every job at the last call: seconds so far on a share of its own, work left, rate on that share
        self._last: dict[int, tuple[float, float, float]] = {}

    def shares(self, jobs: ActiveJobs) -> Floats:
        """Return X f64[m, T]; the ratio reached is kept as ``ratio``.

        Parameters
        ----------
        jobs
            Active jobs.
        """
        if self._reference is not None:
            jobs = jobs.agnostic(self._reference)
        isolated = self.isolated(jobs)
        shares, self.ratio = self._search.least(jobs, jobs.elapsed, isolated)
        return self._search.centred(shares, jobs, jobs.elapsed, isolated, self.ratio)

    def isolated(self, jobs: ActiveJobs) -> Floats:
        """Return the time of each job on a share of its own, in Gavel's form, D_m f64[m] seconds.

        It is the time for the work done, at the isolated throughputs then, plus the time for the work left.

        Parameters
        ----------
        jobs
            Active jobs.
        """
        finish = np.empty(jobs.ids.size)
        rates = isolated_rate(jobs, self._search.program.capacity).tolist()
        for k, (j, left, rate) in enumerate(zip(jobs.ids.tolist(), jobs.left.tolist(), rates, strict=True)):
            so_far, before, then = self._last.get(j, (0.0, left, 1.0))
            so_far += max(before - left, 0.0) / then
            self._last[j] = so_far, left, rate
            finish[k] = so_far + left / rate
        return finish


@ALLOCATIONS.register("finish_time_fairness")
class FinishTimeFairness(FinishTimeFairnessPerf):
    """`finish_time_fairness_perf` with the speed of V100 GPUs (else P100, K80, another) on every type."""

    aware = False
