"""Starts and ends of runs on one clock, compared with the durations that the export states.

Slurm prints local times without a zone. When the clock goes back an hour, a run that lasts through the change ends before
it starts; its duration is right. An export with ``-T`` looks alike, but has cut the durations to its window.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from optsched.errors import InputError
from optsched.io.traces.rows import Rows
from optsched.io.traces.slurm_jobs import RUNNING, WAITING
from optsched.io.traces.slurm_times import lengths
from optsched.rounding import counted, were

TOLERANCE = 1.0  # seconds: Slurm cuts times to the second
CHANGE = 1800.0  # clocks go back by half-hours
SHOWN = 3
UTC = "TZ=UTC sacct"


@dataclass(frozen=True)
class RunTimes:
    """Times of the records: Unix seconds, f64[rows], and the seconds for which a run was suspended (0: none known)."""

    start: pl.Series
    end: pl.Series
    suspended: pl.Series


def on_one_clock(rows: Rows, table: pl.DataFrame) -> RunTimes:
    """Return starts and ends on one clock, and say which durations disagree with those that are stated.

    Parameters
    ----------
    rows
        Records of the export; ended runs without a start or an end become bad rows.
    table
        Columns ``id``, ``ran`` (a row of a job that was allocated nodes), ``held``, ``submit``, ``start``, ``end`` and
        ``state``.

    Raises
    ------
    InputError
        If the export was made with ``-T``.
    """
    stated, suspended = lengths(rows, "ElapsedRaw", "Elapsed"), lengths(rows, "Suspended")
    nothing = pl.Series([None], dtype=pl.Float64).new_from_index(0, rows.count)
    table = table.with_columns(
        stated=nothing if stated is None else stated,
        given=nothing if suspended is None else suspended,
        good=rows.good & table["ran"],
    )
    within = pl.col("end").is_between(pl.col("start") - TOLERANCE, pl.col("start"))
    table = table.with_columns(end=pl.when(within).then(pl.col("start")).otherwise(pl.col("end")))
    table = table.with_columns(ended=pl.col("good") & ~pl.col("state").is_in(RUNNING))
    _refuse_truncated(rows, table)
    table = _after_the_change(rows, _with_ends(table))
    for name in ("start", "end"):
        rows.reject(table["ended"] & table[name].is_null(), name.title(), "a time", "missing")
    before = (table["good"] & (table["end"] < table["start"])).fill_null(False)
    rows.reject(before, "End", f"not before Start; export Elapsed, and with {UTC}", "before Start")
    return RunTimes(table["start"], table["end"], _compared(rows, table, suspended is not None))


def _refuse_truncated(rows: Rows, table: pl.DataFrame) -> None:
    cut = (table["good"] & (table["end"] < table["start"]) & (table["stated"] == 0)).fill_null(False)
    # a job that waits has no start
    cut |= (rows.good & table["state"].is_in(WAITING) & (table["end"] == table["start"])).fill_null(False)
    if cut.any():
        position = int(cut.arg_true()[0])
        where = {"row": rows.line[position], "field": "End", "value": rows.text("End", required=False)[position]}
        why = "End before Start and no Elapsed, or a waiting job with a start: the export is cut (-T, --truncate)"
        raise InputError(why, file=rows.file, **where, legal="sacct without -T")


def _with_ends(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with ends by the stated durations, where there is no end or it is before the start."""
    length = pl.col("stated") + pl.col("given").fill_null(0.0)
    missing = pl.col("ended") & pl.col("end").is_null() & (length > 0)
    back = (pl.col("good") & (pl.col("end") < pl.col("start"))).fill_null(False)
    # without Suspended: the least change of the clock that leaves room for the duration
    least = ((pl.col("start") + length - pl.col("end") - TOLERANCE) / CHANGE).ceil() * CHANGE
    by_change = back & length.is_not_null() & pl.col("given").is_null()
    by_length = missing | (back & length.is_not_null() & pl.col("given").is_not_null())
    end = pl.when(by_change).then(pl.col("end") + least).when(by_length).then(pl.col("start") + length)
    return table.with_columns(end=end.otherwise(pl.col("end")), change=pl.when(back).then(least), back=back)


def _after_the_change(rows: Rows, table: pl.DataFrame) -> pl.DataFrame:
    """Move runs that were submitted before a change of the clock and started after it."""
    count, change = int(table["back"].sum()), table["change"].max()
    if not count:
        return table
    resized = pl.col("state").eq("RESIZING").shift(1).fill_null(False) & pl.col("id").eq(pl.col("id").shift(1))
    early = pl.col("good") & ~resized & ~pl.col("back") & (pl.col("start") < pl.col("submit") - TOLERANCE)
    moves = (early & (pl.col("start") + change >= pl.col("submit") - TOLERANCE)).fill_null(False)
    moved = int(table.select(moves.sum()).item())
    rows.say(
        f"the clock went back during {counted(count, 'run')}: the end is Start + Elapsed + Suspended; "
        f"{counted(moved, 'run')} with a start before the submission {were(moved)} moved; export with {UTC}"
    )
    return table.with_columns(
        pl.when(moves).then(pl.col(name) + change).otherwise(pl.col(name)).alias(name) for name in ("start", "end")
    )


def _compared(rows: Rows, table: pl.DataFrame, given: bool) -> pl.Series:
    between = pl.col("end") - pl.col("start")
    table = table.with_columns(left=between - pl.col("given").fill_null(0.0) - pl.col("stated"))
    wrong = table.filter(pl.col("ended") & (pl.col("held") > 0) & (pl.col("left").abs() > TOLERANCE))
    if wrong.height:
        listed = [
            f"job {job} ({stated:,.0f} s, not {stated + left:,.0f} s)"
            for job, stated, left in wrong.select("id", "stated", "left").head(SHOWN).iter_rows()
        ]
        listed += [f"{wrong.height - SHOWN:,} more"] if wrong.height > SHOWN else []
        hint = "" if given else "; the field Suspended would tell whether they were suspended"
        count = counted(wrong.height, "run")
        rows.say(f"Elapsed is not End - Start - Suspended in {count}: {', '.join(listed)}; Start and End count{hint}")
    unknown = pl.lit(0.0) if given else pl.when(pl.col("ended") & (pl.col("left") > TOLERANCE)).then(pl.col("left"))
    return table.select(pl.coalesce(pl.col("given"), unknown, pl.lit(0.0)).alias("suspended"))["suspended"]
