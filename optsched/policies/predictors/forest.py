"""``forest``: random-forest regression on the facts of a job and on the earlier runs of its group."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS
from optsched.policies.predictors.learner import Learner, Refits, Row, hour_and_weekday
from optsched.simulation.predictor import JobFacts

NEVER = -1.0  # no run yet; below every log(1 + seconds)
KNOWN = 3  # a group with this number of runs counts as seen


def mean_of(forest: Any, row: Row) -> float:
    """Return the bits of ``forest.predict`` for one row, without its checks and threads, which take milliseconds.

    Parameters
    ----------
    forest
        A fitted random forest.
    row
        Features of a job, f32[].
    """
    trees = forest.estimators_
    return float(sum(tree.tree_.predict(row[np.newaxis]).item() for tree in trees) / len(trees))


@PREDICTORS.register("forest")
@dataclass
class Forest(Learner):
    """Random forest on y = log(1 + n), strictly online.

    Its input is the features of a job at submission. The forest is fitted after the first 100 completions (or
    ``refit``, if fewer) and again after every further ``refit``, on the last ``window`` completed runs, each with its
    features at submission (`features`). A job whose group has fewer than 3 completed runs gets the mean y of its
    user's runs, else the median y of all runs, else ``prior``; before the first fit, a job of a group with more runs
    gets their mean.

    **Guarantee** none: a forest averages observed lengths, so it never leaves their range, but the prediction for a
    changed script is wrong by the change. **Complexity** O(trees x depth) a job; a fit takes O(trees x window log^2
    window) time. **Reference** Luo, Liu, Lee, Shroff 2025 (arXiv 2501.05563) predict iterations by random-forest
    regression; features, refitting and cold start are this project's own. Breiman 2001.

    Parameters
    ----------
    prior
        Length before any run has completed, in the unit of the job.
    trees
        Number of trees.
    leaf
        Least number of runs in a leaf.
    refit
        Number of completions after which the forest is fitted again.
    seed
        Seed of the random numbers.
    window
        Number of the latest runs to fit on.
    """

    trees: int = 100
    leaf: int = 2
    refit: int = 500
    seed: int = 0
    window: int = 5_000

    registered: ClassVar[str] = "forest"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, least in (("trees", 1), ("leaf", 1), ("refit", 1), ("window", 1), ("seed", 0)):
            value = getattr(self, key)
            check_legal(value >= least, key, value, f"an integer >= {least}")

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run and the trees.

        Parameters
        ----------
        jobs
            Facts about the jobs of the run.
        """
        super().begin(jobs)
        # numbers in the order of first appearance: a name is unknown before the first job with it
        self._models: defaultdict[str | None, int] = defaultdict(count().__next__, {None: -1})
        self._gpu_types: defaultdict[tuple[str, ...] | None, int] = defaultdict(count().__next__, {None: -1})
        self._refits = Refits(self.refit, self.window, self._make_trees)

    def _make_trees(self) -> Any:
        from sklearn.ensemble import RandomForestRegressor  # slow to import, and few runs need it

        return RandomForestRegressor(self.trees, min_samples_leaf=self.leaf, random_state=self.seed)

    def observe(self, job: int, now: float, length: float) -> None:
        """Add a run to the history, with its features at submission; fit the forest again when it is due.

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
        self._refits.complete(job, math.log1p(length))

    def features(self, job: int, now: float) -> dict[str, float]:
        """Return the features of a job that is submitted now, with all lengths as y = log(1 + n). O(1).

        Group and user are encoded by the mean y of their completed runs (the past only) and the number of these runs;
        ``group_since`` is log(1 + seconds since the latest run of the group completed). Features that a group does not
        have yet are filled from its user's runs, then from all runs, then from ``prior``, like the predictions
        themselves. Replicas are not a feature of their own: there is one a GPU. Batch sizes are not part of an
        instance.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its release date, in seconds.
        """
        jobs, (group, user, every) = self._jobs, self._known(job)
        user_mean = user.mean if user else every.median if every else math.log1p(self.prior)
        types, (hour, weekday) = jobs.gpu_types[job], hour_and_weekday(now)
        return {
            "group_mean": group.mean if group else user_mean,
            "group_count": group.count if group else 0,
            "group_since": math.log1p(max(now - group.latest, 0.0)) if group else NEVER,
            **{f"group_last_{back}": group.last(back) if group else user_mean for back in (1, 2, 3)},
            "group_median": group.median if group else user_mean,
            "group_max": group.ranked[-1] if group else user_mean,
            "user_mean": user_mean,
            "user_count": user.count if user else 0,
            "model": self._models[jobs.model[job]],
            "gpus": jobs.gpus[job],
            "stages": jobs.stages[job],
            "gpu_types": self._gpu_types[None if types is None else tuple(sorted(types))],
            "hour": hour,
            "weekday": weekday,
        }

    def _length(self, job: int, now: float) -> float:
        row = self._refits.asked[job] = np.array([*self.features(job, now).values()], dtype=np.float32)
        group, user, every = self._known(job)
        if group is None or group.count < KNOWN:
            y = user.mean if user else every.median if every else None
            return self.prior if y is None else math.expm1(y)
        return math.expm1(group.mean if self._refits.trees is None else mean_of(self._refits.trees, row))
