"""Dialects: functions that turn a file into a table of jobs, registered by name in `DIALECTS`.

A dialect reads columns through `optsched.io.traces.rows.Rows`, which collects every bad row, and ends with `finish`,
which checks the gangs against the cluster, cuts to the first jobs and records what was read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from optsched.errors import InputError, check_legal
from optsched.io.traces.log_reading import COUNTS, LEFT_OUT, ORIGIN, SAID, SKIPPED, THE_LOGS, UNIX, ZONE
from optsched.io.traces.one_clock import OneClock, are_unix_seconds
from optsched.io.traces.rows import Rows
from optsched.io.traces.walltimes import CUT, KEEP, apply_walltimes
from optsched.problem.arrays import is_whole
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance
from optsched.problem.job_table import RULES, pieces_earlier
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughputs
from optsched.registry import Registry
from optsched.rounding import counted, were

COMPRESSED = (".gz", ".zst")
CLUSTER_LEGAL = "--cluster NODESxGPUS[:TYPE][+...], e.g. 8x8"


@dataclass(frozen=True)
class TraceRequest:
    """File and options for a reader.

    Parameters
    ----------
    path
        The file.
    cluster
        Cluster on which the jobs are to run; None takes the one that the source brings (classical instances).
    columns
        For dialect ``csv``: the column of each field, ``{"arrival": "submitted", ...}``.
    skip_bad
        Leave bad rows out and count them instead of raising `RowErrors`.
    fragment
        Text after ``#`` in ``DIALECT:PATH#fragment`` (one instance of many in a file).
    limit
        Only the first jobs by (arrival, row); rows beyond need not fit on the cluster.
    unit
        What the gang of a job counts, for dialects that take it: ``gpu``, ``cpu`` or ``node``.
    release
        When a job arrives, for dialects that take it: ``submit`` (its submission) or ``eligible`` (when it could start:
        after its dependencies, holds and limits).
    walltimes
        ``keep``: a run that is longer than the walltime of its job is kept. ``cut``: it ends at the walltime.
    dialect
        Name of the dialect; `Dialect.read` sets it.
    """

    path: Path
    cluster: Cluster | None = None
    columns: Mapping[str, str] | None = None
    skip_bad: bool = False
    fragment: str | None = None
    limit: int | None = None
    unit: str = "gpu"
    release: str = "submit"
    walltimes: str = KEEP
    dialect: str = ""

    @property
    def stem(self) -> str:
        """Name of the file without its suffix, and without that of a compression."""
        stem = Path(self.path.stem)
        return stem.stem if self.path.suffix.lower() in COMPRESSED else stem.name

    def no_instance(self, field: str, legal: str) -> InputError:
        """Return the error for a fragment that names no instance of a file with many.

        Parameters
        ----------
        field
            How a fragment is written.
        legal
            Text that says which fragments are legal.
        """
        if self.fragment is None:
            return InputError("which instance of this file?", file=self.path, field=field, legal=legal)
        return InputError("no such instance", file=self.path, field=field, value=self.fragment, legal=legal)


@dataclass(frozen=True)
class TraceRead:
    """Result of a reader.

    ``table`` has the columns of `optsched.problem.job_table.Job`; ``recipe`` records how it was derived.
    """

    table: pl.DataFrame
    name: str
    skipped_rows: int = 0
    cluster: Cluster | None = None
    objective: str | None = None
    optimum: dict[str, Any] | None = None
    recipe: dict[str, Any] = field(default_factory=dict)
    throughputs: Throughputs | None = None
    scalings: Mapping[str, Scaling] = field(default_factory=dict)

    def require_durations(self) -> None:
        """Raise `InputError` if the source states what jobs ask for and not how long they run."""
        if not {"duration", "iterations"} & set(self.table.columns):
            legal = "a log of jobs that ended, such as kueue:FILE, or csv:FILE with a column of durations"
            raise InputError(f"no job of {self.name} says how long it runs", field="duration", legal=legal)

    def instance(self) -> Instance:
        """Return the instance; `InputError` if the jobs have no durations, or nothing names a cluster."""
        self.require_durations()
        if self.cluster is None:
            raise InputError(f"{self.name} needs a cluster", field="cluster", legal=CLUSTER_LEGAL)
        parts = (self.table, self.cluster, self.name, self.objective, self.recipe, self.optimum)
        return Instance(*parts, throughputs=self.throughputs, scalings=self.scalings)


Reader = Callable[[TraceRequest], TraceRead]
Recogniser = Callable[[Sequence[str]], bool]
# legal values, the default first; every dialect takes `walltimes`
OPTIONS = {"unit": ("gpu", "cpu", "node"), "release": ("submit", "eligible"), "walltimes": (KEEP, CUT)}


@dataclass(frozen=True)
class Dialect:
    """One format of traces.

    ``header`` has the columns that a file of this dialect must have (empty: no header), ``fragment`` the meaning
    of ``#...`` (empty: none), ``brings_cluster`` whether the source names the cluster of its jobs, ``takes_columns``
    whether the user names the columns, ``guesses_cluster`` whether the most GPUs in use at once serve as the cluster if
    none is named, ``counts`` what the gang of a job counts, in the plural, ``takes`` which of the options ``unit`` and
    ``release`` it takes, ``recognises`` a function that returns True for the first lines of a file of this dialect (None:
    its header is looked for).
    """

    name: str
    summary: str
    reader: Reader
    header: tuple[str, ...] = ()
    fragment: str = ""
    brings_cluster: bool = False
    takes_columns: bool = False
    guesses_cluster: bool = False
    counts: str = "GPUs"
    takes: tuple[str, ...] = ()
    recognises: Recogniser | None = None

    def read(self, path: str | os.PathLike[str], **asked: Any) -> TraceRead:
        """Read a file.

        Parameters
        ----------
        path
            The file.
        **asked
            Options: the parameters of `TraceRequest`.

        Raises
        ------
        RowErrors
            With every bad row, unless ``skip_bad``.
        InputError
            If there is no such file, it is of another dialect, a fragment does not exist, or the dialect does not
            take an option.
        """
        request = TraceRequest(Path(path), **asked)
        if request.columns and not self.takes_columns:
            takers = [name for name, dialect in DIALECTS.items() if dialect.takes_columns]
            raise InputError(
                f"dialect {self.name} has columns of its own", field="columns", legal=f"with {', '.join(takers)}: only"
            )
        for name, legal in OPTIONS.items():
            value = getattr(request, name)
            check_legal(value in legal, name, value, ", ".join(legal))
            if value != legal[0] and name not in (*self.takes, "walltimes"):
                takers = [other for other, dialect in DIALECTS.items() if name in dialect.takes]
                raise InputError(
                    f"dialect {self.name} has no such choice", field=name, legal=f"with {', '.join(takers)}:"
                )
        if request.fragment is not None and not self.fragment:
            raise InputError(f"dialect {self.name} takes no #fragment", field="fragment", value=request.fragment)
        return self.reader(replace(request, limit=whole_limit(request.limit), dialect=self.name))


def whole_limit(limit: int | None) -> int | None:
    """Return ``limit`` as Python's integer.

    Parameters
    ----------
    limit
        None or an integer >= 1, also of numpy.

    Raises
    ------
    InputError
        If the limit is another value.
    """
    check_legal(limit is None or (is_whole(limit) and limit >= 1), "limit", limit, "an integer >= 1")
    return None if limit is None else int(limit)


DIALECTS: Registry[Dialect] = Registry("dialect", package="optsched.io.traces")


def dialect(name: str, **said: Any) -> Callable[[Reader], Reader]:
    """Decorate a reader to register it under ``name``; the first line of its docstring becomes the summary.

    Parameters
    ----------
    name
        Name of the dialect.
    **said
        Further fields of `Dialect`.
    """

    def add(reader: Reader) -> Reader:
        summary = (reader.__doc__ or "").strip().partition("\n")[0]
        DIALECTS.register(name)(Dialect(name, summary, reader, **said))
        return reader

    return add


def require_header(rows: Rows, header: tuple[str, ...]) -> None:
    """Check that the file has all columns of ``header`` and is not of a dialect that has them and more.

    The second rule rejects a file in other units: a Muri file (milliseconds) has all columns of Tiresias (seconds).

    Parameters
    ----------
    rows
        Rows of the file.
    header
        Columns of the dialect.

    Raises
    ------
    InputError
        If a column is missing, or the file is of another dialect.
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
    times: Mapping[str, pl.Series] | None = None,
    suspended: pl.Series | None = None,
    notes: Mapping[str, Any] | None = None,
    cluster: Cluster | None = None,
    objective: str | None = None,
    optimum: dict[str, Any] | None = None,
) -> TraceRead:
    """Check limits, clocks and gangs, report or skip the bad rows, cut to ``limit``, and build the table.

    Parameters
    ----------
    request
        The file and the options of the call.
    rows
        Rows of the file.
    jobs
        Canonical columns, one value a row of the file; without ``id`` the id of a job is the number of its line.
    fields
        Column of the file of each field, for the report, where the series has neither its name nor the field's.
    from_earliest
        Time columns that are counted from the earliest arrival of the legal rows.
    times
        Further times in seconds, by their column in the file, that must be on the clock of the arrivals; null is legal.
    suspended
        Seconds for which each job was suspended, f64[rows], in a source whose walltimes are limits of each run (see
        `optsched.io.traces.walltimes`).
    notes
        Further data with which the instance can be derived again; they go into its recipe.
    cluster
        Cluster of the source itself.
    objective
        Objective of the source itself.
    optimum
        Optimum of the source itself. It is dropped if the jobs or the cluster are not the ones it was proven for.

    Raises
    ------
    RowErrors
        With every bad row, unless they are skipped.
    InputError
        If no row is legal.
    """
    columns = dict(jobs)
    columns.setdefault("id", rows.line.cast(pl.String))
    columns.setdefault("arrival", pl.Series([0.0]).new_from_index(0, rows.count))
    named = {name: each.name if each.name in rows.columns else name for name, each in jobs.items()} | dict(fields or {})
    table = pl.DataFrame([column.alias(name) for name, column in columns.items()])
    checked = {named["due"]: columns["due"]} if named.get("due") in rows.columns else {}
    clock = (columns["arrival"], named.get("arrival", "arrival"), {**checked, **(times or {})})
    _require_one_clock(rows, *clock, absolute=bool(from_earliest))
    for name, wrong, limit, message in RULES:  # rules for one field alone; names are checked at the end
        of_file = name != "id" and named.get(name) in rows.columns
        if of_file and set(wrong.meta.root_names()) == {name}:
            rows.reject(table.select(wrong.fill_null(False)).to_series(), named[name], limit, message)
    arrival, legal, where = columns["arrival"], rows.good, request.cluster or cluster
    every = pl.Series([True]).new_from_index(0, rows.count)
    if where is not None:
        needs = tuple(columns.get(name) for name in ("gpu_memory", "gpu_types"))
        all_told = request.limit is None and not request.skip_bad  # also rows that are bad already
        judged = ~rows.absent if all_told else legal if request.skip_bad else _first(arrival, legal, request.limit)
        rows.reject_wide(columns["gpus"], named["gpus"], where, judged, *needs)
    fitting = rows.good
    rows.reject_duplicates()
    legal &= rows.good | ~fitting
    if not request.skip_bad:
        rows.raise_problems()
    kept = _first(arrival, rows.good, request.limit)
    if not kept.any():
        why = "no legal row" if rows.count else "no rows"
        if rows.left_out:
            why = f"no job; left out: {', '.join(f'{count} ({reason})' for reason, count in rows.left_out.items())}"
        raise InputError(why, file=rows.file, legal="at least one job")
    first = float(arrival.filter(legal).to_numpy().min())
    for name in from_earliest:
        columns[name] = columns[name] - first
    table = pl.DataFrame([column.alias(name) for name, column in columns.items()]).filter(kept)
    if from_earliest and "ran" in table.columns:
        table = table.with_columns(pieces_earlier(first))
    paused = None if suspended is None else suspended.filter(kept)
    table = apply_walltimes(rows, table, request.walltimes, paused)
    used, format_read = gpus_in_use(table), DIALECTS.get(request.dialect)
    noun = {"cpu": "CPU", "node": "node"}.get(request.unit, format_read.counts.removesuffix("s"))
    if used is not None:
        held = f"{counted(used, noun)} {were(used)} in use at once"
        if where is None and format_read.guesses_cluster:
            where = cluster = Cluster.parse(f"1x{used}")
            rows.say(f"the cluster is guessed: {held}; state yours with --cluster")
        elif where is not None and used > where.gpus and request.unit != "node":
            rows.say(f"up to {held}, more than the {where.gpus:,} of the cluster")
    # rows that are invalid, and gangs too wide for the cluster given before the last job kept
    passed = (arrival <= arrival.filter(kept).max()) if bool((rows.good & ~kept).any()) else every
    skipped = int((~legal & ~rows.absent).sum()) + int((legal & ~rows.good & passed.fill_null(True)).sum())
    columns_asked = dict(request.columns) if request.columns else None
    asked = {"fragment": request.fragment, "limit": request.limit, "columns": columns_asked}
    read: dict[str, Any] = {"file": request.path.name, "sha256": rows.sha256}
    read |= {name: value for name, value in asked.items() if value is not None}
    read |= {"rows": rows.count, "skipped_rows": skipped, **(notes or {})}
    told = {LEFT_OUT: rows.left_out, SKIPPED: rows.reasons if request.skip_bad else {}, SAID: rows.said}
    told |= {name: getattr(request, name) for name, legal in OPTIONS.items() if getattr(request, name) != legal[0]}
    read |= {name: value for name, value in told.items() if value}
    if "arrival" in from_earliest and first >= UNIX:
        read |= {ORIGIN: first} | ({} if rows.states_zone(named["arrival"]) else {ZONE: THE_LOGS})
    if noun != "GPU":
        read[COUNTS] = noun
    untouched = table.height == rows.count and where == cluster
    return TraceRead(
        table=table,
        name=request.stem + (f"#{request.fragment}" if request.fragment else ""),
        skipped_rows=skipped,
        cluster=where,
        objective=objective,
        optimum=optimum if untouched else None,
        recipe={"name": request.dialect, "seed": None, "parameters": read},
    )


