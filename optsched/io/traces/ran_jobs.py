"""Parts that logs of jobs that ran share: whole GPUs, runs from a start to an end, stated durations, and GPU types."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from optsched.io.traces.dialect import TraceRequest
from optsched.io.traces.rows import Rows, pieces_of
from optsched.problem.cluster import MAX_GPUS, Cluster, NodeGroup
from optsched.rounding import number

NO_TYPE = NodeGroup(1).gpu
TOLERANCE = 1.0  # seconds by which a stated duration may differ: many logs cut times to the second
UNIT_NAMES = {"gpu": "GPUs", "cpu": "CPUs", "node": "nodes"}


def whole_gangs(rows: Rows, held: pl.Series, field: str, *, unit: str = "gpu") -> pl.Series:
    """Return gangs as whole numbers, i64[rows]; jobs without GPUs and with parts of GPUs are left out by reason.

    Parameters
    ----------
    rows
        Rows of the file.
    held
        GPUs that each job held, f64[rows] >= 0; parts of a GPU are legal.
    field
        Name of the column, for rows with too many.
    unit
        What is counted: ``gpu``, ``cpu`` or ``node``.
    """
    name = UNIT_NAMES[unit]
    rows.leave_out(held == 0, f"no {name}")
    rows.leave_out(held < 1, f"a share of a {name.removesuffix('s')}")
    rows.leave_out(held != held.floor(), f"{name} that are not a whole number")
    rows.reject((held > MAX_GPUS).fill_null(False), field, f"at most {MAX_GPUS:,}")
    return held.cast(pl.Int64, strict=False).alias(field)


def runs(
    rows: Rows, start: pl.Series, end: pl.Series, *, ends: str, unfinished: str = "not ended"
) -> dict[str, pl.Series]:
    """Return the columns ``duration`` and ``ran`` of jobs that ran once; jobs that did not are left out by reason.

    Parameters
    ----------
    rows
        Rows of the file.
    start
        Starts in seconds, f64[rows]; null: none is stated.
    end
        Ends in seconds, f64[rows]; null: none is stated.
    ends
        Name of the column of ends.
    unfinished
        Reason of jobs without an end.
    """
    rows.leave_out(start.is_null(), "no start time")
    rows.leave_out(end.is_null(), unfinished)
    rows.leave_out(end == start, "run time 0")
    rows.reject((end < start).fill_null(False), ends, "an end that is not before the start", "ends before it starts")
    return {"duration": (end - start).alias("end less start"), "ran": pieces_of(start, end)}


def say_other_durations(rows: Rows, field: str, stated: pl.Series, computed: pl.Series) -> None:
    """Note how many rows state a duration that is not their end less their start, and the first of them.

    Parameters
    ----------
    rows
        Rows of the file.
    field
        Name of the column of stated durations.
    stated
        Its seconds, f64[rows]; null: none is stated.
    computed
        End less start in seconds, f64[rows].
    """
    other = rows.good & ((stated - computed).abs() > TOLERANCE).fill_null(False)
    if other.any():
        line, says, lasted = (column.filter(other)[0] for column in (rows.line, stated, computed))
        count = f"{int(other.sum()):,} of {int(rows.good.sum()):,} rows"
        first = f"the first in row {line}: {number(says, 10)} s, not {number(lasted, 10)} s"
        rows.say(f"{count} state another {field} than end - start, {first}; end - start is used")


def said_of(rows: Rows, which: pl.Series, line: str) -> None:
    """Note a line about the good rows of a kind, with their number in place of ``{}``, if there is one.

    Parameters
    ----------
    rows
        Rows of the file.
    which
        Rows of that kind, bool[rows].
    line
        Text with ``{}``.
    """
    count = int((rows.good & which.fill_null(False)).sum())
    if count:
        rows.say(line.format(f"{count:,}"))


def allowed_types(
    request: TraceRequest, rows: Rows, types: pl.Series, own: Cluster | None = None
) -> Mapping[str, pl.Series]:
    """Return the column ``gpu_types``; no column if the cluster of the request does not name the types of its GPUs.

    Parameters
    ----------
    request
        The file and the options of the call.
    rows
        Rows of the file.
    types
        GPU types that each job may use, List(String)[rows]; null: any.
    own
        Cluster that the source brings.
    """
    cluster = request.cluster or own
    if cluster is not None and any(group.gpu != NO_TYPE for group in cluster.nodes):
        return {"gpu_types": types}
    said_of(
        rows, types.is_not_null(), "the GPU types that {} of the jobs name are dropped, because the cluster names none"
    )
    return {}
