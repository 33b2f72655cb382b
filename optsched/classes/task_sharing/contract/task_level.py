"""The level of policies for tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

from optsched.contract.instances import random_task_instance
from optsched.contract.levels import LEVELS, Level, Rows
from optsched.problem.instance import Instance
from optsched.simulation.run import Run


def task_rows(run: Run, time: Callable[[float], float] = float) -> Rows:
    """Return every task of a run, sorted, with times to 1e-9 s.

    Parameters
    ----------
    run
        Run whose schedule has a log of tasks.
    time
        Function that is applied to every time before it is rounded.
    """
    log: Any = getattr(run.schedule, "tasks")  # noqa: B009 - a schedule of the task level has one
    found = zip(log.job.tolist(), log.worker.tolist(), log.start.tolist(), log.end.tolist(), strict=True)
    return sorted((j, w, round(time(s), 9), round(time(e), 9)) for j, w, s, e in found)


@cache
def _tasks() -> tuple[Instance, ...]:
    # Every kind of cluster and of cost with eta >= 0, with and without latency.
    return tuple(map(random_task_instance, (0, 1, 2, 6, 9, 10)))


TASKS = Level(
    "jobs with tasks",
    _tasks,
    _tasks,
    _tasks,
    random_task_instance,
    (0, 1, 2, 6, 9, 10),
    task_rows,
    lambda job: dataclasses.replace(job, iterations=9, profile="odd"),
)
LEVELS.register("task-sharing", TASKS)
