"""What a dialect is: one function that turns a file into a table of jobs, filed under its name in `DIALECTS`.

A dialect reads columns through `optsched.io.traces.rows.Rows`, which collects every bad row, and ends with `finish`,
which checks the gangs against the cluster, cuts to the first jobs and says what was read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from optsched.errors import InputError, check_legal
from optsched.io.traces.one_clock import OneClock, are_unix_seconds
from optsched.io.traces.rows import Rows
from optsched.problem.arrays import is_whole
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance
from optsched.problem.job_table import RULES
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughputs
from optsched.registry import Registry

CLUSTER_LEGAL = "--cluster NODESxGPUS[:TYPE][+...], e.g. 8x8"


@dataclass(frozen=True)
class TraceRequest:
    """What a reader is asked for.

    Parameters
    ----------
    cluster : where the jobs are to run; None takes the one that the source brings (classical instances).
    columns : for dialect ``csv``: which column of the file holds what, ``{"arrival": "submitted", ...}``.
    skip_bad : leave bad rows out and count them instead of raising `RowErrors`.
    fragment : what follows ``#`` in ``DIALECT:PATH#fragment`` (one instance of many in a file).
    limit : only the first jobs by (arrival, row); rows beyond need not fit on the cluster.
    dialect : the name of it; `Dialect.read` says it.
    """

    path: Path
    cluster: Cluster | None = None
    columns: Mapping[str, str] | None = None
    skip_bad: bool = False
    fragment: str | None = None
    limit: int | None = None
    dialect: str = ""

    def no_instance(self, field: str, legal: str) -> InputError:
        """No fragment names an instance of the file, where it holds many; ``field``: how a fragment is written."""
        if self.fragment is None:
            return InputError("which instance of this file?", file=self.path, field=field, legal=legal)
        return InputError("no such instance", file=self.path, field=field, value=self.fragment, legal=legal)


@dataclass(frozen=True)
class TraceRead:
    """What a reader found: ``table`` has the columns of `optsched.problem.job_table.Job`; ``recipe`` says how it was
    derived."""

    table: pl.DataFrame
    name: str
    skipped_rows: int = 0
    cluster: Cluster | None = None
    objective: str | None = None
    optimum: dict[str, Any] | None = None
    recipe: dict[str, Any] = field(default_factory=dict)
    throughputs: Throughputs | None = None
    scalings: Mapping[str, Scaling] = field(default_factory=dict)

    def instance(self) -> Instance:
        """The instance; `InputError` when neither the source nor the request named a cluster."""
        if self.cluster is None:
            raise InputError(f"{self.name} needs a cluster", field="cluster", legal=CLUSTER_LEGAL)
        parts = (self.table, self.cluster, self.name, self.objective, self.recipe, self.optimum)
        return Instance(*parts, throughputs=self.throughputs, scalings=self.scalings)


NOT_MODELLED = "not_modelled"  # in the parameters of a recipe


def not_modelled(instance: Instance) -> list[str]:
    """What the trace that an instance is made of says of its jobs, and no instance can: a line each, for people."""
    parameters = (instance.recipe or {}).get("parameters")
    lines = parameters.get(NOT_MODELLED) if isinstance(parameters, Mapping) else None
    return [str(line) for line in lines] if isinstance(lines, list) else []


Reader = Callable[[TraceRequest], TraceRead]


@dataclass(frozen=True)
class Dialect:
    """One way to write a trace down.

    ``header`` names the columns that a file of this dialect must have (empty: no header), ``fragment`` what is meant
    by ``#...`` (empty: nothing), ``brings_cluster`` whether the source says where its jobs run, ``takes_columns``
    whether the user names the columns.
    """

    name: str
    summary: str
    reader: Reader
    header: tuple[str, ...] = ()
    fragment: str = ""
    brings_cluster: bool = False
    takes_columns: bool = False

    def read(self, path: str | os.PathLike[str], **asked: Any) -> TraceRead:
        """Read a file; what may be ``asked`` are the parameters of `TraceRequest`.

        Raises `RowErrors`: every bad row at once, unless ``skip_bad``. `InputError`: no such file, another dialect, a
        fragment that does not exist, or options that this dialect does not take.
        """
        request = TraceRequest(Path(path), **asked)
        if request.columns and not self.takes_columns:
            takers = [name for name, dialect in DIALECTS.items() if dialect.takes_columns]
            raise InputError(
                f"dialect {self.name} has columns of its own", field="columns", legal=f"with {', '.join(takers)}: only"
            )
        if request.fragment is not None and not self.fragment:
            raise InputError(f"dialect {self.name} takes no #fragment", field="fragment", value=request.fragment)
        return self.reader(replace(request, limit=whole_limit(request.limit), dialect=self.name))


def whole_limit(limit: int | None) -> int | None:
    """``limit`` as Python's integer; `InputError` unless it is None or an integer >= 1, numpy's included."""
    check_legal(limit is None or (is_whole(limit) and limit >= 1), "limit", limit, "an integer >= 1")
    return None if limit is None else int(limit)


DIALECTS: Registry[Dialect] = Registry("dialect", package="optsched.io.traces")


def dialect(name: str, **said: Any) -> Callable[[Reader], Reader]:
    """Decorator that files a reader under ``name``; the first line of its docstring becomes the summary.

    What else may be ``said``: ``header``, ``fragment``, ``brings_cluster`` and ``takes_columns`` of `Dialect`.
    """

    def add(reader: Reader) -> Reader:
        summary = (reader.__doc__ or "").strip().partition("\n")[0]
        DIALECTS.register(name)(Dialect(name, summary, reader, **said))
        return reader

    return add


def require_header(rows: Rows, header: tuple[str, ...]) -> None:
    """Stop unless the file has all columns of ``header`` and is not of a dialect that has them and more.

    The second rule keeps a file in other units out: a Muri file (milliseconds) has all columns of Tiresias (seconds).
    """
    fitting = [name for name, each in DIALECTS.items() if each.header and set(each.header) <= set(rows.columns)]
    rows.require(header, f"; they fit dialect {' or '.join(fitting)}" if fitting else "")
    for name in fitting:
        if set(DIALECTS.get(name).header) > set(header):
            raise InputError("wrong dialect: its columns are those of another", file=rows.file, legal=f"{name}:PATH")


def finish(
    request: TraceRequest,
    rows: Rows,
    jobs: Mapping[str, pl.Series],
    *,
    fields: Mapping[str, str] | None = None,
    from_earliest: tuple[str, ...] = (),
    notes: Mapping[str, Any] | None = None,
    cluster: Cluster | None = None,
    objective: str | None = None,
    optimum: dict[str, Any] | None = None,
) -> TraceRead:
    """Judge limits, clocks and gangs, report or skip the bad rows, cut to ``limit``, and put the table together.

    Parameters
    ----------
    jobs : canonical columns, one value a row of the file; without ``id`` a job bears the number of its line.
    fields : which column of the file each field is, for the report, where the series has neither its name nor the field's.
    from_earliest : time columns that are counted from the earliest arrival of the legal rows.
    notes : what else a reader must know to derive the instance again; goes into its recipe.
    cluster, objective, optimum : what the source itself says. An optimum is dropped when the jobs or the cluster are
        not the ones it was proven for.
    """
    columns = dict(jobs)
    columns.setdefault("id", rows.line.cast(pl.String))
    columns.setdefault("arrival", pl.Series([0.0]).new_from_index(0, rows.count))
    named = {name: each.name if each.name in rows.columns else name for name, each in jobs.items()} | dict(fields or {})
    table = pl.DataFrame([column.alias(name) for name, column in columns.items()])
    _require_one_clock(rows, columns, named, absolute=bool(from_earliest))
    for name, wrong, limit, message in RULES:  # those that look at one field alone; names wait until the end
        of_file = name != "id" and named.get(name) in rows.columns
        if of_file and set(wrong.meta.root_names()) == {name}:
            rows.reject(table.select(wrong.fill_null(False)).to_series(), named[name], limit, message)
    arrival, legal, where = columns["arrival"], rows.good, request.cluster or cluster
    every = pl.Series([True]).new_from_index(0, rows.count)
    if where is not None:
        nothing = pl.Series([None], dtype=pl.Float64).new_from_index(0, rows.count)
        all_told = request.limit is None and not request.skip_bad  # of rows that are bad already, too
        judged = every if all_told else legal if request.skip_bad else _first(arrival, legal, request.limit)
        rows.reject_wide(columns["gpus"], named["gpus"], where, columns.get("gpu_memory", nothing), judged)
    fitting = rows.good
    rows.reject_duplicates()
    legal &= rows.good | ~fitting
    if not request.skip_bad:
        rows.raise_problems()
    kept = _first(arrival, rows.good, request.limit)
    if not kept.any():
        raise InputError("no legal row" if rows.count else "no rows", file=rows.file, legal="at least one job")
    for name in from_earliest:
        columns[name] = columns[name] - arrival.filter(legal).min()
    table = pl.DataFrame([column.alias(name) for name, column in columns.items()]).filter(kept)
    # rows that are invalid, and gangs too wide for the cluster given before the last job kept
    passed = (arrival <= arrival.filter(kept).max()) if bool((rows.good & ~kept).any()) else every
    skipped = int((~legal).sum()) + int((legal & ~rows.good & passed.fill_null(True)).sum())
    columns_asked = dict(request.columns) if request.columns else None
    asked = {"fragment": request.fragment, "limit": request.limit, "columns": columns_asked}
    read: dict[str, Any] = {"file": request.path.name, "sha256": rows.sha256}
    read |= {name: value for name, value in asked.items() if value is not None}
    read |= {"rows": rows.count, "skipped_rows": skipped, **(notes or {})}
    untouched = table.height == rows.count and where == cluster
    return TraceRead(
        table=table,
        name=request.path.stem + (f"#{request.fragment}" if request.fragment else ""),
        skipped_rows=skipped,
        cluster=where,
        objective=objective,
        optimum=optimum if untouched else None,
        recipe={"name": request.dialect, "seed": None, "parameters": read},
    )


def _require_one_clock(rows: Rows, jobs: Mapping[str, pl.Series], named: Mapping[str, str], *, absolute: bool) -> None:
    """Arrivals that are not on the clock of most arrivals are bad rows, and so are due dates of the file that are not."""
    arrival = jobs["arrival"].cast(pl.Float64)
    clock = OneClock.of(arrival, rows.good, absolute=absolute or are_unix_seconds(arrival))
    if clock is None:
        return
    column = named.get("arrival", "arrival")
    first, last = (rows.place(column, k) for k in (clock.first, clock.last))
    legal = clock.legal(first, last)
    rows.reject(clock.not_on_it(arrival), column, legal, "on another clock")
    if "due" in jobs and named["due"] in rows.columns:
        due = jobs["due"].cast(pl.Float64)
        rows.reject(clock.not_on_it(due), named["due"], f"{legal}; empty: no due date", "on another clock")


def _first(arrival: pl.Series, good: pl.Series, limit: int | None) -> pl.Series:
    # bool[rows]: the first `limit` good rows by (arrival, row)
    if limit is None or limit >= int(good.sum()):
        return good
    candidates = np.flatnonzero(good.to_numpy())
    order = np.argsort(arrival.to_numpy()[candidates], kind="stable")
    kept = np.zeros(len(good), dtype=bool)
    kept[candidates[order[:limit]]] = True
    return pl.Series("kept", kept)
