"""Tables of a schedule: one row a job, one row a segment. For people and data frames; programs read the arrays.

Moments (arrival, start, end) are on the log's clock; lengths of time are taken counted from the first arrival
(`optsched.problem.epoch`), so that the epoch of the log costs them no digit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from optsched.problem.arrays import Floats
from optsched.problem.schedule import Schedule, SharedSchedule
from optsched.problem.table import Table
from optsched.simulation.metrics import seconds_running


def jobs_table(schedule: Schedule) -> Table:
    """One row a job, in the order of the instance.

    ``id``; ``arrival`` r_j, ``start`` of its first segment, ``end`` C_j, seconds on the log's clock; ``jct`` = C_j - r_j and
    ``queueing`` = time arrived and not running, in seconds; ``gpus`` g_j. What a job that did not finish, or never started,
    does not have is null. O(n + S log S).
    """
    local, instance = schedule.relative, schedule.instance
    jct = local.completion - local.instance.arrival
    columns = {
        "arrival": instance.arrival,
        "start": first_starts(schedule),
        "end": schedule.completion,
        "jct": jct,
        "queueing": np.maximum(jct - seconds_running(local), 0.0),
    }
    return Table(
        [
            pl.Series("id", instance.ids, dtype=pl.String),
            *(pl.Series(name, values).fill_nan(None) for name, values in columns.items()),
            pl.Series("gpus", instance.gpus),
        ]
    )


def segments_table(schedule: Schedule) -> Table:
    """One row a segment, in the order of the schedule.

    ``job`` its id; ``start``, ``end`` seconds on the log's clock; ``seconds`` how long; ``work`` as in `Instance.work`;
    ``gpus`` how many; ``node`` and ``index`` lists of which, as in a schedule's ``.parquet`` file; ``steps`` of gradient
    accumulation where jobs share GPUs. O(K) for K pairs of segment and GPU.
    """
    local, ids = schedule.relative, np.array(schedule.instance.ids, dtype=object)
    columns = [
        pl.Series("job", ids[schedule.job].tolist(), dtype=pl.String),
        pl.Series("start", schedule.start),
        pl.Series("end", schedule.end),
        pl.Series("seconds", local.end - local.start),
        pl.Series("work", schedule.work),
        pl.Series("gpus", schedule.gangs),
        _lists("node", schedule.gpu_node, schedule.gpu_offset),
        _lists("index", schedule.gpu_index, schedule.gpu_offset),
    ]
    if isinstance(schedule, SharedSchedule):
        columns.append(pl.Series("steps", schedule.steps))
    return Table(columns)


def first_starts(schedule: Schedule) -> Floats:
    """When every job started, f64[n] seconds; nan for one that never did."""
    first = np.full(schedule.instance.n, np.inf)
    np.minimum.at(first, schedule.job, schedule.start)
    return np.where(np.isfinite(first), first, np.nan)


def _lists(name: str, values: npt.NDArray[np.int64], offset: npt.NDArray[np.int64]) -> pl.Series:
    rows = [part.tolist() for part in np.split(values, offset[1:-1])] if offset.size > 1 else []
    return pl.Series(name, rows, dtype=pl.List(pl.Int64))
