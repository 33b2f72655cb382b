"""`Learner`: what predictors that learn from completed runs share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

from optsched.errors import InputError, check_legal
from optsched.policies.predictors.history import History
from optsched.policies.predictors.replay import timeline
from optsched.problem.instance import Instance
from optsched.simulation.policy import JobFacts

WEEK = 7 * 86400.0


@dataclass
class Learner(ABC):
    """Learns from completed runs, strictly online; ``prior`` is said before any run has completed.

    ``prior`` counts in the job's own unit: 3600 seconds, or 3600 iterations of a job with a profile.
    """

    prior: float = 3600.0
    _past: Instance | None = field(default=None, init=False, repr=False, compare=False)
    _jobs: JobFacts | None = field(default=None, init=False, repr=False, compare=False)
    _history: History = field(default_factory=History, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_legal(math.isfinite(self.prior) and self.prior > 0, "prior", self.prior, "a finite number > 0")

    def fit(self, past: Instance) -> Self:
        """Learn from an earlier workload: from now on every `begin` starts with its runs, all of them completed.

        The past ends a whole number of weeks before time 0 of what comes, so that hours and weekdays agree.

        Raises
        ------
        InputError
            A past without jobs, or with jobs whose speed is not known.
        """
        if past.n == 0:
            message = "a predictor cannot be fitted on nothing"
            raise InputError(message, field="past", value=past.name, legal="an instance with at least one job")
        self._past = past
        return self

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run but those of `fit`; these jobs will come."""
        self._history = History()
        self._forget()
        if self._past is not None:
            self._relive(self._past)
        self._jobs = jobs

    def _relive(self, past: Instance) -> None:
        self._jobs = JobFacts(past)
        events = list(timeline(past))
        shift = WEEK * math.ceil(events[-1][0] / WEEK)
        for time, job, completed in events:
            if completed:
                self._complete(job, time - shift, float(past.work[job]))
            else:
                self._submit(job, time - shift)
        self._settle()

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

    def _settle(self) -> None:  # noqa: B027
        """All runs of `fit` have been shown."""
