"""The metrics of a run at the task level."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.problem.arrays import Floats
from optsched.problem.schedule import Schedule
from optsched.simulation.metrics import HOUR, mean_of, metrics, without_overhead


def task_metrics(schedule: Schedule, gpu_busy: Floats) -> dict[str, Any]:
    """Return the metrics of a run at the task level, with the names of `optsched.simulation.metrics.metrics`.

    Queueing is the time until a job is placed; utilization is busy GPU-seconds / (G x T). Waiting GPU-hours are gang x time
    arrived and not computing; so they contain queueing, the tasks of other jobs, and all-reduces. There is no overhead,
    since no job is stopped.

    Parameters
    ----------
    schedule
        Schedule of the run.
    gpu_busy
        Seconds in which every GPU computed, f64[G].
    """
    found = metrics(schedule)
    schedule = schedule.relative
    instance, done = schedule.instance, schedule.finished
    placed = np.full(instance.n, np.nan)
    placed[schedule.job] = schedule.start
    compute = instance.iterations * (instance.forward + instance.backward)
    stay = (schedule.completion - instance.arrival)[done]
    waiting = float(np.dot(instance.gpus[done], np.maximum(stay - compute[done], 0.0))) / HOUR
    queueing = {"mean_queueing": mean_of((placed - instance.arrival)[done])}
    return {**found, **queueing, **without_overhead(schedule, float(gpu_busy.sum()) / HOUR, waiting)}
