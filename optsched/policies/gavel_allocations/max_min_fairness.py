"""Max-min fairness (least attained service, LAS): maximise the least normalised throughput.

    max min_m  (gang_m / w_m) thr_m(X) / thr_m(X^equal)

Jobs that some optimum treats alike are one slot of the program (`alike`): some sixty slots for any number of jobs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs, level_rates
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, Setting
from optsched.policies.gavel_allocations.analytic_centre import centred
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.problem.arrays import Floats, Ints


def alike(jobs: ActiveJobs) -> tuple[Ints, Ints]:
    """Divide jobs into classes of equal rates, gang and weight, in the order of these.

    Like `numpy.unique` by rows, in a fifth of the time.

    Parameters
    ----------
    jobs
        Active jobs.

    Returns
    -------
    tuple
        Class of every job i64[m], a job of each class i64[k].
    """
    rows = np.column_stack([jobs.rate, jobs.gang, jobs.weight])
    order = np.lexsort(rows.T[::-1])
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    of = np.empty_like(order)
    of[order] = np.cumsum(new) - 1
    return of, order[new]


@ALLOCATIONS.register("max_min_fairness_perf")
class MaxMinFairnessPerf(AllocationRule):
    """max min_m (gang_m / w_m) thr_m(X) / thr_m(X^equal), aware of types: one small program, warm."""

    def __init__(self, setting: Setting) -> None:
        self.capacity = setting.capacity
        self.program = ShareProgram(setting.capacity)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """Return X f64[m, T].

        Parameters
        ----------
        jobs
            Active jobs.
        """
        if not self.aware:
            jobs = jobs.agnostic()
        if not (jobs.weight > 0).any():
            jobs = replace(jobs, weight=np.ones_like(jobs.weight))
        of, first = alike(jobs)
        few, copies = jobs.some(first), np.bincount(of).astype(np.float64)
        gain, load = level_rates(few, self.capacity), copies * few.gang
        keys = [row.tobytes() for row in np.column_stack([few.rate, few.gang, few.weight])]
        slots = self.program.open(keys, gain, load)
        self.program.demand(slots, np.where(few.weight > 0, 0.0, -np.inf))
        shares, level = self.program.solved(slots)
        levels = np.where(few.weight > 0, -level, -np.inf)
        return centred(shares, gain, levels, load, copies, self.capacity)[of]


@ALLOCATIONS.register("max_min_fairness")
class MaxMinFairness(MaxMinFairnessPerf):
    """`max_min_fairness_perf` with rate 1 on every type: it assumes that all GPU types are equally fast."""

    aware = False
