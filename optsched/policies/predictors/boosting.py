"""``boosting``: gradient boosting of a quantile of what `shrinkage` gets wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS
from optsched.policies.predictors.learner import Refits, Row
from optsched.policies.predictors.shrinkage import NONE, Shrinkage
from optsched.simulation.policy import JobFacts

DAY = 86400.0


@PREDICTORS.register("boosting")
@dataclass
class Boosting(Shrinkage):
    """The estimate of `shrinkage` plus a ``quantile`` of its error, by gradient boosting with the pinball loss.

    Small trees (8 leaves, at least 20 runs each, 50 of them, rate 0.05) on the estimate, on weight and mean of the group's,
    the user's and the model's runs, gang, stages, alpha_min, hour and weekday; fitted and fitted again as the ``forest`` is
    (``refit``, ``window``). ``quantile`` = 0.5: a median; a larger one: what a share of so much of the jobs stays below, if
    the future is like the past.

    **Guarantee** none. **Complexity** a millisecond a job. **Reference** Friedman 2001; Koenker and Bassett 1978.
    """

    quantile: float = 0.5
    refit: int = 200
    window: int = 5_000

    registered: ClassVar[str] = "boosting"

    _fitted: Any = field(init=False, repr=False, compare=False)
    _refits: Refits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(0 < self.quantile < 1, "quantile", self.quantile, "a number between 0 and 1")
        for key in ("refit", "window"):
            check_legal(getattr(self, key) >= 1, key, getattr(self, key), "an integer >= 1")

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run and the trees."""
        super().begin(jobs)
        self._fitted, self._refits = None, Refits(self.refit, self.window)

    def _row(self, job: int, now: float) -> Row:
        jobs, estimate = self._jobs, self._estimate(job)
        past = [estimate]
        for key in (("group", jobs.group[job]), ("user", jobs.user[job]), ("model", jobs.model[job])):
            runs = self._levels.get(key, NONE) if key[1] is not None else NONE
            past += [runs.weight, runs.total / runs.weight if runs.weight else estimate]
        facts = (jobs.gpus[job], jobs.stages[job], math.log(jobs.fastest[job]), now % DAY // 3600, now // DAY % 7)
        return np.array((*past, *facts), dtype=np.float32)

    def observe(self, job: int, now: float, length: float) -> None:
        """The run counts, with what was known at its submission; now and then the trees are fitted again."""
        super().observe(job, now, length)
        if self._refits.complete(job, self._log_seconds(job, length) - float(self._refits.asked(job)[0])):
            self._fit()

    def _fit(self) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor  # slow to import, and few runs need it

        trees: dict[str, Any] = {"max_iter": 50, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 20}
        model = HistGradientBoostingRegressor(loss="quantile", quantile=self.quantile, random_state=0, **trees)
        self._fitted = model.fit(*self._refits.take())

    def _length(self, job: int, now: float) -> float:
        row = self._refits.submit(job, self._row(job, now))
        error = 0.0 if self._fitted is None else float(self._fitted.predict(row[np.newaxis])[0])
        return math.exp(float(row[0]) + error) / float(self._jobs.fastest[job])
