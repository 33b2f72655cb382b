"""Who waits and who runs, in order of (arrival, index), kept up to date instead of looked for among all jobs."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

import numpy as np

from optsched.problem.arrays import Ints
from optsched.simulation.records import RUNNING, WAITING

MANY = 256  # jobs that are looked at in the time in which one changes its list


class JobLists:
    """The jobs of a run by what they do. Nothing is kept before somebody asks.

    ``order``: all jobs in order of (arrival, index); ``status``: of every job, as the engine keeps it.
    """

    def __init__(self, order: Ints, status: Ints) -> None:
        self._order, self._status = order, status
        self.known = False  # is what follows up to date? Nobody need say who moves if not
        self._jobs: list[int] = []  # by rank
        self._rank: list[int] = []
        self._waiting: list[int] = []  # ranks, ascending
        self._running: list[int] = []

    @property
    def waiting(self) -> list[int]:
        """Arrived jobs that neither run nor are finished."""
        self._begin()
        return [self._jobs[rank] for rank in self._waiting]

    @property
    def running(self) -> list[int]:
        """Jobs that run."""
        self._begin()
        return [self._jobs[rank] for rank in self._running]

    @property
    def active(self) -> Ints:
        """Jobs that wait or run, i64[]."""
        if not self.known:
            status = self._status[self._order]
            found: Ints = self._order[(status == WAITING) | (status == RUNNING)]
            return found.astype(np.int64)
        return np.array([self._jobs[rank] for rank in sorted(self._waiting + self._running)], dtype=np.int64)

    def _begin(self) -> None:
        if not self.known and self._order.size:
            self._jobs = self._jobs or self._order.tolist()
            self._rank = self._rank or np.argsort(self._order).tolist()
            status = self._status[self._order]
            self._waiting = np.flatnonzero(status == WAITING).tolist()
            self._running = np.flatnonzero(status == RUNNING).tolist()
            self.known = True

    def refresh(self, arrived: Iterable[int], finished: Iterable[int]) -> None:
        """These have arrived, in order, and these have finished since."""
        if self.known:
            self._waiting.extend(self._rank[job] for job in arrived)
            for job in finished:
                _leave(self._running, self._rank[job])

    def forget(self) -> None:
        """Many have moved: all are looked at when somebody asks."""
        self.known = False

    def moved(self, stopped: Ints, started: Ints) -> None:
        """Those wait again, these run now; a job that is among both stops first. Where they are many all are looked at."""
        self.known = self.known and (len(stopped) + len(started)) * MANY < self._order.size
        if self.known:
            for job in stopped.tolist():
                self.stopped(job)
            for job in started.tolist():
                self.started(job)

    def started(self, job: int) -> None:
        """It runs now."""
        if self.known:
            _leave(self._waiting, self._rank[job])
            insort(self._running, self._rank[job])

    def stopped(self, job: int) -> None:
        """It waits again."""
        if self.known:
            _leave(self._running, self._rank[job])
            insort(self._waiting, self._rank[job])


def _leave(ranks: list[int], rank: int) -> None:
    del ranks[bisect_left(ranks, rank)]
