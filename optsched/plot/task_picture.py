"""What is drawn of a schedule at the task level: its tasks in a window, and where all-reduces stand on an interface."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.task_log import TRANSFER, TaskLog, TaskSchedule

if TYPE_CHECKING:
    from optsched.problem.schedule import Schedule
    from optsched.simulation.run import Run


MOST_TASKS = 20_000  # beyond, blocks are smaller than a pixel
FIRST_TASKS = 3_000  # without a window that was asked for, as many as can be told apart


@dataclass(frozen=True, eq=False)
class TaskPicture:
    """What is drawn of ``schedule`` between ``start`` and ``end`` seconds.

    K tasks: ``job``, ``node``, ``index`` i64[K] of their GPU there, ``backward`` bool[K], ``begin``, ``until`` f64[K].
    T all-reduces: ``sender`` i64[T] their jobs, ``sent``, ``received`` f64[T] when they start and end; ``spanned`` maps a
    job to the nodes of its gang. ``last``: when the schedule ends.
    """

    schedule: TaskSchedule
    start: float
    end: float
    last: float
    job: Ints
    node: Ints
    index: Ints
    backward: Bools
    begin: Floats
    until: Floats
    sender: Ints
    sent: Floats
    received: Floats
    spanned: dict[int, set[int]]

    @classmethod
    def of(cls, run: Run | Schedule, start: float | None = None, end: float | None = None) -> TaskPicture:
        """The tasks in a window; without one all of them, or of a long log the first `FIRST_TASKS`.

        Raises `InputError` for a schedule without a log of tasks, an empty window, or one with more than `MOST_TASKS`.
        O(R) for R tasks, and O(r log r) for the r tasks of the jobs that are seen.
        """
        schedule = getattr(run, "schedule", run)
        if not isinstance(schedule, TaskSchedule):
            raise InputError("its jobs have no tasks", field="schedule", legal="a schedule at the task level")
        log = schedule.tasks
        if log is None:
            message = "the schedule was made without a log of its tasks"
            raise InputError(message, field="record", value=False, legal="True")
        gang = _gangs(schedule, log)
        last = float(log.end.max(initial=float(log.start.min(initial=0.0))))
        low, high = _window(log, last, start, end)
        seen = (log.start < high) & (log.end > low) & (log.end > log.start)
        if (count := int(seen.sum())) > MOST_TASKS:
            message, legal = f"{count:,} tasks are too many for one picture", f"a window of at most {MOST_TASKS:,}"
            raise InputError(message, field="start, end", value=(low, high), legal=legal)
        computed, sent = seen & (log.worker != TRANSFER), seen & (log.worker == TRANSFER)
        job, offset = log.job.astype(np.int64), schedule.gpu_offset
        place = offset[gang[job[computed]]] + log.worker[computed]
        return cls(
            *(schedule, low, high, last, job[computed], schedule.gpu_node[place], schedule.gpu_index[place]),
            *(_is_backward(log, computed), log.start[computed], log.end[computed]),
            *(job[sent], log.start[sent], log.end[sent]),
            {
                j: set(schedule.gpu_node[offset[gang[j]] : offset[gang[j] + 1]].tolist())
                for j in set(job[sent].tolist())
            },
        )


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


def _window(log: TaskLog, last: float, start: float | None, end: float | None) -> tuple[float, float]:
    for field, value in (("start", start), ("end", end)):
        if value is not None and not math.isfinite(value):
            raise InputError("invalid", field=field, value=value, legal="a finite number of seconds")
    if not len(log) and start is None and end is None:
        return 0.0, 1.0
    low = float(log.start.min(initial=0.0)) if start is None else float(start)
    high = last if end is None else float(end)
    if end is None and low < last:
        later = log.start if start is None else log.start[log.end > low]
        if later.size > FIRST_TASKS:
            high = float(np.partition(later, FIRST_TASKS)[FIRST_TASKS])
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


# --- all-reduces on an interface: side by side in its row, as high as their share of it --------------------------------


class Piece(NamedTuple):
    """From ``start`` to ``end`` a transfer has the part of the row between ``upper`` and ``lower``, in [0, 1] downwards."""

    start: float
    end: float
    upper: float
    lower: float


def side_by_side(start: Sequence[float], end: Sequence[float]) -> list[list[Piece]]:
    """The pieces of every transfer of one interface, each list by time.

    While k run, each has 1 / k of the row; who started first is at the top. At one instant ends come before starts.
    O(m log m + P) for m transfers and P pieces.
    """
    pieces: list[list[Piece]] = [[] for _ in start]
    events = sorted(
        [(time, 1, start[i], i) for i, time in enumerate(start)]
        + [(time, 0, start[i], i) for i, time in enumerate(end)]
    )
    running: list[int] = []
    for (now, starts, _, i), (following, *_) in pairwise(events):
        if starts and end[i] > start[i]:
            running.append(i)
        elif not starts and i in running:
            running.remove(i)
        if following <= now:
            continue
        for position, j in enumerate(running):
            mine, part = pieces[j], (position / len(running), (position + 1) / len(running))
            if mine and mine[-1][2:] == part:
                mine[-1] = mine[-1]._replace(end=following)
            else:
                mine.append(Piece(now, following, *part))
    return pieces


def outline(pieces: Sequence[Piece], top: float, height: float) -> list[tuple[float, float]]:
    """The corners of the polygon that the pieces form in a row that begins at ``top``, clockwise."""
    above = [(x, top + p.upper * height) for p in pieces for x in (p.start, p.end)]
    below = [(x, top + p.lower * height) for p in reversed(pieces) for x in (p.end, p.start)]
    return above + below
