"""`Job`, and the table that jobs make."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.problem.documents import MAX_INTEGER
from optsched.problem.job_table import COLUMNS
from optsched.problem.table import is_pandas, polars_of_pandas


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Seconds and bytes; ``duration`` = seconds alone at full speed on its whole gang.

    Either ``duration`` or ``iterations`` with the name of a ``profile``: a stage profile of the instance, a job type of
    its throughput table, or the tasks of an iteration.
    ``batch_size``: samples of an iteration over the whole gang, for jobs whose ``profile`` is a scaling profile.
    ``gpus`` is the gang size g_j, ``weight`` w_j, ``due`` d_j (None: no due date), ``gpu_memory`` bytes on each GPU,
    ``gpu_types`` the GPU types it may use (None: all; names match case-insensitively).
    ``restart``: seconds that it costs to resume it after it was stopped, or ``checkpoint`` bytes that are then read at the
    cluster's storage bandwidth (None: what the policy says).
    """

    id: str
    arrival: float = 0
    gpus: int = 1
    duration: float | None = None
    iterations: float | None = None
    profile: str | None = None
    weight: float = 1
    due: float | None = None
    user: str | None = None
    group: str | None = None
    model: str | None = None
    gpu_memory: float | None = None
    gpu_types: tuple[str, ...] | None = None
    batch_size: int | None = None
    restart: float | None = None
    checkpoint: float | None = None


JOB_FIELDS = tuple(field.name for field in fields(Job))


def table_of(jobs: Any) -> pl.DataFrame:
    """The table of a list of jobs, or a polars or pandas table as a polars one; `InputError` otherwise."""
    if is_pandas(jobs):
        return polars_of_pandas(jobs)
    if isinstance(jobs, pl.DataFrame):
        return jobs
    if isinstance(jobs, str) or not isinstance(jobs, Iterable):
        legal = "a list of optsched.Job(...), or a polars or pandas table with their columns"
        raise InputError("no jobs", field="jobs", value=jobs, legal=legal)
    return _table_of_jobs(jobs)


def _table_of_jobs(jobs: Iterable[Job]) -> pl.DataFrame:
    rows = list(jobs)
    for position, job in enumerate(rows):
        if not isinstance(job, Job):
            raise InputError("not a job", row=position + 1, value=job, legal="optsched.Job(...)")
    columns: dict[str, list[Any]] = {name: [getattr(job, name) for job in rows] for name in JOB_FIELDS}
    for name, dtype in COLUMNS.items():
        columns[name] = [_legal(value, name, dtype, j + 1) for j, value in enumerate(columns[name])]
    return pl.DataFrame(columns, schema=COLUMNS, strict=True)


def _legal(value: Any, field: str, dtype: pl.DataType, row: int) -> Any:
    # A field of a Job as the table holds it; polars would accept True for 1 and cut a list of types out of a text.
    if value is None:
        return None
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if dtype == pl.Float64:
        legal = "a number"
        if number and (not isinstance(value, int) or abs(value) <= sys.float_info.max):
            return float(value)
    elif dtype == pl.Int64:
        legal = "an integer"
        if isinstance(value, int | np.integer) and number and abs(int(value)) <= MAX_INTEGER:
            return int(value)
    elif dtype == pl.String:
        legal = "text"
        if isinstance(value, str):
            return value
    else:
        legal = "names of GPU types, e.g. ('V100',)"
        if isinstance(value, tuple | list) and all(isinstance(name, str) for name in value):
            return list(value)
    raise InputError("invalid", row=row, field=field, value=value, legal=legal)
