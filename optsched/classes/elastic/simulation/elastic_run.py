"""`ElasticRun`: a run in which jobs may change their number of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from optsched.problem.instance import Instance
from optsched.simulation.metrics import HOUR, first_starts, metrics, offered_hours
from optsched.simulation.policy import Policy
from optsched.simulation.run import RUNS, Run, RunKind


@dataclass(frozen=True, eq=False, repr=False)
class ElasticRun(Run):
    """A `Run` in which jobs may change their number of GPUs, at the cost of ``restart`` seconds, or of its own.

    ``preemptions`` counts how often the GPUs of a job that had started changed, or were taken away.
    """

    restart: float = 0.0
    elastic: bool = True
    always_preempts: ClassVar[bool] = True

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """See `optsched.simulation.metrics.metrics`; busy GPU-hours are those at work, overhead those of restarts."""
        found, schedule = metrics(self.schedule), self.schedule.relative
        held = schedule.end - schedule.start
        hours = float(np.dot(schedule.gangs, held)) / HOUR
        own = self.instance.restart[schedule.job]
        # first starts pay as the policy's do
        pays = (self.restart > 0) | (schedule.start > first_starts(schedule)[schedule.job])
        work = held - np.where(np.isnan(own), self.restart, own) * pays
        busy = float(np.dot(schedule.gangs, np.maximum(work, 0.0))) / HOUR
        total = offered_hours(schedule)
        split = {**found["gpu_hours"], "busy": busy, "overhead": hours - busy}
        return {**found, "utilization": busy / total if total > 0 else 0.0, "gpu_hours": split}

    @property
    def schedule_class(self) -> str:
        """``elastic``; ``gang`` where no job of the instance is."""
        return "elastic" if self.elastic else "gang"


def _facts(policy: Policy, instance: Instance) -> dict[str, Any]:
    return {"restart": float(policy.restart), "elastic": instance.elastic}


RUNS.register("elastic", RunKind(run=ElasticRun, facts=_facts))
