"""``user-limit``: the limit that the user stated; ``last-two``: the mean of the user's last two runs, within the limit."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from optsched.policies.predictors import PREDICTORS
from optsched.policies.predictors.learner import Learner
from optsched.simulation.predictor import JobFacts


@PREDICTORS.register("user-limit")
@dataclass
class UserLimit(Learner):
    """The job's walltime; ``prior`` for a job without one. O(1) a job.

    A job with a profile is predicted to do the iterations that it can do within its walltime at its best.

    Parameters
    ----------
    prior
        Length of a job without a walltime, in the unit of the job.
    """

    registered: ClassVar[str] = "user-limit"
    learns: ClassVar[bool] = False

    def _length(self, job: int, now: float) -> float:
        limit = self._limit(job)
        return self.prior if math.isinf(limit) else limit

    def _limit(self, job: int) -> float:
        return float(self._jobs.walltime[job] / self._jobs.fastest[job])


@PREDICTORS.register("last-two")
@dataclass
class LastTwo(UserLimit):
    """The mean of the last two runs that the job's user completed, at most the job's walltime. O(1) a job.

    A user with fewer than two completed runs is predicted to need the walltime. Without one it is the mean of the last
    two runs of all users; before the first run: ``prior``. Tsafrir, Etsion and Feitelson, TPDS 2007;
    ``easy-sjbf:walltime=last-two,believe=double`` is their EASY++.

    Parameters
    ----------
    prior
        Length before any run has completed, in the unit of the job.
    """

    registered: ClassVar[str] = "last-two"
    learns: ClassVar[bool] = True

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run.

        Parameters
        ----------
        jobs
            Facts about the jobs of the run.
        """
        super().begin(jobs)
        self._latest: dict[tuple[str | None, bool], deque[float]] = {}  # by user and unit; None: of all users

    def observe(self, job: int, now: float, length: float) -> None:
        """Record a completed run for its user.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its completion, in seconds.
        length
            Its length: iterations or seconds.
        """
        profiled = self._jobs.profiled[job]
        for user in {self._jobs.user[job], None}:
            self._latest.setdefault((user, profiled), deque(maxlen=2)).append(length)

    def _length(self, job: int, now: float) -> float:
        user, profiled = self._jobs.user[job], self._jobs.profiled[job]
        limit, lengths = self._limit(job), self._latest.get((user, profiled), ())
        if user is None or len(lengths) < 2:
            if not math.isinf(limit):
                return limit
            lengths = self._latest.get((None, profiled), ())
        return min(sum(lengths) / len(lengths), limit) if lengths else self.prior
