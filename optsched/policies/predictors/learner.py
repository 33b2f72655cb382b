"""`Learner`: the common part of predictors that learn from completed runs, and their history.

A run counts from its end on. Lengths are kept as y = log(1 + n). Runs of jobs with a profile (iterations) and of jobs
with a duration (seconds) are different quantities and are never mixed: every record is kept per unit.
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
    """Return hour and weekday of a time; both count from time 0.

    Parameters
    ----------
    now
        Time in seconds.
    """
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
        """Add a run. O(count) for keeping ``ranked`` sorted: a move of eight bytes a run.

        Parameters
        ----------
        y
            log(1 + length).
        length
            Iterations or seconds.
        now
            Completion of the run, in seconds.
        """
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
        """Median of y; for an even number of runs the mean of the two in the middle."""
        middle = self.count // 2
        return self.ranked[middle] if self.count % 2 else (self.ranked[middle - 1] + self.ranked[middle]) / 2

    def last(self, back: int) -> float:
        """Return y of one of the latest runs; of the earliest one kept if there are fewer.

        Parameters
        ----------
        back
            1 for the latest run, 2 for the one before, ...
        """
        return self.recent[max(len(self.recent) - back, 0)]


@dataclass
class Learner(ABC):
    """Learns from completed runs, strictly online; predicts ``prior`` before any run has completed.

    ``prior`` counts in the job's own unit: 3600 seconds, or 3600 iterations of a job with a profile.

    Parameters
    ----------
    prior
        Length before any run has completed.
    """

    prior: float = 3600.0

    registered: ClassVar[str]  # its name without parameters

    def __post_init__(self) -> None:
        check_legal(math.isfinite(self.prior) and self.prior > 0, "prior", self.prior, "a finite number > 0")

    @property
    def name(self) -> str:
        """Name in reports, with parameters."""
        return spelled(self.registered, self)

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run.

        Parameters
        ----------
        jobs
            Facts about the jobs of the run.
        """
        self._jobs = jobs
        self._runs: dict[tuple[str, bool, str | None], Runs] = {}

    def predict(self, job: int, now: float) -> float:
        """Return a length > 0 from the runs that completed before.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its release date, in seconds.
        """
        return max(self._length(job, now), math.ulp(0.0))

    @abstractmethod
    def _length(self, job: int, now: float) -> float:
        """Return the prediction from the runs that have completed."""

    def _keys(self, job: int) -> list[tuple[str, bool, str | None]]:
        # of its group, its user and all jobs, in its unit
        jobs = self._jobs
        names = ("group", jobs.group[job]), ("user", jobs.user[job]), ("all", None)
        return [(level, jobs.profiled[job], name) for level, name in names]

    def _known(self, job: int) -> tuple[Runs | None, Runs | None, Runs | None]:
        """Return the completed runs of the job's group, of its user, and of all jobs; None if there are none. O(1)."""
        group, user, every = map(self._runs.get, self._keys(job))
        return group, user, every

    def observe(self, job: int, now: float, length: float) -> None:
        """Record a completed run for its group, its user and all jobs.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its completion, in seconds.
        length
            Its length: iterations or seconds.
        """
        for key in self._keys(job):
            if key[2] is not None or key[0] == "all":
                self._runs.setdefault(key, Runs()).add(math.log1p(length), length, now)


class Refits:
    """Trees that learn from the last ``window`` completed runs: ``trees``, None before they are first fitted.

    They are fitted after the first 100 completions (``every``, if fewer), then after every ``every``. ``asked``: the
    features of a job at its submission, until it completes.

    Parameters
    ----------
    every
        Number of completions after which the trees are fitted again.
    window
        Number of the latest runs to fit on.
    make
        Function that returns trees to be fitted.
    """

    def __init__(self, every: int, window: int, make: Callable[[], Any]) -> None:
        self._every, self._make = every, make
        self.trees: Any = None
        self.asked: dict[int, Row] = {}
        self._runs: deque[tuple[Row, float]] = deque(maxlen=window)
        self._fresh = 0  # completions since the last fit

    def complete(self, job: int, target: float) -> None:
        """Add a completed job to the history; fit the trees again when it is due.

        Parameters
        ----------
        job
            Number of the job, whose features are in ``asked``.
        target
            Value that the trees should predict for it.
        """
        self._runs.append((self.asked.pop(job), target))
        self._fresh += 1
        if self._fresh >= (min(FIRST_FIT, self._every) if self.trees is None else self._every):
            rows, targets = np.stack([row for row, _ in self._runs]), np.array([target for _, target in self._runs])
            self.trees, self._fresh = self._make().fit(rows, targets), 0
