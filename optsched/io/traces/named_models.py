"""Speeds for a trace that only names models: the throughput table that its jobs run at, with gaps filled and reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from optsched.errors import InputError, RowErrors, RowProblem
from optsched.io.traces.dialect import TraceRead
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance
from optsched.problem.throughputs import Throughputs
from optsched.registry import near_matches
from optsched.speeds.device_performance import is_known
from optsched.speeds.throughput_table import built_in, completed


@dataclass(frozen=True)
class SpeedRequest:
    """Which speeds a trace is given.

    ``table``: None takes the built-in table where it knows all models and the cluster names GPU types that it can be scaled
    to. ``strict`` refuses rates that were not measured. ``say`` hears, once a rule, what was derived. ``others``: names of
    stage profiles, which are no models; ``field``: what a row calls its model.
    """

    table: Throughputs | None = None
    strict: bool = False
    say: Callable[[str], None] | None = None
    others: frozenset[str] = frozenset()
    field: str = "job_type"


def with_speeds(read: TraceRead, request: SpeedRequest, file: str, *, skip_bad: bool = False) -> TraceRead:
    """``read`` with the throughputs of its jobs on its cluster; unchanged where no job needs any.

    Raises
    ------
    RowErrors
        Every job whose model the table does not know (``skip_bad``: such rows are left out and counted).
    InputError
        A model that runs on no GPU type of the cluster; with ``strict`` a rate that is not in the table.
    """
    needs = _needy(read, request)
    cluster = read.cluster
    if needs.is_empty() or cluster is None:
        return read
    table = request.table
    if table is None:
        table = built_in()
        names = set(needs["profile"].to_list())
        if not (names & set(table.job_types)) or not all(map(is_known, cluster.gpu_types)):
            return read
    unknown = needs.filter(~pl.col("profile").is_in(list(table.job_types)))
    if not unknown.is_empty():
        if not skip_bad:
            raise RowErrors(file, _problems(read, unknown, table, request.field), read.table.height)
        read = _without(read, unknown)
        needs = _needy(read, request)
        if needs.is_empty():
            raise InputError("no legal row", file=file, legal="at least one job whose model the throughput table knows")
    try:
        wanted = needs.select("profile", "gpus").unique(maintain_order=True).rows()
        speeds = completed(table, wanted, cluster.gpu_types, strict=request.strict, say=request.say)
    except InputError as error:
        raise InputError(str(error), file=file) from None
    return replace(read, throughputs=speeds.restricted(set(needs["profile"].to_list())))


def moved(instance: Instance, cluster: Cluster, request: SpeedRequest) -> Instance:
    """``instance`` on another cluster.

    Jobs at a throughput table run on GPU types that it does not know, and whose peak is known, at rates scaled as for a
    trace (unless ``strict``); types without a rate that the table does know stay closed to them.
    """
    table = instance.throughputs
    if table is None or request.strict:
        return instance.with_cluster(cluster)
    known = {gpu.casefold() for gpu in table.gpu_types}
    new = [gpu for gpu in cluster.gpu_types if gpu.casefold() not in known and is_known(gpu)]
    scalable = {job for (job, gpu, _), rate in table.entries.items() if new and rate.fits and is_known(gpu)}
    mine = instance.table.filter(pl.col("profile").is_in(list(scalable)))
    wanted = mine.select("profile", "gpus").unique(maintain_order=True).rows()
    speeds = completed(table, wanted, new, say=request.say)
    return instance.replace(cluster=cluster, optimum=None, throughputs=speeds)


def _needy(read: TraceRead, request: SpeedRequest) -> pl.DataFrame:
    # The jobs whose speed a table must say, with their positions.
    table = read.table.with_row_index("__row")
    if "profile" not in table.columns:
        return table.head(0)
    found = pl.col("profile").is_not_null() & ~pl.col("profile").is_in(sorted(request.others))
    return table.filter(found & pl.col("duration").is_null() if "duration" in table.columns else found)


def _problems(read: TraceRead, unknown: pl.DataFrame, table: Throughputs, field: str) -> list[RowProblem]:
    legal = sorted(table.job_types)
    lines = read.recipe.get("name") == "gavel"  # there a job bears the number of its line
    return [
        RowProblem(
            int(job) if lines else row + 1, field, name, near_matches(name, legal, kind="model"), "unknown model"
        )
        for row, job, name in unknown.select("__row", "id", "profile").iter_rows()
    ]


def _without(read: TraceRead, rows: pl.DataFrame) -> TraceRead:
    kept = read.table.filter(~pl.col("id").is_in(rows["id"].implode()))
    return replace(read, table=kept, skipped_rows=read.skipped_rows + rows.height)
