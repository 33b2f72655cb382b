"""`Learner`: what predictors that learn from completed runs share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from optsched.errors import check_legal
from optsched.policies.predictors.history import History
from optsched.simulation.policy import JobFacts


@dataclass
class Learner(ABC):
    """Learns from completed runs, strictly online; ``prior`` is said before any run has completed.

    ``prior`` counts in the job's own unit: 3600 seconds, or 3600 iterations of a job with a profile.
    """

    prior: float = 3600.0
    _jobs: JobFacts | None = field(default=None, init=False, repr=False, compare=False)
    _history: History = field(default_factory=History, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_legal(math.isfinite(self.prior) and self.prior > 0, "prior", self.prior, "a finite number > 0")

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run; these jobs will come."""
        self._history, self._jobs = History(), jobs
        self._forget()

    def predict(self, job: int, now: float) -> float:
        """A length > 0 from the runs that completed before."""
        self._submit(job, now)
        return max(self._length(job), math.ulp(0.0))

    def observe(self, job: int, now: float, length: float) -> None:
        """The run enters the history."""
        self._complete(job, now, length)

    @property
    def jobs(self) -> JobFacts:
        """What is known of the jobs."""
        assert self._jobs is not None, "begin() comes first"
        return self._jobs

    @abstractmethod
    def _length(self, job: int) -> float:
        """The prediction, in terms of the runs that have completed."""

    def _complete(self, job: int, now: float, length: float) -> None:
        self._history.add(self.jobs, job, now, length)

    def _submit(self, job: int, now: float) -> None:  # noqa: B027 - nothing is also an answer, here and below
        """A job arrives; for those that note what is known at that time."""

    def _forget(self) -> None:  # noqa: B027
        """Back to the beginning."""
