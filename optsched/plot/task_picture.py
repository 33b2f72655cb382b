"""`TaskPicture`: the tasks of a schedule that lie in a window, where each of them ran, and what fits into one picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.schedule import node_first
from optsched.problem.task_log import TRANSFER, TaskLog, TaskSchedule

if TYPE_CHECKING:
    from optsched.problem.schedule import Schedule
    from optsched.simulation.run import Run


MOST_TASKS = 20_000  # beyond, blocks are smaller than a pixel
FIRST_TASKS = 3_000  # without a window that was asked for, as many as can be told apart


@dataclass(frozen=True, eq=False)
class TaskPicture:
    """What is drawn of ``schedule`` between ``start`` and ``end`` seconds.

    K tasks on GPUs: ``job``, ``node``, ``gpu`` i64[K] (numbered over the cluster), ``backward`` bool[K], ``begin``,
    ``until`` f64[K].
    T all-reduces: ``sender`` i64[T] their jobs, ``sent``, ``received`` f64[T] when they start and end; ``spanned`` maps a
    job to the nodes of its gang. ``last``: when the schedule ends.
    """

    schedule: TaskSchedule
    start: float
    end: float
    last: float
    job: Ints
    node: Ints
    gpu: Ints
    backward: Bools
    begin: Floats
    until: Floats
    sender: Ints
    sent: Floats
    received: Floats
    spanned: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, run: Run | Schedule, start: float | None = None, end: float | None = None) -> TaskPicture:
        """The tasks in a window; without one all of them, or of a long log the first `FIRST_TASKS`.

        Raises `InputError` for a schedule without a log of tasks, an empty window, or one with more than `MOST_TASKS`.
        O(R) for R tasks, and O(r log r) for the r tasks of the jobs that are seen.
        """
        schedule = logged(run)
        log = schedule.tasks
        assert log is not None
        gang = _gangs(schedule, log)
        first = float(log.start.min(initial=0.0))
        last = float(log.end.max(initial=first))
        low, high = _window(log, first, last, start, end)
        seen = (log.start < high) & (log.end > low) & (log.end > log.start)
        if int(seen.sum()) > MOST_TASKS:
            message = f"{int(seen.sum()):,} tasks are too many for one picture"
            raise InputError(
                message, field="start, end", value=(low, high), legal=f"a window of at most {MOST_TASKS:,}"
            )
        computed = seen & (log.worker != TRANSFER)
        sent = seen & (log.worker == TRANSFER)
        job = log.job.astype(np.int64)
        place = schedule.gpu_offset[gang[job[computed]]] + log.worker[computed]
        node = schedule.gpu_node[place]
        gpu = node_first(schedule.instance)[node] + schedule.gpu_index[place]
        return cls(
            *(schedule, low, high, last, job[computed], node, gpu, _is_backward(log, computed)),
            *(log.start[computed], log.end[computed], job[sent], log.start[sent], log.end[sent]),
            {j: _nodes(schedule, gang[j]) for j in np.unique(job[sent]).tolist()},
        )


def logged(run: Run | Schedule) -> TaskSchedule:
    """The schedule of ``run`` if it has a log of its tasks, else an `InputError`."""
    schedule = getattr(run, "schedule", run)
    if not isinstance(schedule, TaskSchedule):
        raise InputError("its jobs have no tasks", field="schedule", legal="a schedule at the task level")
    if schedule.tasks is None:
        raise InputError("the schedule was made without a log of its tasks", field="record", value=False, legal="True")
    return schedule


def _gangs(schedule: TaskSchedule, log: TaskLog) -> Ints:
    """The segment of every job, i64[n], -1: none; `InputError` when a task is of no worker of its job's gang."""
    gang = np.full(schedule.instance.n, -1, dtype=np.int64)
    gang[schedule.job] = np.arange(schedule.job.size)
    bad = (log.job < 0) | (log.job >= gang.size) | ~np.isfinite(log.start + log.end)
    mine = gang[np.where(bad, 0, log.job)] if gang.size else np.full(len(log), -1)
    size = np.append(np.diff(schedule.gpu_offset), 0)[mine]
    bad |= (mine < 0) | (log.worker < TRANSFER) | (log.worker >= size)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"task {row + 1} (of {len(log)}) cannot be drawn",
            field="job, worker, start, end",
            value=(int(log.job[row]), int(log.worker[row]), float(log.start[row]), float(log.end[row])),
            legal="a worker of a gang that was placed, at finite times",
        )
    return gang


def _window(log: TaskLog, first: float, last: float, start: float | None, end: float | None) -> tuple[float, float]:
    for field, value in (("start", start), ("end", end)):
        if value is not None and not math.isfinite(value):
            raise InputError("invalid", field=field, value=value, legal="a finite number of seconds")
    low = first if start is None else float(start)
    high = last if end is None else float(end)
    if start is None and end is None and len(log) > FIRST_TASKS:
        high = float(np.partition(log.start, FIRST_TASKS)[FIRST_TASKS])
    elif start is not None and end is None and start < last:
        later = log.start[log.end > start]
        if later.size > FIRST_TASKS:
            high = float(np.partition(later, FIRST_TASKS)[FIRST_TASKS])
    if not len(log) and start is None and end is None:
        return 0.0, 1.0
    if not low < high:
        legal = f"start < end, within the {last:g} s of the schedule"
        raise InputError("an empty window", field="start, end", value=(low, high), legal=legal)
    return low, high


def _is_backward(log: TaskLog, computed: Bools) -> Bools:
    """Which of the tasks in ``computed`` are backward: every second one of a worker, by start."""
    wanted = np.zeros(int(log.job.max(initial=0)) + 1, dtype=bool)
    wanted[log.job[computed]] = True
    rows = np.flatnonzero(wanted[log.job] & (log.worker != TRANSFER))
    order = rows[np.lexsort((log.end[rows], log.start[rows], log.worker[rows], log.job[rows]))]
    job, worker = log.job[order], log.worker[order]
    new = np.concatenate([[True], (np.diff(job) != 0) | (np.diff(worker) != 0)]) if order.size else np.zeros(0, bool)
    rank = np.arange(order.size)
    found = np.zeros(len(log), dtype=bool)
    found[order] = (rank - np.maximum.accumulate(np.where(new, rank, 0))) % 2 == 1
    return found[computed]


def _nodes(schedule: TaskSchedule, segment: int) -> tuple[int, ...]:
    own = slice(int(schedule.gpu_offset[segment]), int(schedule.gpu_offset[segment + 1]))
    return tuple(sorted(set(schedule.gpu_node[own].tolist())))
