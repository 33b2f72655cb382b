"""``conformal``: an upper bound on the length of a job, which a given share of all jobs stays below."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS, predictor, spelled
from optsched.simulation.predictor import JobFacts, Predictor


class _Errors:
    """log(n / n^) of the last ``window`` runs, in order."""

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
        """The ceil((w + 1) level)-th smallest of w errors; the largest where there are too few, 0 where there is none."""
        rank = math.ceil((len(self._ranked) + 1) * level)
        return self._ranked[min(rank, len(self._ranked)) - 1] if self._ranked else 0.0


LARGEST = 1e300


@PREDICTORS.register("conformal")
@dataclass
class Conformal:
    """n^ of another predictor times a factor that its errors of the last ``window`` completed runs call for.

    Two kinds of jobs have errors of their own (Mondrian): those of a group that has a completed run, and others.

    **Guarantee** if a job's error and those of the runs that have completed are exchangeable, n_j is at most what is said
    with probability ``level`` or more, once (1 - level) (w + 1) >= 1 for w runs of its kind; what drifts is not
    exchangeable, and long runs complete late, so that early bounds are too small. **Complexity** O(log w) comparisons a job.
    **Reference** Vovk, Gammerman and Shafer 2005; split conformal bounds: Papadopoulos et al. 2002.
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
        """Shown in reports."""
        return spelled("conformal", self)

    def begin(self, jobs: JobFacts) -> None:
        """Forget all errors."""
        self._inner.begin(jobs)
        self._errors = {known: _Errors(self.window) for known in (False, True)}
        self._jobs, self._groups = jobs, set[str]()
        self._said: dict[int, tuple[bool, float]] = {}

    def predict(self, job: int, now: float) -> float:
        """The bound."""
        said, known = self._inner.predict(job, now), self._jobs.group[job] in self._groups
        self._said[job] = known, said
        return min(max(said * math.exp(self._errors[known].bound(self.level)), math.ulp(0.0)), LARGEST)

    def observe(self, job: int, now: float, length: float) -> None:
        """How wrong was it?"""
        known, said = self._said.pop(job)
        self._errors[known].add(math.log(length) - math.log(said))
        group = self._jobs.group[job]
        if group is not None:
            self._groups.add(group)
        self._inner.observe(job, now, length)
