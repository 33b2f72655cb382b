"""`Learner`: what predictors that learn from completed runs share."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError, check_legal
from optsched.policies.predictors import predictor as predictor_of
from optsched.policies.predictors.history import History
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.simulation.policy import JobFacts, Predictor
from optsched.speeds.duration import seconds_alone

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


# `replay`: what a predictor would have said, without a scheduler in between; `timeline`: the events that it hears of.

Event = tuple[float, int, bool]


def timeline(instance: Instance, wait: float | npt.ArrayLike = 0.0) -> Iterator[Event]:
    """(time, job, completed?) of every arrival and completion, in order of time.

    A job completes ``wait`` (a number or f64[n], seconds >= 0) plus its seconds alone after its arrival. At equal times
    completions come before arrivals, as in the engine; then by index. O(n log n).

    Raises
    ------
    InputError
        A wait that is negative or not finite, or jobs whose speed is not known.
    """
    waits = np.asarray(wait, dtype=np.float64)
    if not (np.isfinite(waits).all() and (waits >= 0).all()) or waits.shape not in ((), (instance.n,)):
        legal = f"a finite number of seconds >= 0, or {instance.n} of them"
        raise InputError("invalid", field="wait", value=wait, legal=legal)
    ends = (instance.arrival + waits + seconds_alone(instance)).tolist()
    arrival = instance.arrival.tolist()
    running: list[tuple[float, int]] = []
    for job in np.argsort(instance.arrival, kind="stable").tolist():
        while running and running[0][0] <= arrival[job]:
            end, done = heapq.heappop(running)
            yield end, done, True
        yield arrival[job], job, False
        heapq.heappush(running, (ends[job], job))
    while running:
        end, done = heapq.heappop(running)
        yield end, done, True


def replay(instance: Instance, predictor: Predictor | str, wait: float | npt.ArrayLike = 0.0) -> Floats:
    """Predicted lengths f64[n]: iterations of jobs with a profile, else seconds.

    Feeds every arrival and every completion in order of time (`timeline`): a job completes ``wait`` plus its seconds alone
    after it arrives, so that predictors can be compared on the same history, whatever a policy would make of them.

    Raises
    ------
    InputError
        An unknown predictor or parameter, or what `timeline` raises.
    """
    asked = predictor_of(predictor)
    asked.begin(JobFacts(instance, revealed=getattr(asked, "oracle", False)))
    work = instance.work.tolist()
    predicted = np.full(instance.n, np.nan)
    for now, job, completed in timeline(instance, wait):
        if completed:
            asked.observe(job, now, work[job])
        else:
            predicted[job] = asked.predict(job, now)
    return predicted
