"""``forest``: random-forest regression on what is known of a job and of the earlier runs of its group."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS
from optsched.policies.predictors.learner import History, Learner, Refits, Row, Runs
from optsched.simulation.policy import JobFacts

NAMES = (
    "group_mean",
    "group_count",
    "group_since",
    "group_last_1",
    "group_last_2",
    "group_last_3",
    "group_median",
    "group_max",
    "user_mean",
    "user_count",
    "model",
    "gpus",
    "stages",
    "gpu_types",
    "hour",
    "weekday",
)
NEVER = -1.0  # where there is no latest run; below every log(1 + seconds)
DAY = 86400.0


class Features:
    """Rows f32[16] in the order of ``NAMES``; all lengths as y = log(1 + n).

    Group and user are encoded by the mean y of their completed runs (the past only), with how many there are;
    ``group_since`` is log(1 + seconds since the latest run of the group completed). What a group does not have yet is
    filled from its user's runs, then from all runs, then from ``prior``, like the predictions themselves. Replicas are
    not a feature of their own: there is one a GPU. Batch sizes are not part of an instance. Hours and weekdays count from
    time 0.
    """

    def __init__(self, prior: float) -> None:
        self._prior = math.log1p(prior)
        # numbers in the order of first appearance: no name is known before a job bears it
        self._models = defaultdict[str | None, int](count().__next__, {None: -1})
        self._gpu_types = defaultdict[tuple[str, ...] | None, int](count().__next__, {None: -1})

    def row(self, jobs: JobFacts, job: int, now: float, history: History) -> Row:
        """The features of ``job``, submitted at ``now``. O(1)."""
        group, user, every = history.group(jobs, job), history.user(jobs, job), history.all(jobs, job)
        overall = every.median if every else self._prior
        user_mean = user.mean if user else overall
        types = jobs.gpu_types[job]
        return np.array(
            (
                *_of_group(group, user_mean, now),
                user_mean,
                user.count if user else 0,
                self._models[jobs.model[job]],
                jobs.gpus[job],
                jobs.stages[job],
                self._gpu_types[None if types is None else tuple(sorted(types))],
                now % DAY // 3600,
                now // DAY % 7,
            ),
            dtype=np.float32,
        )


def _of_group(runs: Runs | None, otherwise: float, now: float) -> tuple[float, ...]:
    if runs is None:
        return otherwise, 0, NEVER, otherwise, otherwise, otherwise, otherwise, otherwise
    since = math.log1p(max(now - runs.latest, 0.0))
    return runs.mean, runs.count, since, runs.last(1), runs.last(2), runs.last(3), runs.median, runs.highest


def trees_of(forest: Any) -> tuple[Any, ...]:
    """The trees of a fitted scikit-learn forest."""
    return tuple(each.tree_ for each in forest.estimators_)


def mean_of(trees: tuple[Any, ...], row: Row) -> float:
    """The bits of ``forest.predict`` for one row, without its checks and threads, which cost milliseconds a call."""
    return float(sum(tree.predict(row[np.newaxis]).item() for tree in trees) / len(trees))


KNOWN = 3  # runs of a group from which on it counts as seen


@PREDICTORS.register("forest")
@dataclass
class Forest(Learner):
    """Random forest on y = log(1 + n), strictly online: the features of a job at its submission, refitted as runs complete.

    ``trees`` trees with at least ``leaf`` runs a leaf and a fixed ``seed``; fitted after the first 100 completions (or
    ``refit``, if fewer) and again after every further ``refit``, on the last ``window`` completed runs, each with the
    features it had when it was submitted (`optsched.policies.predictors.forest`). A job whose group has fewer than 3
    completed runs gets the mean y of its user's runs, else the median y of all runs, else ``prior``; before the first
    fit a known group gets its mean.

    **Guarantee** none: a forest averages observed lengths, so that it never leaves their range, but a changed script is
    wrong by the change. **Complexity** O(trees x depth) a job; a fit takes O(trees x window log^2 window) time.
    **Reference** Luo, Liu, Lee, Shroff 2025 (arXiv 2501.05563) predict iterations by random-forest regression; features,
    refitting and cold start are this project's own. Breiman 2001.
    """

    trees: int = 100
    leaf: int = 2
    refit: int = 500
    seed: int = 0
    window: int = 5_000

    registered: ClassVar[str] = "forest"

    _features: Features = field(init=False, repr=False, compare=False)
    _fitted: tuple[Any, ...] | None = field(init=False, repr=False, compare=False)
    _refits: Refits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, least in (("trees", 1), ("leaf", 1), ("refit", 1), ("window", 1), ("seed", 0)):
            value = getattr(self, key)
            check_legal(value >= least, key, value, f"an integer >= {least}")

    def begin(self, jobs: JobFacts) -> None:
        """Forget every run and the trees."""
        super().begin(jobs)
        self._features, self._fitted, self._refits = Features(self.prior), None, Refits(self.refit, self.window)

    def observe(self, job: int, now: float, length: float) -> None:
        """The run enters the history, with the features it had at its submission; now and then the forest is refitted."""
        super().observe(job, now, length)
        if self._refits.complete(job, math.log1p(length)):
            self._fit()

    def _fit(self) -> None:
        from sklearn.ensemble import RandomForestRegressor  # slow to import, and few runs need it

        forest = RandomForestRegressor(self.trees, min_samples_leaf=self.leaf, random_state=self.seed)
        self._fitted = trees_of(forest.fit(*self._refits.take()))

    def _length(self, job: int, now: float) -> float:
        jobs, history = self._jobs, self._history
        row = self._refits.submit(job, self._features.row(jobs, job, now, history))
        group = history.group(jobs, job)
        if group is None or group.count < KNOWN:
            user, every = history.user(jobs, job), history.all(jobs, job)
            y = user.mean if user else every.median if every else None
            return self.prior if y is None else math.expm1(y)
        if self._fitted is None:
            return math.expm1(group.mean)
        return math.expm1(mean_of(self._fitted, row))
