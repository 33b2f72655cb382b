"""``leader``: whichever predictor has been best so far on jobs that came after it was asked."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS, spelled
from optsched.policies.predictors.boosting import Boosting
from optsched.policies.predictors.shrinkage import Shrinkage
from optsched.simulation.policy import JobFacts


@PREDICTORS.register("leader")
@dataclass
class Leader:
    """Follows the leader of ``shrinkage`` and ``boosting``: the least mean error, on log scale, of ``window`` runs.

    Each says its n^ when a job arrives; it counts when that job completes. So no error is measured on a run from which a
    predictor has learned. Of equally good ones: ``shrinkage``. **Guarantee** none.
    """

    window: int = 200
    prior: float = 3600.0
    _asked: tuple[Shrinkage, ...] = field(init=False, repr=False, compare=False)
    _errors: tuple[deque[float], ...] = field(init=False, repr=False, compare=False)
    _said: dict[int, list[float]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_legal(self.window >= 1, "window", self.window, "an integer >= 1")
        self._asked = Shrinkage(self.prior), Boosting(self.prior)

    @property
    def name(self) -> str:
        """Shown in reports."""
        return spelled("leader", self)

    def begin(self, jobs: JobFacts) -> None:
        """Forget all errors."""
        for each in self._asked:
            each.begin(jobs)
        self._errors, self._said = tuple(deque(maxlen=self.window) for _ in self._asked), {}

    def _ahead(self) -> int:
        errors = [sum(each) for each in self._errors]  # of as many runs each
        return errors.index(min(errors))

    def predict(self, job: int, now: float) -> float:
        """What the leader says."""
        self._said[job] = [each.predict(job, now) for each in self._asked]
        return self._said[job][self._ahead()]

    def observe(self, job: int, now: float, length: float) -> None:
        """Who was how wrong?"""
        for each, errors, said in zip(self._asked, self._errors, self._said.pop(job), strict=True):
            errors.append(abs(math.log(said) - math.log(length)))
            each.observe(job, now, length)
