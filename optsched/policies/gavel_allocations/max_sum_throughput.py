"""`max_sum_throughput_perf`: the largest total number of iterations a second."""

from __future__ import annotations

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, Setting
from optsched.policies.gavel_allocations.analytic_centre import centred
from optsched.policies.gavel_allocations.max_min_fairness import alike
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.problem.arrays import Floats


@ALLOCATIONS.register("max_sum_throughput_perf")
class MaxSumThroughputPerf(AllocationRule):
    """max sum_m thr_m(X): not fair, a job with slow iterations may get nothing."""

    def __init__(self, setting: Setting) -> None:
        self._capacity = setting.capacity
        self._program = ShareProgram(setting.capacity, total=True)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """Return X f64[m, T]; classes of equal jobs keep the throughput of one optimum.

        Parameters
        ----------
        jobs
            Active jobs.
        """
        of, first = alike(jobs)
        few, copies = jobs.some(first), np.bincount(of).astype(np.float64)
        keys = [row.tobytes() for row in np.column_stack([few.rate, few.gang, few.weight])]
        slots = self._program.open(keys, few.rate, copies * few.gang)
        self._program.reward(slots, copies[:, None] * few.rate)
        shares = self._program.solved(slots)[0]
        reached = (few.rate * shares).sum(axis=1)
        return centred(shares, few.rate, reached, copies * few.gang, copies, self._capacity)[of]
