"""`proportional_fairness_perf`: the weighted product of throughputs as large as possible (Nash bargaining). Not in Gavel."""

from __future__ import annotations

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, JobClasses, Setting
from optsched.policies.gavel_allocations.analytic_centre import proportional
from optsched.problem.arrays import Floats


@ALLOCATIONS.register("proportional_fairness_perf")
class ProportionalFairnessPerf(AllocationRule):
    """max sum_m w_m log thr_m(X): concave, solved by Newton's method on its own structure (`centre`)."""

    def __init__(self, setting: Setting) -> None:
        self._capacity = setting.capacity

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]; jobs of weight 0 get nothing."""
        found = np.zeros_like(jobs.rate)
        weighty = np.flatnonzero(jobs.weight > 0)
        if weighty.size:
            asking = jobs.some(weighty)
            classes = JobClasses.alike(asking)
            few = asking.some(classes.first)
            gain = few.rate / few.rate.max(axis=1, keepdims=True)
            k = classes.copies
            found[weighty] = proportional(gain, k * few.weight, k * few.gang, k, self._capacity)[classes.of]
        return found
