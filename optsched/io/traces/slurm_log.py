r"""Dialect ``slurm``: jobs of Slurm's accounting, as ``sacct -P`` or ``sacct --json`` prints them.

The one right export, from which nothing is lost::

    TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -D -P -S 2026-01-01 -E now --format=JobIDRaw,JobID,State,Submit,Eligible,Start,\
    End,ElapsedRaw,Suspended,TimelimitRaw,NNodes,NCPUS,ReqTRES,AllocTRES,Partition,User,Account,NodeList,Flags,Reason,JobName

Any list of fields with JobID, State, Submit, Start, End and AllocTRES is read, with any delimiter:

======================  ==================================================================================================
field                   becomes
======================  ==================================================================================================
JobID (or JobIDRaw)     ``id``: one job for each id, element of an array (``9_4``) and heterogeneous job; steps (``9.0``)
                        only extend the time for which a job holds its GPUs
State                   ``status``, the first word; jobs that never ran, wait or run are left out by reason
Submit, Eligible        ``arrival``: the first submission, or with ``--release eligible`` the moment from which the job could
                        start (after its dependencies, holds and limits), counted from the earliest
Start, End              ``ran``, a piece for every run, until the last of its steps has ended; ``duration``: the GPU-seconds
                        of the pieces divided by the gang
AllocTRES               ``gpus``: ``gres/gpu``, else the sum of its types; the largest piece. ``--unit cpu|node`` counts CPUs
                        or nodes instead. ``gpu_types`` if the GPUs of a job are of one type that the cluster given has
Timelimit(Raw)          ``walltime``: the limit of each run, which does not count its suspension; a job that was requeued may
                        last longer in total. None if it is a year or more, ``UNLIMITED`` or ``Partition_Limit``
Elapsed(Raw)            only compared with End - Start - Suspended, and used where the clock went back
Suspended               taken off ``duration`` for CPUs and nodes; a suspended job keeps its GPUs
User, Account           ``user``, ``group``; with State and Restarts they tell a requeued job from another one to which
                        Slurm gave the id again, which is called ``9#2``
Partition               only named in a note: every job may use all nodes
NodeList                tells whether a job ran, and the shape of the cluster if none is given; names are not kept
======================  ==================================================================================================

``slurm-pending:FILE`` reads the jobs that wait at the end of the export, with ``ReqTRES`` and the limit as duration.

Times are cut to the second. Tried with Slurm 22.05.8, 24.11.5 and 26.05.5.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import polars as pl

from optsched.errors import InputError
from optsched.io.traces import slurm_json, slurm_text
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, gpus_in_use
from optsched.io.traces.rows import Rows
from optsched.io.traces.slurm_jobs import AGAIN, Piece, SlurmJob, joined, pieces_held
from optsched.io.traces.slurm_nodes import guessed_nodes
from optsched.io.traces.slurm_runs import runs_of
from optsched.io.traces.text_table import TextTable, read_text
from optsched.problem.cluster import Cluster
from optsched.problem.job_table import COLUMNS
from optsched.rounding import counted, number, were

NEEDED = ("State", "Submit", "Start", "End", "AllocTRES")
SHOWN, PARTITIONS = 3, 8  # ids and partitions in a note
NO_GPUS = (
    "gres/gpu in Slurm's setting AccountingStorageTRES, for jobs from then on (older ones show their GPUs in SubmitLine "
    "only); or --unit cpu, --unit node"
)


def recognises(lines: Sequence[str]) -> bool:
    """Return True if the first lines of a file are those of an export of ``sacct``.

    Parameters
    ----------
    lines
        The first lines.
    """
    words = set(re.findall(r"\w+", lines[0]))
    marks = ('"allocation_nodes"', "Slurm OpenAPI DB")  # of 24.11 and later, of 22.05
    document = lines[0].startswith("{") and any(mark in line for line in lines for mark in marks)
    return bool({"JobID", "JobIDRaw"} & words and "State" in words) or document


@dialect("slurm", guesses_cluster=True, takes=("unit", "release"), recognises=recognises)
def read(request: TraceRequest) -> TraceRead:
    """Slurm's accounting: sacct -P with any fields and delimiter, or sacct --json.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(_in_order(_records(request)))
    _require_fields(rows, request)
    jobs = joined(runs_of(rows, request.unit))
    kept = _without_left_out(rows, jobs, lambda job: job.reason_to_leave_out(request.unit))
    columns = _columns(rows, kept, request)
    _say(rows, kept, request.release)
    fields = {"arrival": "Submit", "duration": "End", "gpus": "AllocTRES", "walltime": "Timelimit"}
    cluster = None if request.cluster or request.unit != "gpu" else _guess(rows, jobs, columns)
    suspended = columns.pop("suspended")
    return finish(
        request, rows, columns, fields=fields, from_earliest=("arrival",), suspended=suspended, cluster=cluster
    )


