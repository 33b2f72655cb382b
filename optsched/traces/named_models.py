"""Speeds for a trace that only names models: the throughput table that its jobs run at, with every gap filled and told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from optsched.cluster import Cluster
from optsched.errors import InputError, RowErrors, RowProblem
from optsched.rates.device_performance import device_performance
from optsched.rates.throughput_table import built_in, completed
from optsched.registry import near_matches
from optsched.throughputs import Throughputs
from optsched.traces.dialect import TraceRead


@dataclass(frozen=True)
class SpeedRequest:
    """Which speeds a trace is given.

    ``table``: None takes the built-in table where it knows all models and the cluster names GPU types that it can be scaled
    to. ``strict`` refuses rates that are not in the table. ``say`` hears, once a rule, what was derived.
    """

    table: Throughputs | None = None
    strict: bool = False
    say: Callable[[str], None] | None = None


def with_speeds(read: TraceRead, request: SpeedRequest, file: str, *, skip_bad: bool = False) -> TraceRead:
    """``read`` with the throughputs of its jobs on its cluster; unchanged where no job needs any.

    Raises
    ------
    RowErrors
        Every job whose model the table does not know (``skip_bad``: such rows are left out and counted).
    InputError
        A model that runs on no GPU type of the cluster; with ``strict`` a rate that is not in the table.
    """
    needs = read.table.filter(_needs(read.table)) if "profile" in read.table.columns else read.table.head(0)
    cluster = read.cluster
    if needs.is_empty() or cluster is None:
        return read
    table = request.table
    if table is None:
        table = built_in()
        names = set(needs["profile"].to_list())
        if not (names & set(table.job_types)) or not _comparable(cluster):
            return read
    unknown = needs.filter(~pl.col("profile").is_in(list(table.job_types)))
    if not unknown.is_empty():
        if not skip_bad:
            raise RowErrors(file, _problems(unknown, table), read.table.height)
        read = _without(read, unknown)
        needs = read.table.filter(_needs(read.table))
        if needs.is_empty():
            raise InputError("no legal row", file=file, legal="at least one job whose model the throughput table knows")
    try:
        wanted = needs.select("profile", "gpus").unique(maintain_order=True).rows()
        speeds = completed(table, wanted, cluster.gpu_types, strict=request.strict, say=request.say)
    except InputError as error:
        raise InputError(str(error), file=file) from None
    return replace(read, throughputs=speeds.restricted(set(needs["profile"].to_list())))


def _needs(table: pl.DataFrame) -> pl.Expr:
    found = pl.col("profile").is_not_null()
    return found & pl.col("duration").is_null() if "duration" in table.columns else found


def _comparable(cluster: Cluster) -> bool:
    try:
        return all(device_performance(gpu) > 0 for gpu in cluster.gpu_types)
    except InputError:
        return False


def _problems(unknown: pl.DataFrame, table: Throughputs) -> list[RowProblem]:
    legal = sorted(table.job_types)
    return [
        # a job without an id of its own bears the number of its line
        RowProblem(
            int(job) if job.isdigit() else 0, "job_type", name, near_matches(name, legal, kind="model"), "unknown model"
        )
        for job, name in unknown.select("id", "profile").iter_rows()
    ]


def _without(read: TraceRead, rows: pl.DataFrame) -> TraceRead:
    kept = read.table.filter(~pl.col("id").is_in(rows["id"].implode()))
    return replace(read, table=kept, skipped_rows=read.skipped_rows + rows.height)
