"""How long jobs would have taken on a share of their own: finish-time fairness' yardstick, in Gavel's form."""

from __future__ import annotations

import numpy as np

from optsched.policies.gavel_allocations import ActiveJobs, isolated_share
from optsched.problem.arrays import Floats


class IsolatedTime:
    """Remembers, between two recomputations, what was left of every job and its isolated throughput then."""

    def __init__(self, capacity: Floats) -> None:
        self._capacity = capacity
        self._so_far = np.zeros(0)
        self._left = np.full(0, np.nan)
        self._rate = np.ones(0)
        self.finish = np.zeros(0)

    def at(self, jobs: ActiveJobs) -> Floats:
        """D_m, f64[m]: seconds for the work done (at the isolated throughputs of its time) and for the work left."""
        self._reach(int(jobs.ids.max(initial=-1)) + 1)
        j = jobs.ids
        known = ~np.isnan(self._left[j])
        done = np.where(known, self._left[j] - jobs.left, 0.0)
        self._so_far[j] += np.maximum(done, 0.0) / self._rate[j]
        self._left[j] = jobs.left
        self._rate[j] = (jobs.rate * isolated_share(jobs.gang, self._capacity)).sum(axis=1)
        self.finish = self._so_far[j] + jobs.left / self._rate[j]
        return self.finish

    def _reach(self, n: int) -> None:
        if n > self._so_far.size:
            more = max(n, 2 * self._so_far.size) - self._so_far.size
            self._so_far = np.concatenate([self._so_far, np.zeros(more)])
            self._left = np.concatenate([self._left, np.full(more, np.nan)])
            self._rate = np.concatenate([self._rate, np.ones(more)])
