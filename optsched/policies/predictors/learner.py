"""`Learner`: what predictors that learn from completed runs share, and what is kept of these. A run counts from its end on.

Lengths are kept as y = log(1 + n). Runs of jobs with a profile (iterations) and of jobs with a duration (seconds) are
different quantities and never meet: every record is kept per unit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import insort
from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from optsched.errors import check_legal
from optsched.policies.predictors import spelled
from optsched.problem.arrays import Floats
from optsched.simulation.policy import JobFacts

Row = npt.NDArray[np.float32]
FIRST_FIT = 100  # completions


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
        for level, name in (("group", jobs.group[job]), ("user", jobs.user[job]), ("all", None)):
            if name is not None or level == "all":
                self._records.setdefault((level, jobs.profiled[job], name), Runs()).add(y, length, now)

    def group(self, jobs: JobFacts, job: int) -> Runs | None:
        """Completed runs of the job's group; None when there are none (or no group)."""
        return self._records.get(("group", jobs.profiled[job], jobs.group[job]))

    def user(self, jobs: JobFacts, job: int) -> Runs | None:
        """Completed runs of the job's user; None when there are none (or no user)."""
        return self._records.get(("user", jobs.profiled[job], jobs.user[job]))

    def all(self, jobs: JobFacts, job: int) -> Runs | None:
        """All completed runs in the job's unit."""
        return self._records.get(("all", jobs.profiled[job], None))


@dataclass
class Learner(ABC):
    """Learns from completed runs, strictly online; ``prior`` is said before any run has completed.

    ``prior`` counts in the job's own unit: 3600 seconds, or 3600 iterations of a job with a profile.
    """

    prior: float = 3600.0

    registered: ClassVar[str]  # its name without parameters

    _jobs: JobFacts = field(init=False, repr=False, compare=False)
    _history: History = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_legal(math.isfinite(self.prior) and self.prior > 0, "prior", self.prior, "a finite number > 0")

    @property
    def name(self) -> str:
        """Shown in reports."""
        return spelled(self.registered, self)

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run; these jobs will come."""
        self._history, self._jobs = History(), jobs

    def predict(self, job: int, now: float) -> float:
        """A length > 0 from the runs that completed before."""
        return max(self._length(job, now), math.ulp(0.0))

    @abstractmethod
    def _length(self, job: int, now: float) -> float:
        """The prediction, in terms of the runs that have completed."""

    def observe(self, job: int, now: float, length: float) -> None:
        """The run enters the history."""
        self._history.add(self._jobs, job, now, length)


class Refits:
    """The runs that a predictor of trees learns from: the last ``window`` completed ones.

    A fit is due after the first 100 (``every``, if fewer), then after ``every``.
    """

    def __init__(self, every: int, window: int) -> None:
        self._every = every
        self._asked: dict[int, Row] = {}
        self._runs: deque[tuple[Row, float]] = deque(maxlen=window)
        self._fresh = 0  # completions since the last fit
        self._fitted = False

    def submit(self, job: int, row: Row) -> Row:
        """What is known of a job when it is submitted."""
        self._asked[job] = row
        return row

    def asked(self, job: int) -> Row:
        """The same, until it completes."""
        return self._asked[job]

    def complete(self, job: int, target: float) -> bool:
        """It has completed: from such a row this should be predicted. Is it time to fit?"""
        self._runs.append((self._asked.pop(job), target))
        self._fresh += 1
        return self._fresh >= (self._every if self._fitted else min(FIRST_FIT, self._every))

    def take(self) -> tuple[Floats, Floats]:
        """f32[runs, features] and targets f64[runs] for a fit, which is now done."""
        self._fitted, self._fresh = True, 0
        return np.stack([row for row, _ in self._runs]), np.array([target for _, target in self._runs])
