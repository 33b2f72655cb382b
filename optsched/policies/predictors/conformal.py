"""``conformal``: an upper bound on the length of a job, valid for a given share of all jobs."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS, predictor, spelled
from optsched.simulation.predictor import JobFacts, Predictor


class _Errors:
    """The values log(n / n^) of the last ``window`` runs, in order."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._latest: deque[float] = deque()
        self._ranked: list[float] = []

    def add(self, error: float) -> None:
        if len(self._latest) == self._window:
            del self._ranked[bisect_left(self._ranked, self._latest.popleft())]
        self._latest.append(error)
        insort(self._ranked, error)

    def bound(self, level: float) -> float:
        """Return the ceil((w + 1) level)-th smallest of w errors; the largest if w is smaller, 0 if w = 0."""
        rank = math.ceil((len(self._ranked) + 1) * level)
        return self._ranked[min(rank, len(self._ranked)) - 1] if self._ranked else 0.0


LARGEST = 1e300


@PREDICTORS.register("conformal")
@dataclass
class Conformal:
    """The prediction n^ of another predictor, times a factor from its errors on the last ``window`` completed runs.

    Errors are kept for two kinds of jobs (Mondrian): jobs of a group that has a completed run, and others.

    **Guarantee** if a job's error and those of the runs that have completed are exchangeable, n_j is at most the
    prediction with probability ``level`` or more, once (1 - level) (w + 1) >= 1 for w runs of its kind. Errors that
    drift are not exchangeable, and long runs complete late, so that early bounds are too small. **Complexity** O(log
    w) comparisons a job. **Reference** Vovk, Gammerman and Shafer 2005; split conformal bounds: Papadopoulos et al.
    2002.

    Parameters
    ----------
    of
        The other predictor, ``NAME[/key=value]...``.
    level
        Probability of the bound.
    window
        Number of runs whose errors are kept.
    """

    of: str | Predictor = "shrinkage"
    level: float = 0.95
    window: int = 500

    def __post_init__(self) -> None:
        check_legal(0 < self.level < 1, "level", self.level, "a number between 0 and 1")
        check_legal(self.window >= 1, "window", self.window, "an integer >= 1")
        self._inner = predictor(self.of)
        self.oracle = bool(getattr(self._inner, "oracle", False))

    @property
    def name(self) -> str:
        """Name in reports, with parameters."""
        return spelled("conformal", self)

    def begin(self, jobs: JobFacts) -> None:
        """Forget all errors.

        Parameters
        ----------
        jobs
            Facts about the jobs of the run.
        """
        self._inner.begin(jobs)
        self._errors = {seen: _Errors(self.window) for seen in (False, True)}
        self._jobs, self._groups = jobs, set[str]()
        self._said: dict[int, tuple[bool, float]] = {}

    def predict(self, job: int, now: float) -> float:
        """Return the upper bound on the length of a job.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its release date, in seconds.
        """
        said, seen = self._inner.predict(job, now), self._jobs.group[job] in self._groups
        self._said[job] = seen, said
        return min(max(said * math.exp(self._errors[seen].bound(self.level)), math.ulp(0.0)), LARGEST)

    def observe(self, job: int, now: float, length: float) -> None:
        """Record the error of the prediction of a completed job.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its completion, in seconds.
        length
            Its length: iterations or seconds.
        """
        seen, said = self._said.pop(job)
        self._errors[seen].add(math.log(length) - math.log(said))
        group = self._jobs.group[job]
        if group is not None:
            self._groups.add(group)
        self._inner.observe(job, now, length)
