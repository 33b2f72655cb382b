"""``best``: whatever predictor has been best so far on jobs that came after it was asked."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS, predictor
from optsched.policies.predictors.text import spelled
from optsched.simulation.policy import JobFacts, Predictor

CANDIDATES = ("shrinkage", "boosting", "group-mean")  # of equally good ones the first


@PREDICTORS.register("best")
@dataclass
class Best:
    """Follows the leader of ``shrinkage``, ``boosting`` and ``group-mean``: least mean log error of ``window`` runs.

    Each of them says its n^ when a job arrives; it counts when that job completes. No error is ever measured on a run that
    a predictor has learned from. Before the first completion: ``shrinkage``. **Guarantee** none.
    """

    window: int = 200
    _asked: dict[str, Predictor] = field(init=False, repr=False, compare=False)
    _errors: dict[str, deque[float]] = field(init=False, repr=False, compare=False)
    _said: dict[int, dict[str, float]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_legal(self.window >= 1, "window", self.window, "an integer >= 1")
        self._asked = {text: predictor(text) for text in CANDIDATES}

    @property
    def name(self) -> str:
        """Shown in reports."""
        return spelled("best", self)

    def begin(self, jobs: JobFacts) -> None:
        """Forget all errors."""
        for each in self._asked.values():
            each.begin(jobs)
        self._errors, self._said = {text: deque(maxlen=self.window) for text in CANDIDATES}, {}

    @property
    def leader(self) -> str:
        """Who is followed now."""
        return min(CANDIDATES, key=lambda text: sum(self._errors[text]))  # of as many runs each

    def predict(self, job: int, now: float) -> float:
        """What the leader says."""
        self._said[job] = {text: each.predict(job, now) for text, each in self._asked.items()}
        return self._said[job][self.leader]

    def observe(self, job: int, now: float, length: float) -> None:
        """Who was how wrong?"""
        for text, said in self._said.pop(job).items():
            self._errors[text].append(abs(math.log(said) - math.log(length)))
            self._asked[text].observe(job, now, length)
