"""`isolated`: every job has the same share of every type, 1/m of it."""

from __future__ import annotations

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs, isolated_share
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, Setting
from optsched.problem.arrays import Floats


@ALLOCATIONS.register("isolated")
class Isolated(AllocationRule):
    """X_mr = (c_r / m) / gang_m, rows scaled down to a sum of at most 1. No optimisation: the yardstick of sharing."""

    aware = False

    def __init__(self, setting: Setting) -> None:
        self._capacity = setting.capacity

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]; 0 where a job may not run."""
        return np.where(jobs.rate > 0, isolated_share(jobs.gang, self._capacity), 0.0)
