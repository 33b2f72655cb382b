"""A queue whose head takes all of its time on one GPU type and keeps it until it is done."""

from __future__ import annotations

import numpy as np

from optsched.policies.gavel_allocations import ActiveJobs
from optsched.simulation.policy import Floats


class TypeQueue:
    """``seed``: types are drawn among those with room; None: the fastest with room."""

    def __init__(self, capacity: Floats, seed: int | None) -> None:
        self._capacity = capacity
        self._draw = None if seed is None else np.random.default_rng(seed)
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
        if self._draw is None:
            return max(fits, key=lambda t: float(jobs.rate[m, t]))
        while freed:
            t = freed.pop(0)
            if t in fits:
                return t
        return int(self._draw.choice(fits))
