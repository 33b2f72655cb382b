"""First in, first out: the head of the queue takes all of its time on one GPU type and keeps it until it is done."""

from __future__ import annotations

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, Setting
from optsched.problem.arrays import Floats


@ALLOCATIONS.register("fifo_perf")
class FifoPerf(AllocationRule):
    """As `fifo`, each job on its fastest type with free GPUs."""

    strict = True

    def __init__(self, setting: Setting) -> None:
        self._capacity = setting.capacity
        self._type: dict[int, int] = {}  # of the jobs that run, in the order in which they began
        self._gang: dict[int, int] = {}

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]: one 1 in the row of a job that runs."""
        ids = jobs.ids.tolist()
        present = set(ids)
        freed = [self._type.pop(j) for j in list(self._type) if j not in present]
        room = self._capacity.copy()
        for j, t in self._type.items():
            room[t] -= self._gang[j]
        queue = [m for m, j in enumerate(ids) if j not in self._type]
        for m in queue:
            fits = np.flatnonzero((room >= jobs.gang[m]) & (jobs.rate[m] > 0))
            if not fits.size:
                break  # the head blocks
            t = self._choose(jobs, m, fits.tolist(), freed)
            self._type[ids[m]], self._gang[ids[m]] = t, int(jobs.gang[m])
            room[t] -= jobs.gang[m]
        shares = np.zeros_like(jobs.rate)
        rows = [m for m, j in enumerate(ids) if j in self._type]
        shares[rows, [self._type[ids[m]] for m in rows]] = 1.0
        return shares

    def _choose(self, jobs: ActiveJobs, m: int, fits: list[int], freed: list[int]) -> int:
        return max(fits, key=lambda t: float(jobs.rate[m, t]))


@ALLOCATIONS.register("fifo")
class FifoShares(FifoPerf):
    """Jobs in order of arrival; each has all of its time on one type drawn among those with free GPUs, and keeps it.

    The head of the queue inherits the type of a job that ended where it fits, else draws; it blocks those behind it.
    """

    aware = False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._draw = np.random.default_rng(setting.seed)

    def _choose(self, jobs: ActiveJobs, m: int, fits: list[int], freed: list[int]) -> int:
        while freed:
            t = freed.pop(0)
            if t in fits:
                return t
        return int(self._draw.choice(fits))
