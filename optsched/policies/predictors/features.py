"""What a forest sees of a job at its submission: its own facts and the completed runs of its group and its user."""

from __future__ import annotations

import math

import numpy as np

from optsched.policies.predictors.history import History, Runs
from optsched.policies.predictors.trees import Row
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


class Codes:
    """Numbers 0, 1, ... for names in the order of their first appearance: no name is known before a job bears it."""

    def __init__(self) -> None:
        self._codes: dict[object, int] = {}

    def of(self, name: object) -> int:
        """The number of ``name``; -1 for no name."""
        return -1 if name is None else self._codes.setdefault(name, len(self._codes))


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
        self._models, self._gpu_types = Codes(), Codes()

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
                self._models.of(jobs.model[job]),
                jobs.gpus[job],
                jobs.stages[job],
                self._gpu_types.of(None if types is None else tuple(sorted(types))),
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
