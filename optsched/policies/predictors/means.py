"""``global-mean``: every job is like the average job; ``group-mean``: like the earlier runs of the same script."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS
from optsched.policies.predictors.learner import Learner, Runs

MEANS = ("geometric", "arithmetic")


@dataclass
class Mean(Learner):
    """A mean of completed runs.

    The ``geometric`` mean is exp(mean of log(1 + n)) - 1, the mean on the scale on which ratios n^/n count. The
    ``arithmetic`` mean is the plain mean of n, which a few long runs dominate.
    """

    mean: str = "geometric"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(self.mean in MEANS, "mean", self.mean, " or ".join(MEANS))

    def _of(self, runs: Runs) -> float:
        return math.expm1(runs.mean) if self.mean == "geometric" else runs.lengths / runs.count


@PREDICTORS.register("global-mean")
@dataclass
class GlobalMean(Mean):
    """The mean of all runs that completed before; before the first: ``prior``. O(log n) a job.

    This baseline uses no fact of a job; any other predictor should be better.

    Parameters
    ----------
    prior
        Length before any run has completed, in the unit of the job.
    mean
        ``geometric`` or ``arithmetic``.
    """

    registered: ClassVar[str] = "global-mean"

    def _length(self, job: int, now: float) -> float:
        *_, runs = self._known(job)
        return self.prior if runs is None else self._of(runs)


@PREDICTORS.register("group-mean")
@dataclass
class GroupMean(Mean):
    """The mean of the completed runs of the job's group. O(log n) a job.

    If there are none: the mean of its user's runs; if there are none of these: of all runs; before the first:
    ``prior``.

    Parameters
    ----------
    prior
        Length before any run has completed, in the unit of the job.
    mean
        ``geometric`` or ``arithmetic``.
    """

    registered: ClassVar[str] = "group-mean"

    def _length(self, job: int, now: float) -> float:
        group, user, every = self._known(job)
        runs = group or user or every
        return self.prior if runs is None else self._of(runs)
