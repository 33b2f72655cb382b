"""Stops that a policy plans: jobs that are stopped at a time to come, without the policy being asked then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.entry_points import EntryPoints
from optsched.simulation.records import RUNNING


class PlannedStops:
    """Which running jobs, of ``n`` in all, are stopped when. What is planned for a job ends with its present run."""

    def __init__(self, engine: EntryPoints, n: int) -> None:
        self._engine = engine
        self._status, self._now = engine.state.jobs["status"], engine.state.engine["now"]
        self._until = np.full(n, math.inf)
        self._planned = 0  # jobs
        # in order of (time, job) from ``at`` on, unless some have come or gone since
        self._times, self._jobs, self._at = np.zeros(0), np.zeros(0, dtype=np.int64), 0
        self._new: list[Ints] = []
        self._sorted = True

    def add_all(self, jobs: Ints, times: Floats) -> bool:
        """These running jobs stop at these times to come, and not at others; False, and nothing changes, if one cannot."""
        before, ordered = plan(jobs, times, self._status, self._now[0], self._until)
        if before < 0:
            return False
        if self._planned == before and ordered:  # nobody else, and nobody twice
            self._times, self._jobs, self._at, self._new, self._sorted = times, jobs, 0, [], True
        else:
            self._new.append(jobs)
            self._sorted = False
        self._planned += jobs.size - before
        return True

    def drop_all(self, jobs: Sequence[int] | Ints) -> None:
        """These run no longer."""
        if self._planned and len(jobs):
            gone = np.asarray(jobs, dtype=np.int64)
            gone = gone[self._until[gone] < math.inf]
            if gone.size:
                self._until[gone] = math.inf
                self._planned -= np.unique(gone).size  # who stops and starts again is among them twice
                self._sorted = False

    def _sort(self) -> None:
        if self._sorted:
            return
        jobs = np.concatenate([self._jobs[self._at :], *self._new])
        times = self._until[jobs]
        order = np.lexsort((jobs, times))[: np.count_nonzero(times < math.inf)]
        jobs = jobs[order]
        once = np.append(True, jobs[1:] != jobs[:-1])[: jobs.size]  # a job may have been planned again
        self._jobs = jobs[once]
        self._times, self._at, self._new, self._sorted = times[order][once], 0, [], True
        self._planned = self._jobs.size

    def _over(self, end: int) -> None:
        # Those before ``end`` have been stopped.
        if end > self._at:
            self._until[self._jobs[self._at : end]] = math.inf
            self._planned -= end - self._at
            self._at = end

    def next_time(self) -> float:
        """When the next stop is planned, once all that can be have been carried out before anything else happens."""
        if self._planned:
            self._sort()
            self._over(self._engine.stop_as_planned(self._times, self._jobs, self._at))
        return self.first

    @property
    def first(self) -> float:
        """When the first one is planned, inf where there is none."""
        if self._planned == 0:
            return math.inf
        self._sort()
        return float(self._times[self._at]) if self._at < self._times.size else math.inf

    def _until_then(self, last: float) -> int:
        self._sort()
        return int(self._times.searchsorted(last, side="right"))

    def with_wake(self, wake: float, last: float) -> float:
        """The last of the times up to ``last``, of which there are some; and of ``wake``, if it is one of them."""
        latest = float(self._times[self._until_then(last) - 1])
        return max(wake, latest) if wake <= last else latest

    def carry_out(self, last: float) -> None:
        """Stop whom it is time to stop when an instant ends at ``last``."""
        end = self._until_then(last)
        for job in self._jobs[self._at : end].tolist():
            self._engine.stop(job)
        self._over(end)


@njit
def plan(jobs: Any, times: Any, status: Any, now: float, until: Any) -> tuple[int, bool]:
    """(how many of the jobs had a stop planned, are all in order and nobody twice?); -1: one cannot stop then, none does."""
    before, ordered = 0, True
    for i in range(jobs.size):
        if not (0 <= jobs[i] < until.size and now < times[i] < math.inf) or status[jobs[i]] != RUNNING:
            return -1, False
    for i in range(jobs.size):
        if until[jobs[i]] < math.inf:
            before += 1
            until[jobs[i]] = math.inf
    for i in range(jobs.size):
        until[jobs[i]] = times[i]
        if i > 0 and (times[i] < times[i - 1] or (times[i] == times[i - 1] and jobs[i] <= jobs[i - 1])):
            ordered = False
    for i in range(jobs.size):
        ordered = ordered and until[jobs[i]] == times[i]
    return before, ordered