@dialect("slurm-pending", takes=("unit",))
def read_pending(request: TraceRequest) -> TraceRead:
    """Jobs that wait at the end of an export of Slurm's accounting, with their limits as durations.

    All wait from the beginning, on an empty cluster. A waiting array is one job of one element.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(_in_order(_records(request)))
    _require_fields(rows, request, "ReqTRES")
    jobs = joined(runs_of(rows, request.unit, "ReqTRES"))
    kept = _without_left_out(rows, jobs, lambda job: job.reason_not_pending(request.unit))
    rows.said.clear()  # of jobs that ran
    rows.say("these jobs wait at the end of the export: each runs as long as its limit, on an empty cluster")
    values = [(job.widest.row, job.name, sum(run.held for run in job.last), job.walltime, job.status) for job in kept]
    schema: dict[str, Any] = {"row": pl.Int64, **{name: COLUMNS[name] for name in ("id", "gpus", "walltime", "status")}}
    table = pl.DataFrame(values, schema=schema, orient="row")
    columns = _with_labels(rows, table)
    return finish(request, rows, columns | {"duration": columns["walltime"]}, fields={"gpus": "ReqTRES"})


def _records(request: TraceRequest) -> TextTable:
    text, not_utf8, digest = read_text(request.path)
    if text.lstrip()[:1] == "{":
        if not_utf8:
            raise InputError("not UTF-8", file=request.path, row=not_utf8[0], legal="UTF-8 text")
        return slurm_json.records(request.path, text.encode(), digest)
    return slurm_text.records(request.path, text, not_utf8, digest)


def _in_order(table: TextTable) -> TextTable:
    """Return the records by job id: every form of an export gives the jobs in the same order."""
    name = next((name for name in ("JobID", "JobIDRaw") if name in table.fields.columns), None)
    if name is None:
        return table
    parts = [
        pl.col(name).str.extract(form).cast(pl.Int64, strict=False)
        for form in (r"^(\d{1,18})", r"^\d+_\[?(\d{1,18})", r"^\d+\+(\d{1,18})")
    ]
    order = table.fields.select(pl.arg_sort_by(parts, maintain_order=True)).to_series()
    return TextTable(table.file, table.fields[order], table.line.gather(order), table.problems, table.sha256)


def _require_fields(rows: Rows, request: TraceRequest, *more: str) -> None:
    missing = [name for name in (*NEEDED, *more) if name not in rows.columns]
    if missing:
        why = f"the export lacks {', '.join(missing)}"
        raise InputError(why, file=rows.file, field="--format", legal=slurm_text.RIGHT_EXPORT)
    if request.release == "eligible" and "Eligible" not in rows.columns:
        raise InputError("the export lacks Eligible", file=rows.file, field="release", legal=slurm_text.RIGHT_EXPORT)
    if "Cluster" in rows.columns:
        names = rows.text("Cluster", required=False).drop_nulls().unique().sort()
        if len(names) > 1:
            where = {"file": rows.file, "field": "Cluster", "value": ", ".join(names[:4])}
            raise InputError("jobs of several clusters", **where, legal="sacct -M CLUSTER")
    resources = [rows.text(name, required=False) for name in ("AllocTRES", "ReqTRES") if name in rows.columns]
    if request.unit == "gpu" and rows.count and not any(text.str.contains("gres/gpu[=:]").any() for text in resources):
        raise InputError("no row has gres/gpu", file=rows.file, field="AllocTRES", legal=NO_GPUS)


def _without_left_out(rows: Rows, jobs: list[SlurmJob], reason_of: Callable[[SlurmJob], str]) -> list[SlurmJob]:
    """Leave out by reason what is no job; each job that is kept goes on as one row, that of its widest run."""
    name = "JobID" if "JobID" in rows.columns else "JobIDRaw"
    of_bad = _names(rows, name).filter(~rows.good).drop_nulls().unique()
    rows.leave_out(_names(rows, name).is_in(of_bad.implode()), "another row of the job is invalid")
    kept = []
    out: dict[str, list[SlurmJob]] = {}
    for job in jobs:
        if not rows.good[job.widest.row]:
            continue
        reason = reason_of(job)
        if reason:
            out.setdefault(reason, []).append(job)
        else:
            kept.append(job)
    rows.pass_over(~_rows_of([*kept, *chain(*out.values())], rows.count))
    for reason, those in sorted(out.items()):
        rows.leave_out(_rows_of(those, rows.count), reason, sum(job.count for job in those))
    return kept


def _names(rows: Rows, name: str) -> pl.Series:
    """Return the job of each row of a job; null for steps."""
    ids = rows.text(name, required=False)
    return ids.set(ids.str.contains(".", literal=True), None).str.extract(r"^([^+]*)")


def _rows_of(jobs: Iterable[SlurmJob], count: int) -> pl.Series:
    return pl.Series(range(count), dtype=pl.Int64).is_in([job.widest.row for job in jobs])


def _columns(rows: Rows, jobs: list[SlurmJob], request: TraceRequest) -> dict[str, pl.Series]:
    typed = request.cluster is not None and request.unit == "gpu"
    types = {kind.casefold() for kind in request.cluster.gpu_types} if request.cluster and typed else set()
    pieces = {job.widest.row: list(pieces_held(job.runs)) for job in jobs}
    values = [_values(job, pieces[job.widest.row], request, types) for job in jobs]
    lost = sum(bool(job.types) and value["gpu_types"] is None for job, value in zip(jobs, values, strict=True))
    if lost and types - {"gpu"}:
        rows.say(
            f"{counted(lost, 'job')} ran on GPUs of several types, or of one that the cluster lacks, and may use every "
            "type"
        )
    schema = {"row": pl.Int64(), **{name: COLUMNS[name] for name in _FIELDS}, "suspended": pl.Float64()}
    table = pl.DataFrame(values, schema=schema, infer_schema_length=None)
    ran = _ran(pieces, {value["row"]: value["gpus"] for value in values})
    columns = _with_labels(rows, table, ran)
    if not any(value["gpu_types"] for value in values):
        del columns["gpu_types"]
    return columns


def _with_labels(rows: Rows, *tables: pl.DataFrame) -> dict[str, pl.Series]:
    """Return the columns of tables of jobs by ``row`` for all rows, with users and accounts."""
    every = pl.DataFrame({"row": range(rows.count)})
    for part in tables:
        every = every.join(part, on="row", how="left", maintain_order="left")
    labels = {"user": "User", "group": "Account"}
    named = {name: rows.text(field, required=False) for name, field in labels.items() if field in rows.columns}
    return {column.name: column for column in every.drop("row")} | named


def _values(job: SlurmJob, pieces: list[Piece], request: TraceRequest, types: set[str]) -> dict[str, Any]:
    """Return the fields of a job: its duration x its gang are the GPU-seconds that it held."""
    gang = max(size for _, _, size in pieces)
    seconds = sum((end - start) * size for start, end, size in pieces)
    if request.unit != "gpu":  # CPUs are free while it is suspended; GPUs are not
        seconds -= sum(run.suspended * run.held for run in job.runs if run.allocated)
    first = job.runs[0]
    arrival = first.submit if request.release == "submit" or first.eligible is None else first.eligible
    return {
        "row": job.widest.row,
        "id": job.name,
        "arrival": arrival,
        "gpus": gang,
        "duration": seconds / gang,
        "walltime": job.walltime,
        "status": job.status,
        "suspended": job.suspended,
        "gpu_types": list(job.types) if len(job.types) == 1 and job.types[0].casefold() in types else None,
    }


_FIELDS = ("id", "arrival", "gpus", "duration", "walltime", "status", "gpu_types")


def _ran(pieces: dict[int, list[Piece]], gangs: dict[int, int]) -> pl.DataFrame:
    """Return the column ``ran`` by row; a piece that held the whole gang does not repeat it."""
    schema = {"row": pl.Int64, "start": pl.Float64, "end": pl.Float64, "held": pl.Float64}
    table = pl.DataFrame([(row, *piece) for row, each in pieces.items() for piece in each], schema=schema, orient="row")
    whole = pl.col("held") == pl.col("row").replace_strict(gangs, return_dtype=pl.Float64)
    piece = pl.when(whole).then(pl.concat_list("start", "end")).otherwise(pl.concat_list("start", "end", "held"))
    return table.group_by("row", maintain_order=True).agg(ran=piece)


def _say(rows: Rows, jobs: list[SlurmJob], release: str) -> None:
    ids = rows.text("JobID" if "JobID" in rows.columns else "JobIDRaw", required=False)
    if not ids.str.contains(".", literal=True).any():
        rows.say("no steps in the export (-X): a job may hold its GPUs until its last step has ended, after End")
    kinds = {
        "requeued": sum(len({run.submit for run in job.runs if run.state != "RESIZING"}) > 1 for job in jobs),
        "resized": sum(any(run.state == "RESIZING" for run in job.runs) for job in jobs),
        "heterogeneous": sum(len(job.last) > 1 for job in jobs),
    }
    again = [job.name for job in jobs if AGAIN in job.name]
    if again:
        shown = ", ".join(again[:SHOWN]) + (", ..." if len(again) > SHOWN else "")
        rows.say(f"Slurm used the id of an ended job again for {len(again)} jobs, which are named {shown}")
    if any(kinds.values()):
        rows.say(f"jobs of several rows: {', '.join(f'{count:,} {kind}' for kind, count in kinds.items() if count)}")
    _say_partitions(rows, jobs)
    late = [job.runs[0].held_back for job in jobs if job.runs[0].held_back > 1.0]
    if late and release == "submit":
        rows.say(
            f"{counted(len(late), 'job')} could not start when submitted (dependencies, holds, begin times, limits), but "
            f"up to {number(max(late))} s later: this counts as waiting; --release eligible counts from then"
        )
    unseen = sum(job.is_requeued_unseen for job in jobs)
    if unseen:
        rows.say(
            f"{counted(unseen, 'job')} {were(unseen)} requeued and the export lacks -D: lost work and first submissions are "
            "not in it, and waiting times are too short"
        )


def _say_partitions(rows: Rows, jobs: list[SlurmJob]) -> None:
    if "Partition" not in rows.columns:
        return
    partition = rows.text("Partition", required=False)
    jobs_of = Counter(partition[job.widest.row] or "no partition" for job in jobs).most_common()
    if len(jobs_of) > 1:
        shown = ", ".join(f"{count:,} in {name}" for name, count in jobs_of[:PARTITIONS])
        more = f", and {len(jobs_of) - PARTITIONS} more partitions" if len(jobs_of) > PARTITIONS else ""
        rows.say(f"partitions are not modelled, every job may use all nodes: {shown}{more}")


def _guess(rows: Rows, jobs: list[SlurmJob], columns: dict[str, pl.Series]) -> Cluster | None:
    """Return the nodes that the log shows in use, if they hold what ran; None leaves the guess to `finish`."""
    runs = [run for job in jobs for run in job.runs if run.allocated and run.held]
    holds = [
        (run.start, math.inf if run.released is None else run.released, run.held, run.nodes)
        for run in runs
        if run.start is not None
    ]
    cluster = guessed_nodes(holds) if holds else None
    peak = gpus_in_use(pl.DataFrame([columns["gpus"], columns["ran"]]).drop_nulls())
    if cluster is None or peak is None or cluster.gpus < peak:
        return None
    rows.say(
        f"the cluster is guessed: {cluster.spec} are the most GPUs in use at once on each node of the log; state yours with "
        "--cluster, or --cluster slurm-nodes:FILE of scontrol show nodes"
    )
    return cluster
