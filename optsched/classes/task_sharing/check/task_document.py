"""A log of tasks as plain arrays: evidence next to that of its gangs (`optsched.check.schedule_document`)."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from optsched.check.schedule_document import ScheduleDocument, document_of, document_of_json
from optsched.classes.task_sharing.problem.task_log import TaskSchedule
from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.documents import parse_json
from optsched.problem.instance import Instance
from optsched.problem.parquet import parquet_metadata, read_parquet

TASKS_FORMAT = "optsched-tasks/1"
_TASKS_HEADER = "optsched-tasks"
_GANG = ("job", "gpus", "start", "end", "work")
NO_JOB = -1
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class TaskDocument:
    """R tasks exactly as claimed, beside the ``gangs`` on which they ran; nothing in it has been checked.

    ``job`` i64[R] is -1 where the task is of no job of the instance; ``worker`` i64[R] (-1: an all-reduce); ``start`` and
    ``end`` f64[R] seconds.
    """

    gangs: ScheduleDocument
    job: Ints
    worker: Ints
    start: Floats
    end: Floats


def task_document_of(schedule: TaskSchedule, instance: Instance) -> TaskDocument:
    """Return the document of a schedule in memory.

    Parameters
    ----------
    schedule
        Schedule with a log of its tasks.
    instance
        Instance whose jobs the document is about. The schedule may have been made for another instance: ids of
        jobs are matched.

    Raises
    ------
    InputError
        If the schedule has no log, or the arrays of the log do not fit together.
    """
    log = schedule.tasks
    if log is None:
        raise InputError("the schedule was made without a log of its tasks", field="tasks", legal="a TaskLog")
    job, worker = (np.asarray(column, dtype=np.int64) for column in (log.job, log.worker))
    start, end = (np.asarray(column, dtype=np.float64) for column in (log.start, log.end))
    if not (job.ndim == 1 and job.shape == worker.shape == start.shape == end.shape):
        raise InputError("the arrays of the log have different lengths", field="tasks", legal="R, R, R and R")
    made_for = schedule.instance
    job = np.where((job < 0) | (job >= made_for.n), NO_JOB, job)
    if made_for.digest != instance.digest:  # its job 3 may be our job 5
        position = {name: j for j, name in enumerate(instance.ids)}
        job = np.array([*(position.get(name, NO_JOB) for name in made_for.ids), NO_JOB], dtype=np.int64)[job]
    return TaskDocument(document_of(schedule, instance), job, worker, start, end)


def is_task_claim(content: bytes) -> bool:
    """Return whether a Parquet file holds tasks; False for a damaged file.

    Parameters
    ----------
    content
        Content of the file.
    """
    try:
        return _TASKS_HEADER in parquet_metadata(content, "", TASKS_FORMAT)
    except InputError:
        return False


def task_claim_of_parquet(content: bytes, instance: Instance, path: str | os.PathLike[str]) -> TaskDocument:
    """Return the document of a Parquet file of tasks.

    Parameters
    ----------
    content
        Content of the file.
    instance
        Instance whose jobs the document is about.
    path
        Path of the file, for messages.

    Raises
    ------
    InputError
        If the file is damaged, or a field is missing or has another type than the format defines.
    """
    metadata, table = read_parquet(content, path, TASKS_FORMAT)
    head = parse_json(metadata.get(_TASKS_HEADER, "null").encode(), path, TASKS_FORMAT)
    if not isinstance(head, dict) or head.get("format") != TASKS_FORMAT:
        raise InputError("not a file of tasks", file=path, field="format", legal=TASKS_FORMAT)
    gangs = document_of_json({**head, "segments": _segments(head.get("gangs"), path)}, instance, path)
    for field in ("job", "worker", "start", "end"):
        dtype = table.schema.get(field)
        if dtype is None or not (dtype.is_integer() if field in ("job", "worker") else dtype.is_numeric()):
            message = "missing" if dtype is None else f"a column of the wrong type {dtype}"
            raise InputError(
                message, file=path, field=field, legal="integers" if field in ("job", "worker") else "numbers"
            )
        if table[field].null_count():
            raise InputError("a task without this field", file=path, field=field)
    job, worker = (_whole_column(table[field]) for field in ("job", "worker"))
    start, end = (table[field].cast(pl.Float64).to_numpy() for field in ("start", "end"))
    gangs = replace(gangs, stated=frozenset({TaskSchedule.stated}))
    return TaskDocument(gangs, np.where((job < 0) | (job >= instance.n), NO_JOB, job), worker, start, end)


def _segments(gangs: Any, path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    if not isinstance(gangs, list):
        raise InputError("missing, or not a list", file=path, field="gangs", legal=f"lists of {', '.join(_GANG)}")
    for g, row in enumerate(gangs):
        if not isinstance(row, list) or len(row) != len(_GANG):
            raise InputError("not a gang", file=path, field=f"gangs[{g}]", value=row, legal=", ".join(_GANG))
    return [dict(zip(_GANG, row, strict=True)) for row in gangs]


def _whole_column(column: pl.Series) -> Ints:
    """Integers of any width as i64; what no 32 bits hold becomes the largest that they do, which names nothing."""
    return column.cast(pl.Int64, strict=False).fill_null(LARGEST).clip(-LARGEST, LARGEST).to_numpy()