def gpus_in_use(table: pl.DataFrame) -> int | None:
    """Return how many GPUs the pieces that ran held at most at once, and at least the widest gang; None without pieces.

    Parameters
    ----------
    table
        Jobs with the column ``ran`` of `optsched.problem.job_table.Job`.
    """
    if "ran" not in table.columns or table["ran"].null_count() == table.height:
        return None
    pieces = table.select("gpus", piece=pl.col("ran")).explode("piece").drop_nulls("piece")
    held = pl.coalesce(pl.col("piece").list.get(2, null_on_oob=True), pl.col("gpus").cast(pl.Float64))
    start, end = (pl.col("piece").list.get(k) for k in (0, 1))
    pieces = pieces.select(start.alias("start"), end.alias("end"), held.alias("held"))
    pieces = pieces.filter(pl.col("end") > pl.col("start"))
    ends = pieces.select(pl.col("end").alias("at"), change=-pl.col("held"))
    changes = pl.concat([pieces.select(at="start", change="held"), ends]).group_by("at").agg(pl.col("change").sum())
    in_use = changes.sort("at")["change"].cum_sum().to_numpy()
    return max(int(in_use.max(initial=1)), int(table["gpus"].to_numpy().max(initial=1)))


def _require_one_clock(
    rows: Rows, arrival: pl.Series, column: str, others: Mapping[str, pl.Series], *, absolute: bool
) -> None:
    """Reject rows whose arrival is not on the clock of most arrivals, and rows of which another time is not on it."""
    arrival = arrival.cast(pl.Float64)
    clock = OneClock.of(arrival, rows.good, absolute=absolute or are_unix_seconds(arrival))
    if clock is None:
        return
    first, last = (rows.place(column, k) for k in (clock.first, clock.last))
    legal = clock.legal(first, last)
    rows.reject(clock.not_on_it(arrival), column, legal, "on another clock")
    for name, times in others.items():
        rows.reject(clock.not_on_it(times.cast(pl.Float64)), name, f"{legal}; empty: none", "on another clock")


def _first(arrival: pl.Series, good: pl.Series, limit: int | None) -> pl.Series:
    # bool[rows]: the first `limit` good rows by (arrival, row)
    if limit is None or limit >= int(good.sum()):
        return good
    candidates = np.flatnonzero(good.to_numpy())
    order = np.argsort(arrival.to_numpy()[candidates], kind="stable")
    kept = np.zeros(len(good), dtype=bool)
    kept[candidates[order[:limit]]] = True
    return pl.Series("kept", kept)
