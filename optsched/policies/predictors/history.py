"""What completed runs say: all that a predictor which learns may know. A run enters when it completes, never before.

Lengths are kept as y = log(1 + n). Runs of jobs with a profile (iterations) and of jobs with a duration (seconds) are
different quantities and never meet: every record is kept per unit.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from dataclasses import dataclass, field

from optsched.simulation.policy import JobFacts


@dataclass
class Runs:
    """Completed runs of one group, of one user, or of all jobs."""

    count: int = 0
    total: float = 0.0  # sum of y
    lengths: float = 0.0  # sum of n
    highest: float = -math.inf  # y
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=3))  # y, the latest last
    ranked: list[float] = field(default_factory=list)  # y, rising
    latest: float = -math.inf  # when the latest of them completed

    def add(self, y: float, length: float, now: float) -> None:
        """One more run. O(count) for keeping ``ranked``: a move of eight bytes a run."""
        self.count += 1
        self.total += y
        self.lengths += length
        self.highest = max(self.highest, y)
        self.recent.append(y)
        insort(self.ranked, y)
        self.latest = now

    @property
    def mean(self) -> float:
        """Mean of y."""
        return self.total / self.count

    @property
    def mean_length(self) -> float:
        """Arithmetic mean of n."""
        return self.lengths / self.count

    @property
    def median(self) -> float:
        """Median of y; of an even number of runs the mean of the two in the middle."""
        middle = self.count // 2
        return self.ranked[middle] if self.count % 2 else (self.ranked[middle - 1] + self.ranked[middle]) / 2

    def last(self, back: int) -> float:
        """y of the latest run (``back`` = 1), of the one before (2) ...; of the earliest kept where there are fewer."""
        return self.recent[max(len(self.recent) - back, 0)]


class History:
    """Completed runs by group, by user and all together, per unit. A look-up is O(1)."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, bool, str | None], Runs] = {}

    def add(self, jobs: JobFacts, job: int, now: float, length: float) -> None:
        """``job`` completed at ``now``; this was its length."""
        y = math.log1p(length)
        for key in _keys(jobs, job):
            self._records.setdefault(key, Runs()).add(y, length, now)

    def group(self, jobs: JobFacts, job: int) -> Runs | None:
        """Completed runs of the job's group; None when there are none (or no group)."""
        return self._records.get(("group", profiled(jobs, job), jobs.group[job]))

    def user(self, jobs: JobFacts, job: int) -> Runs | None:
        """Completed runs of the job's user; None when there are none (or no user)."""
        return self._records.get(("user", profiled(jobs, job), jobs.user[job]))

    def all(self, jobs: JobFacts, job: int) -> Runs | None:
        """All completed runs in the job's unit."""
        return self._records.get(("all", profiled(jobs, job), None))


def _keys(jobs: JobFacts, job: int) -> list[tuple[str, bool, str | None]]:
    unit = profiled(jobs, job)
    named = [("group", unit, jobs.group[job]), ("user", unit, jobs.user[job])]
    return [*(key for key in named if key[2] is not None), ("all", unit, None)]


def profiled(jobs: JobFacts, job: int) -> bool:
    """Is the job's length a number of iterations of a profile, not seconds?"""
    return jobs.profiled[job]
