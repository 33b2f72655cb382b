"""Dialect ``batsim``: the jobs that the simulator Batsim writes, ``out_jobs.csv``, with the schedule that it found.

Comma-separated, with a header (columns in any order, more columns are ignored)::

    job_id,workload_name,submission_time,requested_number_of_resources,requested_time,final_state,starting_time,
    execution_time,finish_time,allocated_resources                                         (one line in the file)
    w0!5,w0,63.25,4,149.0,COMPLETED_WALLTIME_REACHED,66.375,149.0,215.375,0-1 3 5

==============================  ===================================================================================
column                          becomes
==============================  ===================================================================================
job_id                          ``id``; ``WORKLOAD!ID`` where the ids of several workloads are the same
submission_time                 ``arrival`` in seconds, kept unchanged
requested_number_of_resources   ``gpus``; the allocated ones where their number differs, which is reported
requested_time                  ``walltime``, the limit; empty or -1: none
final_state                     ``status``; rejected jobs and others that never started are left out
starting_time, finish_time      ``ran``, and finish_time - starting_time is ``duration``
execution_time                  ``duration`` where it differs by rounding only; rows that differ by more are reported
allocated_resources             intervals such as ``0-1 3 5``, empty for a job that never ran: their number is checked, and
                                the cluster is one node with the highest of all, counted from 0, unless ``--cluster`` says
==============================  ===================================================================================

A resource of Batsim is a host of its platform; a job that reached its limit was killed there. The places are not kept: an
instance says when a job held GPUs, and how many.

Format: Batsim's documentation at commit ba7ea85, "Outputs"; rows made like the examples of evalys at commit 1a1d812.
"""

from __future__ import annotations

import re
from itertools import pairwise

import polars as pl

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.rows import Rows, pieces_of
from optsched.io.traces.text_table import read_text_table
from optsched.problem.cluster import MAX_GPUS, Cluster
from optsched.rounding import counted

HEADER = (
    *("job_id", "submission_time", "requested_number_of_resources", "requested_time", "final_state"),
    *("starting_time", "execution_time", "finish_time", "allocated_resources"),
)
REJECTED = "REJECTED"
ROUNDING = 1e-3  # seconds by which an execution time may differ from finish - start
_INTERVALS = re.compile(r"\d{1,9}(-\d{1,9})?([ ,]+\d{1,9}(-\d{1,9})?)*")


@dialect("batsim", header=HEADER, guesses_cluster=True, counts="hosts")
def read(request: TraceRequest) -> TraceRead:
    """Batsim's jobs, out_jobs.csv: the schedule of a simulation.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(read_text_table(request.path))
    require_header(rows, HEADER)
    name, state = rows.unique("job_id"), rows.text("final_state")
    if "workload_name" in rows.columns and name.is_duplicated().any():
        workload = rows.text("workload_name", required=False)
        name = rows.named(pl.select(pl.concat_str(workload, name, separator="!", ignore_nulls=True)).to_series())
    start, end, work = (
        rows.number(column, required=False) for column in ("starting_time", "finish_time", "execution_time")
    )
    limit, asked = rows.number("requested_time", required=False), rows.gang("requested_number_of_resources")
    submitted = rows.non_negative("submission_time")
    held, highest = _resources(rows)
    rows.leave_out(start.is_null() & (state == REJECTED), "rejected")
    rows.leave_out(start.is_null() | end.is_null(), "never ran")
    rows.reject(end < start, "finish_time", "a time from the start on", "before the start")
    rows.leave_out(end == start, "ran for 0 s")
    duration = _duration(rows, start, end, work)
    other = rows.good & (held != asked).fill_null(False)
    if other.any():
        rows.say(
            f"{counted(int(other.sum()), 'job')} held another number of resources than requested: what was held is taken"
        )
    gpus = pl.select(pl.coalesce(held, asked).alias(asked.name)).to_series()
    named = highest.filter(rows.good).drop_nulls().to_numpy()
    most = int(named.max(initial=-1))
    cluster = None if most < 0 else Cluster.parse(f"1x{most + 1}")
    if cluster is not None and request.cluster is None:
        rows.say(f"the cluster is guessed: resources up to {most} were in use; state yours with --cluster")
    jobs = {"id": name, "arrival": submitted, "gpus": gpus, "duration": duration, "status": state}
    jobs["walltime"] = limit.to_frame().select(pl.when(pl.col(limit.name) > 0).then(limit.name)).to_series()
    jobs["ran"] = pieces_of(start, start + duration)
    return finish(request, rows, jobs, cluster=cluster)


def _duration(rows: Rows, start: pl.Series, end: pl.Series, work: pl.Series) -> pl.Series:
    """Return seconds from start to end, as execution times where those differ by rounding; report others."""
    frame = pl.DataFrame({"computed": end - start, "work": work})
    near = (pl.col("work") - pl.col("computed")).abs() <= ROUNDING
    differ = rows.good & frame.select((~near & pl.col("work").is_not_null()).fill_null(False)).to_series()
    if differ.any():
        line = rows.line.filter(differ)[0]
        count = f"in {counted(int(differ.sum()), 'row')} the execution_time is not finish_time - starting_time"
        rows.say(f"{count}, the first in row {line}; finish_time - starting_time is used")
    return frame.select(pl.when(near & (pl.col("work") > 0)).then("work").otherwise("computed")).to_series()


def _resources(rows: Rows) -> tuple[pl.Series, pl.Series]:
    # number of resources in the intervals of each row, and the highest one, i64[rows]; null where there is none
    column = "allocated_resources"
    text = rows.text(column, required=False)
    texts = text.drop_nulls().unique(maintain_order=True)
    known = pl.DataFrame([_intervals(each) for each in texts], schema=["held", "highest"], orient="row")
    known = known.cast(pl.Int64).with_columns(texts.alias(column))
    found = text.to_frame().join(known, on=column, how="left", maintain_order="left")
    legal = f"intervals such as 0-1 3 5, without a resource twice, below {MAX_GPUS:,}"
    rows.reject(text.is_not_null() & found["held"].is_null(), column, legal)
    return found["held"], found["highest"]


def _intervals(text: str) -> tuple[int, int] | tuple[None, None]:
    if not _INTERVALS.fullmatch(text):
        return None, None
    ends = sorted((int(first), int(last or first)) for first, last in re.findall(r"(\d+)(?:-(\d+))?", text))
    apart = all(before[1] < after[0] for before, after in pairwise(ends))
    if not apart or any(first > last for first, last in ends) or ends[-1][1] >= MAX_GPUS:
        return None, None
    return sum(last - first + 1 for first, last in ends), ends[-1][1]
