"""`Learner`: what predictors that learn from completed runs share, and what is kept of these. A run counts from its end on.

Lengths are kept as y = log(1 + n). Runs of jobs with a profile (iterations) and of jobs with a duration (seconds) are
different quantities and never meet: every record is kept per unit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from optsched.errors import check_legal
from optsched.policies.predictors import spelled
from optsched.simulation.predictor import JobFacts

Row = npt.NDArray[np.float32]
FIRST_FIT = 100  # completions


def hour_and_weekday(now: float) -> tuple[float, float]:
    """Of a time in seconds; both count from time 0."""
    return now % 86400.0 // 3600, now // 86400.0 % 7


@dataclass
class Runs:
    """Completed runs of one group, of one user, or of all jobs."""

    count: int = 0
    total: float = 0.0  # sum of y
    lengths: float = 0.0  # sum of n
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=3))  # y, the latest last
    ranked: list[float] = field(default_factory=list)  # y, rising
    latest: float = -math.inf  # when the latest of them completed

    def add(self, y: float, length: float, now: float) -> None:
        """One more run. O(count) for keeping ``ranked``: a move of eight bytes a run."""
        self.count += 1
        self.total += y
        self.lengths += length
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


@dataclass
class Learner(ABC):
    """Learns from completed runs, strictly online; ``prior`` is said before any run has completed.

    ``prior`` counts in the job's own unit: 3600 seconds, or 3600 iterations of a job with a profile.
    """

    prior: float = 3600.0

    registered: ClassVar[str]  # its name without parameters

    def __post_init__(self) -> None:
        check_legal(math.isfinite(self.prior) and self.prior > 0, "prior", self.prior, "a finite number > 0")

    @property
    def name(self) -> str:
        """Shown in reports."""
        return spelled(self.registered, self)

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run; these jobs will come."""
        self._jobs = jobs
        self._runs: dict[tuple[str, bool, str | None], Runs] = {}

    def predict(self, job: int, now: float) -> float:
        """A length > 0 from the runs that completed before."""
        return max(self._length(job, now), math.ulp(0.0))

    @abstractmethod
    def _length(self, job: int, now: float) -> float:
        """The prediction, in terms of the runs that have completed."""

    def _keys(self, job: int) -> list[tuple[str, bool, str | None]]:
        # of its group, its user and all jobs, in its unit
        jobs = self._jobs
        names = ("group", jobs.group[job]), ("user", jobs.user[job]), ("all", None)
        return [(level, jobs.profiled[job], name) for level, name in names]

    def _known(self, job: int) -> tuple[Runs | None, Runs | None, Runs | None]:
        """Completed runs of the job's group, of its user, and all; None: there are none (or no group, no user). O(1)."""
        group, user, every = map(self._runs.get, self._keys(job))
        return group, user, every

    def observe(self, job: int, now: float, length: float) -> None:
        """The run counts for its group, its user and all."""
        for key in self._keys(job):
            if key[2] is not None or key[0] == "all":
                self._runs.setdefault(key, Runs()).add(math.log1p(length), length, now)


class Refits:
    """Trees that learn from the last ``window`` completed runs: ``trees``, None before they are fitted first.

    They are fitted after the first 100 (``every``, if fewer), then after ``every``. ``asked``: what was known of a job when
    it was submitted, until it completes.
    """

    def __init__(self, every: int, window: int, make: Callable[[], Any]) -> None:
        self._every, self._make = every, make
        self.trees: Any = None
        self.asked: dict[int, Row] = {}
        self._runs: deque[tuple[Row, float]] = deque(maxlen=window)
        self._fresh = 0  # completions since the last fit

    def complete(self, job: int, target: float) -> None:
        """A job has completed: from what was known of it this should be predicted. Now and then the trees are fitted."""
        self._runs.append((self.asked.pop(job), target))
        self._fresh += 1
        if self._fresh >= (min(FIRST_FIT, self._every) if self.trees is None else self._every):
            rows, targets = np.stack([row for row, _ in self._runs]), np.array([target for _, target in self._runs])
            self.trees, self._fresh = self._make().fit(rows, targets), 0
