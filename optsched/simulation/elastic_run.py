"""`ElasticRun`: a run whose policy may give jobs other numbers of GPUs than they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optsched.simulation.metrics import HOUR, metrics, offered_hours
from optsched.simulation.run import Run
from optsched.simulation.schedule_tables import first_starts


@dataclass(frozen=True, eq=False, repr=False)
class ElasticRun(Run):
    """A `Run` in which jobs may change their number of GPUs, at the cost of ``restart`` seconds, or of its own.

    ``preemptions`` counts how often the GPUs of a job that had started changed, or were taken away.
    """

    restart: float = 0.0
    elastic: bool = True

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """See `optsched.simulation.metrics.metrics`; busy GPU-hours are those at work, overhead those of restarts."""
        found, schedule = metrics(self.schedule), self.schedule.relative
        held = schedule.end - schedule.start
        hours = float(np.dot(schedule.gangs, held)) / HOUR
        own = self.instance.restart[schedule.job]
        pays = (self.restart > 0) | (
            schedule.start > first_starts(schedule)[schedule.job]
        )  # first starts as the policy's do
        work = held - np.where(np.isnan(own), self.restart, own) * pays
        busy = float(np.dot(schedule.gangs, np.maximum(work, 0.0))) / HOUR
        total = offered_hours(schedule)
        split = {**found["gpu_hours"], "busy": busy, "overhead": hours - busy}
        return {**found, "utilization": busy / total if total > 0 else 0.0, "gpu_hours": split}

    @property
    def schedule_class(self) -> str:
        """``elastic``; ``gang`` where no job of the instance is."""
        return "elastic" if self.elastic else "gang"
