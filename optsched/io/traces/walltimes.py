"""Runs that are longer than the limit of their user: the log says so, and they are kept or cut there."""

from __future__ import annotations

import numpy as np
import polars as pl

from optsched.io.traces.rows import Rows
from optsched.rounding import counted, number

KEEP, CUT = "keep", "cut"
_CLOSE = 1e-6  # seconds by which the pieces of a job may differ from its duration through rounding


def apply_walltimes(rows: Rows, table: pl.DataFrame, choice: str) -> pl.DataFrame:
    """Return the jobs, with durations and pieces cut at the walltime if that is the choice; note how many are longer.

    Parameters
    ----------
    rows
        Rows of the file, for the note.
    table
        Jobs with the columns of `optsched.problem.job_table.Job`.
    choice
        ``keep`` or ``cut``.
    """
    stated = {"walltime", "duration"} <= set(table.columns) and table["walltime"].count() > 0
    if not stated:
        if choice == CUT:
            rows.say("no job states a walltime: no run is cut")
        return table
    over = (table["duration"] - table["walltime"]).fill_null(0.0)
    beyond = over > 0
    if not beyond.any():
        return table
    most = float(over.to_numpy().max())
    jobs = f"{int(beyond.sum()):,} of {counted(table.height, 'job')}"
    longer = f"{jobs} ran longer than their walltime, by up to {number(most, 10)} s"
    if choice == KEEP:
        rows.say(f"{longer}: they are kept; --walltimes cut ends them at it")
        return table
    rows.say(f"{longer}: they are cut there")
    if "ran" in table.columns:
        pieces = zip(*(table[name].filter(beyond) for name in ("ran", "duration", "walltime")), strict=True)
        shorter = pl.Series([_shortened(*job) for job in pieces], dtype=table["ran"].dtype)
        place = np.arange(table.height)
        place[beyond.to_numpy()] = table.height + np.arange(len(shorter))
        table = table.with_columns(pl.concat([table["ran"], shorter]).gather(place).alias("ran"))
    return table.with_columns(pl.when(beyond).then("walltime").otherwise("duration").alias("duration"))


def _shortened(pieces: pl.Series | None, duration: float, walltime: float) -> list[list[float]] | None:
    if pieces is None:
        return None
    held = sum(piece[1] - piece[0] for piece in pieces)
    left = walltime + (held - duration if held - duration > _CLOSE else 0.0)  # it may hold more than it works
    kept: list[list[float]] = []
    for start, end, *gpus in pieces:
        kept.append([start, min(end, start + left), *gpus])
        left -= end - start
        if left <= 0:
            break
    return kept
