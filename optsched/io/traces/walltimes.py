"""Runs that are longer than the limit of their user: the log says so, and they are kept or cut there.

The limit of a job is for all its pieces together, as in a log of jobs that are checkpointed, or for each of its runs, as in
Slurm: a job that is requeued has the whole limit again, and the time for which it is suspended does not count. Pieces that
follow each other without a gap, because the job changed its size, are one run. The ``walltime`` of the job is in both cases
what its user stated.
"""

from __future__ import annotations

import polars as pl

from optsched.io.traces.rows import Rows
from optsched.rounding import counted, number

KEEP, CUT = "keep", "cut"
_CLOSE = 1e-6  # seconds by which the pieces of a job may differ from its duration through rounding


def apply_walltimes(rows: Rows, table: pl.DataFrame, choice: str, suspended: pl.Series | None = None) -> pl.DataFrame:
    """Return the jobs, with durations and pieces cut at the walltime if that is the choice; note how many are longer.

    Parameters
    ----------
    rows
        Rows of the file, for the note.
    table
        Jobs with the columns of `optsched.problem.job_table.Job`.
    choice
        ``keep`` or ``cut``.
    suspended
        Seconds for which each job was suspended, f64[jobs], if the limit is for each run; None: for all pieces together.
    """
    stated = {"walltime", "duration"} <= set(table.columns) and table["walltime"].count() > 0
    if not stated:
        if choice == CUT:
            rows.say("no job states a walltime: no run is cut")
        return table
    judged = table.with_row_index("row")
    if "ran" in table.columns:
        cut = _cut_pieces(judged, suspended)
        judged = judged.join(cut, on="row", how="left", maintain_order="left")
    if suspended is None:
        judged = judged.with_columns(over=(pl.col("duration") - pl.col("walltime")).fill_null(0.0))
        shorter = pl.col("walltime")
    else:
        judged = judged.with_columns(pl.col("over").fill_null(0.0))
        left = pl.col("duration") - pl.col("lost")
        shorter = pl.when((left - pl.col("walltime")).abs() < _CLOSE).then("walltime").otherwise(left)
    beyond = pl.col("over") > 0
    count, most = judged.select(beyond.sum().alias("count"), pl.col("over").max().alias("most")).row(0)
    if not count:
        return table
    jobs = f"{count:,} of {counted(table.height, 'job')}"
    longer = f"{jobs} ran longer than their walltime, by up to {number(most, 10)} s"
    if choice == KEEP:
        rows.say(f"{longer}: they are kept; --walltimes cut ends them at it")
        return table
    rows.say(f"{longer}: they are cut there")
    judged = judged.with_columns(pl.when(beyond).then(shorter).otherwise("duration").alias("duration"))
    if "ran" in table.columns:
        judged = judged.with_columns(pl.when(beyond).then("kept").otherwise("ran").alias("ran"))
    return judged.select(table.columns)


def _cut_pieces(table: pl.DataFrame, suspended: pl.Series | None) -> pl.DataFrame:
    """Return what the limits leave, by ``row`` of jobs with a limit and pieces.

    ``kept`` has the pieces, ``over`` the most seconds by which a run is too long, and ``lost`` the GPU-seconds that are cut
    off, divided by the gang.
    """
    start, end, held = (pl.col("ran").list.get(k, null_on_oob=True) for k in range(3))
    length, row, first = pl.col("end") - pl.col("start"), pl.col("row"), pl.col("start")
    table = table.with_columns(suspended=pl.lit(0.0) if suspended is None else suspended)
    table = table.select("row", "gpus", "duration", "walltime", "suspended", "ran").filter(
        pl.col("walltime").is_not_null()
    )
    pieces = table.explode("ran").drop_nulls("ran").with_columns(start=start, end=end, held=held)
    width = pl.coalesce("held", pl.col("gpus").cast(pl.Float64)) / pl.col("gpus")
    if suspended is None:  # a job may hold more than it works
        idle = (length * width).sum().over("row") - pl.col("duration")
        allowed, new = pl.when(idle > _CLOSE).then(idle).otherwise(0.0), row != row.shift(1)
    else:
        allowed, new = pl.col("suspended"), (row != row.shift(1)) | (first - pl.col("end").shift(1) > _CLOSE)
    pieces = pieces.with_columns(run=new.fill_null(True).cum_sum(), allowed=pl.col("walltime") + allowed)
    before = length.cum_sum().over("run") - length
    pieces = pieces.with_columns(left=pl.col("allowed") - before)
    excess = length - pl.col("left").clip(0.0)
    pieces = pieces.with_columns(excess=pl.when(excess > _CLOSE).then(excess).otherwise(0.0))
    pieces = pieces.with_columns(over=pl.col("excess").sum().over("run"), lost=pl.col("excess") * width)
    last = pl.col("end") - pl.col("excess")
    whole = pl.when(pl.col("held").is_null()).then(pl.concat_list("start", last))
    piece = whole.otherwise(pl.concat_list("start", last, "held"))
    lost = pl.col("lost").sum()
    kept = piece.filter(pl.col("left") > 0)
    return pieces.group_by("row", maintain_order=True).agg(kept=kept, over=pl.col("over").max(), lost=lost)
