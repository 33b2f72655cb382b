r"""Dialect ``slurm``: jobs of Slurm's accounting, as ``sacct -P`` or ``sacct --json`` prints them.

The one right export, from which nothing is lost::

    TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -D -P -S 2026-01-01 -E now --format=JobIDRaw,JobID,State,Submit,Eligible,Start,\
    End,ElapsedRaw,Suspended,TimelimitRaw,NNodes,NCPUS,ReqTRES,AllocTRES,Partition,User,Account,NodeList,Flags,Reason,JobName

Any list of fields with the first five of this table is read, with any delimiter:

======================  ==================================================================================================
field                   becomes
======================  ==================================================================================================
JobID (or JobIDRaw)     ``id``: one job for each id, element of an array (``9_4``) and heterogeneous job; steps (``9.0``) only
                        extend the time for which a job holds its GPUs
State                   ``status``, the first word; jobs that never ran, wait or run are left out by reason
Submit, Eligible        ``arrival``: the first submission, or with ``--release eligible`` the moment from which the job could
                        start (after its dependencies, holds and limits), counted from the earliest
Start, End              ``ran``, a piece for every run, until the last of its steps has ended; ``duration``: the GPU-seconds of
                        the pieces divided by the gang
AllocTRES               ``gpus``: ``gres/gpu``, else the sum of its types; the largest piece. ``--unit cpu|node`` counts CPUs or
                        nodes instead. ``gpu_types`` if the GPUs of a job are of one type that the cluster given has
Timelimit(Raw)          ``walltime``; none if it is a year or more, ``UNLIMITED`` or ``Partition_Limit``
Elapsed(Raw)            only compared with End - Start - Suspended, and used where the clock went back
Suspended               taken off ``duration`` for CPUs and nodes; a suspended job keeps its GPUs
User, Account           ``user``, ``group``
NodeList                tells whether a job ran, and the shape of the cluster if none is given; names are not kept
======================  ==================================================================================================

Times are cut to the second. Tried with Slurm 22.05.8, 24.11.5 and 26.05.5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import chain
from typing import Any

import polars as pl

from optsched.errors import InputError
from optsched.io.traces import slurm_json, slurm_text
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, gpus_in_use
from optsched.io.traces.rows import Rows
from optsched.io.traces.slurm_jobs import SlurmJob, joined, pieces_held
from optsched.io.traces.slurm_nodes import guessed_nodes
from optsched.io.traces.slurm_runs import runs_of
from optsched.io.traces.text_table import TextTable, read_text
from optsched.problem.atomic_files import LONGEST, read_bytes
from optsched.problem.cluster import Cluster
from optsched.problem.job_table import COLUMNS

NEEDED = ("State", "Submit", "Start", "End", "AllocTRES")
NO_GPUS = (
    "gres/gpu in Slurm's setting AccountingStorageTRES, for jobs from then on (older ones show their GPUs in SubmitLine "
    "only); or --unit cpu, --unit node"
)


@dialect("slurm", guesses_cluster=True, takes=("unit", "release"))
def read(request: TraceRequest) -> TraceRead:
    """Slurm's accounting: sacct -P with any fields and delimiter, or sacct --json.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(_in_order(_records(request)))
    _require_fields(rows, request.unit)
    jobs = joined(runs_of(rows, request.unit))
    kept = _without_left_out(rows, jobs, request.unit)
    columns = _columns(rows, kept, request)
    _say(rows, kept)
    fields = {"arrival": "Submit", "duration": "End", "gpus": "AllocTRES", "walltime": "Timelimit"}
    cluster = None if request.cluster or request.unit != "gpu" else _guess(rows, kept, columns)
    return finish(request, rows, columns, fields=fields, from_earliest=("arrival",), cluster=cluster)


def _records(request: TraceRequest) -> TextTable:
    content = read_bytes(request.path, LONGEST)
    if content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return slurm_json.records(request.path, content, hashlib.sha256(content).hexdigest())
    return slurm_text.records(request.path, *read_text(request.path))


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


def _require_fields(rows: Rows, unit: str) -> None:
    missing = [name for name in NEEDED if name not in rows.columns]
    if missing:
        why = f"the export lacks {', '.join(missing)}"
        raise InputError(why, file=rows.file, field="--format", legal=slurm_text.RIGHT_EXPORT)
    if "Cluster" in rows.columns:
        names = rows.text("Cluster", required=False).drop_nulls().unique().sort()
        if len(names) > 1:
            where = {"file": rows.file, "field": "Cluster", "value": ", ".join(names[:4])}
            raise InputError("jobs of several clusters", **where, legal="sacct -M CLUSTER")
    resources = [rows.text(name, required=False) for name in ("AllocTRES", "ReqTRES") if name in rows.columns]
    if unit == "gpu" and rows.count and not any(text.str.contains("gres/gpu[=:]").any() for text in resources):
        raise InputError("no row has gres/gpu", file=rows.file, field="AllocTRES", legal=NO_GPUS)


