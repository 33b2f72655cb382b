"""Speeds for traces that name models: throughput tables, with gaps filled and reported, and scaling profiles.

A trace that only names models gets the throughput table at which its jobs run. A trace that names applications and batch
sizes gets the scaling profiles at which its jobs run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import polars as pl

from optsched.errors import InputError, RowErrors, RowProblem, naming
from optsched.io.traces.dialect import TraceRead
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughputs
from optsched.registry import near_matches
from optsched.speeds.scaling_files import built_in_scalings
from optsched.speeds.throughput_sources import Say, built_in, completed, is_known


def with_speeds(
    read: TraceRead,
    table: Throughputs | None,
    file: str,
    *,
    strict: bool = False,
    say: Say | None = None,
    others: Iterable[str] = (),
    field: str = "job_type",
    skip_bad: bool = False,
) -> TraceRead:
    """Return ``read`` with the throughputs of its jobs on its cluster; unchanged if no job needs any.

    Parameters
    ----------
    read
        The trace.
    table
        Throughput table. None takes the built-in table if it has all models and the cluster names GPU types to
        which it can be scaled.
    file
        Name of the file, for errors.
    strict
        Reject rates that were not measured.
    say
        Function that gets one line for each rule by which a rate was derived.
    others
        Names of stage profiles, which are no models.
    field
        Name of the column of models, for errors.
    skip_bad
        Leave out and count jobs whose model is not in the table.

    Raises
    ------
    RowErrors
        With every job whose model is not in the table, unless ``skip_bad``.
    InputError
        If a model runs on no GPU type of the cluster; with ``strict`` if a rate is not in the table.
    """
    cluster, no_models = read.cluster, sorted({*others, *read.scalings})
    needs = _needy(read, no_models)
    if needs.is_empty() or cluster is None:
        return read
    if table is None:
        table = built_in()
        names = set(needs["profile"].to_list())
        if not (names & set(table.job_types)) or not all(map(is_known, cluster.gpu_types)):
            return read
    unknown = needs.filter(~pl.col("profile").is_in(list(table.job_types)))
    if not unknown.is_empty():
        if not skip_bad:
            raise RowErrors(file, _problems(read, unknown, table, field), read.table.height)
        kept = read.table.filter(~pl.col("id").is_in(unknown["id"].implode()))
        read = replace(read, table=kept, skipped_rows=read.skipped_rows + unknown.height)
        needs = _needy(read, no_models)
        if needs.is_empty():
            raise InputError("no legal row", file=file, legal="at least one job whose model the throughput table knows")
    with naming(file):
        wanted = needs.select("profile", "gpus").unique(maintain_order=True).rows()
        speeds = completed(table, wanted, cluster.gpu_types, strict=strict, say=say)
    return replace(read, throughputs=speeds.restricted(set(needs["profile"].to_list())))


def moved(instance: Instance, cluster: Cluster, *, strict: bool, say: Say | None) -> Instance:
    """Return an instance on another cluster.

    Jobs with a throughput table run on GPU types that the table does not have, and whose peak is known, at rates scaled
    as for a trace (unless ``strict``). Types that the table has without a rate stay closed to them.

    Parameters
    ----------
    instance
        Jobs and cluster.
    cluster
        The new cluster.
    strict
        Scale no rates.
    say
        Function that gets one line for each rule by which a rate was derived.
    """
    table = instance.throughputs
    if table is None or strict:
        return instance.with_cluster(cluster)
    known = {gpu.casefold() for gpu in table.gpu_types}
    new = [gpu for gpu in cluster.gpu_types if gpu.casefold() not in known and is_known(gpu)]
    scalable = {job for (job, gpu, _), rate in table.entries.items() if new and rate.fits and is_known(gpu)}
    mine = instance.table.filter(pl.col("profile").is_in(list(scalable)))
    wanted = mine.select("profile", "gpus").unique(maintain_order=True).rows()
    speeds = completed(table, wanted, new, say=say)
    return instance.replace(cluster=cluster, optimum=None, throughputs=speeds)


def _needy(read: TraceRead, no_models: list[str]) -> pl.DataFrame:
    # The jobs whose speed a table must give, with their positions.
    table = read.table.with_row_index("__row")
    if "profile" not in table.columns:
        return table.head(0)
    found = pl.col("profile").is_not_null() & ~pl.col("profile").is_in(no_models)
    return table.filter(found & pl.col("duration").is_null() if "duration" in table.columns else found)


def _problems(read: TraceRead, unknown: pl.DataFrame, table: Throughputs, field: str) -> list[RowProblem]:
    legal = sorted(table.job_types)
    lines = read.recipe.get("name") == "gavel"  # there the id of a job is the number of its line
    return [
        RowProblem(
            int(job) if lines else row + 1, field, name, near_matches(name, legal, kind="model"), "unknown model"
        )
        for row, job, name in unknown.select("__row", "id", "profile").iter_rows()
    ]


def with_scalings(
    read: TraceRead,
    scalings: Mapping[str, Scaling] | None,
    file: str,
    *,
    say: Say | None = None,
) -> TraceRead:
    """Return ``read`` with scaling profiles for its jobs that state a batch size and iterations, by their ``model``.

    Their ``profile`` becomes the name of the application. Jobs whose application has no profile stay unchanged, and so does
    the rest of the table.

    Parameters
    ----------
    read
        The trace.
    scalings
        Scaling profiles by application; None: the built-in ones (`optsched.speeds.scaling_files`).
    file
        Name of the file, for errors.
    say
        Function that gets a line if the built-in profiles are used, and not measurements.

    Raises
    ------
    InputError
        If ``scalings`` are given, and have no application of the trace.
    """
    table = read.table
    needed = {"model", "batch_size", "iterations"}
    if not needed <= set(table.columns):
        if scalings is not None:
            message = "no job of this trace names an application and a batch size"
            raise InputError(message, file=file, field="profiles", legal="a trace with batch sizes, e.g. pollux:PATH")
        return read
    known = built_in_scalings() if scalings is None else scalings
    rows = pl.col("model").is_in(list(known)) & pl.col("batch_size").is_not_null() & pl.col("iterations").is_not_null()
    if "duration" in table.columns:
        rows &= pl.col("duration").is_null()
    used = sorted(set(table.filter(rows)["model"].to_list()))
    if not used:
        if scalings is None:
            return read
        names = ", ".join(sorted(set(table["model"].drop_nulls().to_list()))[:10]) or "none"
        legal = f"profiles of its applications: {names}"
        raise InputError("the profiles know no application of the trace", file=file, field="profiles", legal=legal)
    if say is not None and scalings is None:
        how = "iteration times by formulas fitted to measurements (--profiles DIR takes measurements)"
        say(f"{', '.join(used)}: {how}")
    profile = pl.col("profile") if "profile" in table.columns else pl.lit(None, dtype=pl.String)
    named = table.with_columns(pl.when(rows).then(pl.col("model")).otherwise(profile).alias("profile"))
    return replace(read, table=named, scalings={name: known[name] for name in used})
