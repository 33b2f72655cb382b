"""``shrinkage``: weighted means of earlier runs of the same script, user, model and of all jobs.

``boosting``: gradient boosting of a quantile of the error of that estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS
from optsched.policies.predictors.learner import Learner, Refits, Row, hour_and_weekday
from optsched.simulation.predictor import JobFacts

Key = tuple[str, str | None]


class _Runs(NamedTuple):
    weight: float
    total: float  # sum of weight x y

    def towards(self, mean: float, strength: float) -> float:
        return (self.total + strength * mean) / (self.weight + strength)


NONE = _Runs(0.0, 0.0)


@PREDICTORS.register("shrinkage")
@dataclass
class Shrinkage(Learner):
    """Hierarchical shrinkage, group -> user -> model -> all jobs, of y = log(seconds in the job's best place).

    O(1) a job. The estimate at a level is (W ybar + k m) / (W + k). m is the estimate of the level above, at the top
    log ``prior`` (3600 seconds, k = 1). k = ``group``, ``user``, ``model`` runs. ybar is the mean of the level's runs,
    each with half the weight of one that completed ``half_life`` runs of the level later; W is the sum of weights. The
    levels above the group count the first run of every group, and jobs without a group. So they estimate the length of
    a script that has no run yet; with all runs they would mostly describe popular scripts. The length of a job that is
    counted in iterations is seconds / alpha_min.

    **Guarantee** none. k = 0.2 is about the variance within a group over that between groups of the recipe
    ``recurring``; user and model carry no information there; all four numbers were chosen on its seeds 101-103.
    **Reference** James and Stein 1961; Buhlmann 1967 (credibility).

    Parameters
    ----------
    prior
        Length before any run has completed, in seconds.
    group, user, model
        Strength k of the level above a group, a user and a model, in runs.
    half_life
        Number of runs after which the weight of a run is halved.
    """

    group: float = 0.2
    user: float = 10.0
    model: float = 10.0
    half_life: float = 10.0

    registered: ClassVar[str] = "shrinkage"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("group", "user", "model", "half_life"):
            value = getattr(self, key)
            check_legal(0 < value < math.inf, key, value, "a finite number > 0")

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run.

        Parameters
        ----------
        jobs
            Facts about the jobs of the run.
        """
        super().begin(jobs)
        self._levels: dict[Key, _Runs] = {}

    def _above(self, job: int) -> list[tuple[Key, float]]:
        # the levels of the job above its group, from the top, each with the strength of the one above it
        levels: list[tuple[Key, float]] = [(("all", None), 1.0)]
        named = (("model", self._jobs.model[job], self.model), ("user", self._jobs.user[job], self.user))
        return levels + [((level, name), strength) for level, name, strength in named if name is not None]

    def _estimate(self, job: int) -> float:
        """Return the estimate of y of a job."""
        mean = math.log(self.prior)
        for key, strength in self._above(job):
            mean = self._levels.get(key, NONE).towards(mean, strength)
        group = self._jobs.group[job]
        return mean if group is None else self._levels.get(("group", group), NONE).towards(mean, self.group)

    def _length(self, job: int, now: float) -> float:
        return math.exp(self._estimate(job)) / float(self._jobs.fastest[job])

    def _log_seconds(self, job: int, length: float) -> float:
        """Return y of a run; a length that rounds to 0 counts as the least positive float."""
        return math.log(max(length * float(self._jobs.fastest[job]), math.ulp(0.0)))

    def observe(self, job: int, now: float, length: float) -> None:
        """Add a completed run to the levels to which it belongs.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its completion, in seconds.
        length
            Its length: iterations or seconds.
        """
        y, group = self._log_seconds(job, length), self._jobs.group[job]
        new = group is None or ("group", group) not in self._levels
        keys: list[Key] = [key for key, _ in self._above(job)] if new else []
        decay = 0.5 ** (1.0 / self.half_life)
        for key in keys if group is None else [*keys, ("group", group)]:
            weight, total = self._levels.get(key, NONE)
            self._levels[key] = _Runs(decay * weight + 1.0, decay * total + y)


@PREDICTORS.register("boosting")
@dataclass
class Boosting(Shrinkage):
    """The estimate of `shrinkage` plus a ``quantile`` of its error, by gradient boosting with the pinball loss.

    Small trees (8 leaves, at least 20 runs each, 50 of them, rate 0.05) on the estimate, on weight and mean of the
    group's, the user's and the model's runs, gang, stages, alpha_min, hour and weekday. They are fitted when the
    ``forest`` is (``refit``, ``window``). ``quantile`` = 0.5 predicts a median; a larger one predicts a bound that
    holds for this share of the jobs, if the future is like the past.

    **Guarantee** none. **Complexity** a millisecond a job. **Reference** Friedman 2001; Koenker and Bassett 1978.

    Parameters
    ----------
    prior
        Length before any run has completed, in seconds.
    group, user, model
        Strength k of the level above a group, a user and a model, in runs.
    half_life
        Number of runs after which the weight of a run is halved.
    quantile
        Quantile of the error that is predicted.
    refit
        Number of completions after which the trees are fitted again.
    window
        Number of the latest runs to fit on.
    """

    quantile: float = 0.5
    refit: int = 200
    window: int = 5_000

    registered: ClassVar[str] = "boosting"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(0 < self.quantile < 1, "quantile", self.quantile, "a number between 0 and 1")
        for key in ("refit", "window"):
            check_legal(getattr(self, key) >= 1, key, getattr(self, key), "an integer >= 1")

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run and the trees.

        Parameters
        ----------
        jobs
            Facts about the jobs of the run.
        """
        super().begin(jobs)
        self._refits = Refits(self.refit, self.window, self._make_trees)

    def _make_trees(self) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor  # slow to import, and few runs need it

        trees: dict[str, Any] = {"max_iter": 50, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 20}
        return HistGradientBoostingRegressor(loss="quantile", quantile=self.quantile, random_state=0, **trees)

    def _row(self, job: int, now: float) -> Row:
        jobs, estimate = self._jobs, self._estimate(job)
        past = [estimate]
        for key in (("group", jobs.group[job]), ("user", jobs.user[job]), ("model", jobs.model[job])):
            runs = self._levels.get(key, NONE) if key[1] is not None else NONE
            past += [runs.weight, runs.total / runs.weight if runs.weight else estimate]
        facts = (jobs.gpus[job], jobs.stages[job], math.log(jobs.fastest[job]), *hour_and_weekday(now))
        return np.array((*past, *facts), dtype=np.float32)

    def observe(self, job: int, now: float, length: float) -> None:
        """Add a completed run, with its features at submission; fit the trees again when it is due.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its completion, in seconds.
        length
            Its length: iterations or seconds.
        """
        super().observe(job, now, length)
        self._refits.complete(job, self._log_seconds(job, length) - float(self._refits.asked[job][0]))

    def _length(self, job: int, now: float) -> float:
        row = self._refits.asked[job] = self._row(job, now)
        error = 0.0 if self._refits.trees is None else float(self._refits.trees.predict(row[np.newaxis])[0])
        return math.exp(float(row[0]) + error) / float(self._jobs.fastest[job])