def _without_left_out(rows: Rows, jobs: list[SlurmJob], unit: str) -> list[SlurmJob]:
    """Leave out by reason what is no job; each job that is kept goes on as one row, that of its widest run."""
    name = "JobID" if "JobID" in rows.columns else "JobIDRaw"
    of_bad = _names(rows, name).filter(~rows.good).drop_nulls().unique()
    rows.leave_out(_names(rows, name).is_in(of_bad.implode()), "another row of the job is invalid")
    kept = []
    out: dict[str, list[SlurmJob]] = {}
    for job in jobs:
        if not rows.good[job.widest.row]:
            continue
        reason = job.reason_to_leave_out(unit)
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
    values: dict[str, list[Any]] = {name: [None] * rows.count for name in _TYPES}
    has = (
        {kind.casefold() for kind in request.cluster.gpu_types} if request.cluster and request.unit == "gpu" else set()
    )
    lost = 0
    for job in jobs:
        pieces = list(pieces_held(job.runs))
        gang = max(size for _, _, size in pieces)
        seconds = sum((end - start) * size for start, end, size in pieces) / gang
        first, types = job.runs[0], frozenset().union(*(run.types for run in job.runs if run.allocated))
        if request.unit != "gpu":
            seconds -= sum(run.suspended * run.held for run in job.runs if run.allocated) / gang
        typed = len(types) == 1 and next(iter(types)).casefold() in has
        lost += bool(types and has - {"gpu"}) and not typed
        row = {
            "id": job.name,
            "arrival": first.submit if request.release == "submit" or first.eligible is None else first.eligible,
            "gpus": gang,
            "duration": seconds,
            "walltime": job.walltime,
            "status": job.status,
            "ran": [[start, end] if size == gang else [start, end, float(size)] for start, end, size in pieces],
            "gpu_types": sorted(types) if typed else None,
        }
        for name, value in row.items():
            values[name][job.widest.row] = value
    if lost:
        rows.say(f"{lost} jobs ran on GPUs of several types, or of one that the cluster lacks: they may use every type")
    columns = {name: pl.Series(name, column, dtype=_TYPES[name]) for name, column in values.items()}
    labels = {"user": "User", "group": "Account"}
    columns |= {name: rows.text(field, required=False) for name, field in labels.items() if field in rows.columns}
    return {
        name: column for name, column in columns.items() if name != "gpu_types" or column.null_count() < len(column)
    }


_TYPES = {
    name: COLUMNS[name] for name in ("id", "arrival", "gpus", "duration", "walltime", "status", "ran", "gpu_types")
}


def _say(rows: Rows, jobs: list[SlurmJob]) -> None:
    ids = rows.text("JobID" if "JobID" in rows.columns else "JobIDRaw", required=False)
    if not ids.str.contains(".", literal=True).any():
        rows.say("no steps in the export (-X): a job may hold its GPUs until its last step has ended, after End")
    unseen = sum(job.is_requeued_unseen for job in jobs)
    if unseen:
        rows.say(
            f"{unseen} jobs were requeued and the export lacks -D: their lost work and their first submission are not in it, "
            "and their waiting times are too short"
        )


def _guess(rows: Rows, jobs: list[SlurmJob], columns: dict[str, pl.Series]) -> Cluster | None:
    """Return the nodes that the log shows in use, if they hold what ran; None leaves the guess to `finish`."""
    runs = [run for job in jobs for run in job.runs if run.allocated and run.held and run.start is not None]
    holds = [(run.start, run.released, run.held, run.nodes) for run in runs if run.start is not None and run.released]
    cluster = guessed_nodes(holds) if holds else None
    peak = gpus_in_use(pl.DataFrame([columns["gpus"], columns["ran"]]).drop_nulls())
    if cluster is None or peak is None or cluster.gpus < peak:
        return None
    rows.say(
        f"the cluster is guessed: {cluster.spec} are the most GPUs in use at once on each node of the log; state yours with "
        "--cluster, or --cluster slurm-nodes:FILE of scontrol show nodes"
    )
    return cluster
