"""``group-mean``: a run lasts as long as the earlier runs of the same script."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.policies.predictors import PREDICTORS
from optsched.policies.predictors.global_mean import Mean
from optsched.policies.predictors.text import spelled


@PREDICTORS.register("group-mean")
@dataclass
class GroupMean(Mean):
    """The mean of the completed runs of the job's group. O(log n) a job.

    Without any: the mean of its user's runs; without those: of all runs; before the first: ``prior``.
    """

    @property
    def name(self) -> str:
        """Shown in reports."""
        return spelled("group-mean", self)

    def _length(self, job: int) -> float:
        jobs, history = self.jobs, self._history
        runs = history.group(jobs, job) or history.user(jobs, job) or history.all(jobs, job)
        return self.prior if runs is None else self._of(runs)
