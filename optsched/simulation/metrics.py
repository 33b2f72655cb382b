"""Metrics of a schedule (JCT, queueing, slowdown, makespan, utilisation, fairness, GPU-hours) and its tables.

C_j completion, r_j arrival, g_j gang, G all GPUs; times in seconds. Sums and means are over finished jobs. Moments
(arrival, start, end) are on the log's clock. Lengths of time are differences of times from the first arrival
(`optsched.problem.epoch`), so that the epoch of the log costs them no digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from optsched.problem.arrays import Floats
from optsched.problem.gpu_names import node_first
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.problem.table import Table
from optsched.speeds.duration import segment_paces, solo_times

HOUR = 3600.0
FAIR = 1e-12  # a fairness that differs from 1 by rounding alone is 1

# None where no job finished
OF_FINISHED = (
    *("mean_jct", "p50_jct", "p95_jct", "p99_jct", "mean_queueing"),
    *("mean_bsld", "p95_bsld", "max_ftf", "mean_ftf", "max_flow_time"),
)
SHORT = 10.0  # seconds: a shorter job counts as one of this length in its bounded slowdown


def metrics(schedule: Schedule) -> dict[str, Any]:
    """Return the metrics of a run, with the names of ``run --json``.

    Parameters
    ----------
    schedule
        A schedule; jobs may be unfinished.

    Notes
    -----
    Times are counted from the first arrival; makespan and completion times are put back on the log's clock.

    JCT = C - r; queueing = time arrived and not running (in any copy). Utilization = busy GPU-s / (G x T), where busy
    is work done and T the time from the first arrival to the last completion. ``gpu_hours``: busy, overhead (held
    without progress: restarts, and the cost of contention for the network), idle (G x T less both) and waiting (gang x
    queueing). ``mean_bsld`` and ``p95_bsld``: bounded slowdown (`bounded_slowdowns`).

    Complexity O((n + S) log n).
    """
    logged, schedule = schedule.instance, schedule.relative
    instance = schedule.instance
    done = schedule.finished
    completion, arrival = schedule.completion[done], instance.arrival[done]
    jct = completion - arrival
    length = schedule.end - schedule.start
    ran = seconds_running(schedule)[done]
    queueing = np.maximum(jct - ran, 0.0)
    span = float(schedule.end.max()) if len(schedule) else 0.0
    pace = segment_paces(instance, schedule.job, schedule.gpu_offset, schedule.gpu_node)
    busy = float(np.dot(schedule.gangs, schedule.work * pace)) / HOUR
    held = float(np.dot(schedule.gangs, length)) / HOUR
    total = offered_hours(schedule)
    fairness = finish_time_fairness(schedule)
    p50, p95, p99 = np.percentile(jct, [50, 95, 99]).tolist() if jct.size else (0.0, 0.0, 0.0)
    weight = instance.weight[done]
    slowdown = bounded_slowdowns(instance, schedule.completion)[done]
    values = {
        "mean_jct": mean_of(jct),
        "p50_jct": p50,
        "p95_jct": p95,
        "p99_jct": p99,
        "makespan": span + logged.epoch if len(schedule) else 0.0,
        "total_completion_time": float(completion.sum() + logged.epoch * completion.size),
        "total_weighted_completion_time": float((weight * completion).sum() + logged.epoch * weight.sum()),
        "total_flow_time": float(jct.sum()),
        "max_flow_time": float(jct.max(initial=0.0)),
        "mean_queueing": mean_of(queueing),
        "mean_bsld": mean_of(slowdown),
        "p95_bsld": float(np.percentile(slowdown, 95)) if slowdown.size else 0.0,
        "utilization": busy / total if total > 0 else 0.0,
        "max_ftf": float(fairness.max()) if fairness.size else 0.0,
        "mean_ftf": mean_of(fairness),
        "gpu_hours": {
            "busy": busy,
            "overhead": held - busy,
            "idle": total - held,
            "waiting": float(np.dot(instance.gpus[done], queueing)) / HOUR,
        },
        "finished": int(done.sum()),
        "unfinished": int(instance.n - done.sum()),
        "jobs": instance.n,
    }
    return values if done.any() else {**values, **dict.fromkeys(OF_FINISHED)}


def bounded_slowdowns(instance: Instance, completion: Floats) -> Floats:
    """Return the bounded slowdown of every job, f64[n]: max(1, (C - r) / max(p, 10 s)).

    Parameters
    ----------
    instance
        Jobs; p is the time of a job alone on the best placement (`optsched.speeds.duration.solo_times`).
    completion
        Completion times in seconds, f64[n]; nan for a job that did not finish.
    """
    return np.maximum(1.0, (completion - instance.arrival) / np.maximum(solo_times(instance).seconds, SHORT))


def without_overhead(schedule: Schedule, busy: float, waiting: float) -> dict[str, Any]:
    """Return utilization and GPU-hours of a schedule in which GPUs are never held without progress.

    Parameters
    ----------
    schedule
        The schedule.
    busy
        GPU-hours in which GPUs computed.
    waiting
        GPU-hours that gangs waited.
    """
    hours = offered_hours(schedule)
    split = {"busy": busy, "overhead": 0.0, "idle": hours - busy, "waiting": waiting}
    return {"utilization": busy / hours if hours > 0 else 0.0, "gpu_hours": split}


def offered_hours(schedule: Schedule) -> float:
    """Return the GPU-hours of all GPUs from the first arrival to the last completion.

    Parameters
    ----------
    schedule
        The schedule.
    """
    return schedule.instance.cluster.gpus * offered_seconds(schedule) / HOUR


def offered_seconds(schedule: Schedule) -> float:
    """Return T, the seconds from the first arrival to the last completion; 0 for an empty schedule.

    Parameters
    ----------
    schedule
        The schedule.
    """
    if not len(schedule):
        return 0.0
    schedule = schedule.relative
    return float(schedule.end.max()) - float(schedule.instance.arrival.min())


def presence(schedule: Schedule) -> tuple[float, npt.NDArray[np.bool_]]:
    """Return the GPU-seconds in which GPUs are held, and the segments that ever share a GPU.

    Parameters
    ----------
    schedule
        A schedule in which jobs may share GPUs.

    Returns
    -------
    tuple
        GPU-seconds with a segment on the GPU, each counted once; whether each segment ever ran together with another
        one on a GPU, bool[S].

    Notes
    -----
    Complexity O(K log K) for K pairs of segment and GPU.
    """
    segment = np.repeat(np.arange(len(schedule)), schedule.gangs)
    gpu = node_first(schedule.instance)[schedule.gpu_node] + schedule.gpu_index
    moment = np.concatenate([schedule.start[segment], schedule.end[segment]])
    change = np.repeat([1, -1], segment.size)
    order = np.lexsort((change, moment, np.concatenate([gpu, gpu])))  # on a GPU; at one moment, ends first
    present = np.cumsum(change[order])  # 0 after the last event of every GPU
    lasting = np.append(np.diff(moment[order]), 0.0)
    crowded = np.concatenate([[0], np.cumsum((present > 1) & (lasting > 0))])
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    beside = crowded[place[segment.size :]] > crowded[place[: segment.size]]
    partnered = np.zeros(len(schedule), dtype=np.bool_)
    partnered[segment[beside]] = True
    return float(lasting[present > 0].sum()), partnered


def seconds_running(schedule: Schedule) -> Floats:
    """Return the seconds in which every job ran, f64[n]; seconds in which several of its copies ran count once.

    Parameters
    ----------
    schedule
        The schedule.

    Notes
    -----
    Complexity O(S log S).
    """
    n, job, start, end = schedule.instance.n, schedule.job, schedule.start, schedule.end
    length = end - start
    several = np.flatnonzero(np.bincount(job, minlength=1)[job] > 1)  # segments of jobs with more than one
    order = several[np.lexsort((start[several], job[several]))]
    j, begin, stop = job[order], start[order], end[order]
    if ((j[1:] == j[:-1]) & (begin[1:] < stop[:-1])).any():
        by_end = np.lexsort((stop, j))
        rank = np.empty(by_end.size, dtype=np.int64)
        rank[by_end] = np.arange(by_end.size)
        latest = by_end[np.maximum.accumulate(rank)]  # of a job's segments so far, the one that ends last
        again = np.flatnonzero((j[1:] == j[:-1]) & (begin[1:] < stop[latest[:-1]])) + 1
        length[order[again]] = np.maximum(0.0, stop[again] - stop[latest[again - 1]])
    return np.bincount(job, weights=length, minlength=n).astype(np.float64)


def cluster_utilization(schedule: Schedule) -> tuple[float, float]:
    """Return the CRU (occupied, productive): the shares of G x TTD in which GPUs are held, and in which they do work.

    Parameters
    ----------
    schedule
        The schedule; both shares are 0 if it is empty.

    Notes
    -----
    TTD, total time duration = last completion - first arrival. The productive share is ``utilization`` measured from
    the first arrival.
    """
    if not len(schedule):
        return 0.0, 0.0
    schedule = schedule.relative
    instance = schedule.instance
    span = instance.cluster.gpus * offered_seconds(schedule)
    pace = segment_paces(instance, schedule.job, schedule.gpu_offset, schedule.gpu_node)
    held = float(np.dot(schedule.gangs, schedule.end - schedule.start))
    if schedule.sub_steps is not None:
        held = presence(schedule)[0]  # a GPU counts once
    return held / span, float(np.dot(schedule.gangs, schedule.work * pace)) / span


def finish_time_fairness(schedule: Schedule) -> Floats:
    """Return the FTF of every finished job: JCT / (solo time x max(1, n g / G)).

    Parameters
    ----------
    schedule
        The schedule.

    Notes
    -----
    n is the mean number of active jobs during the job's stay. A job is active from arrival to completion; unfinished
    jobs are active until the schedule ends. With a value above 1 the job would have been better off with a private 1/n
    share of the cluster.

    The solo time is that of the job's gang on the best placement of this cluster (`optsched.speeds.duration`), so that
    a gang alone has 1 there and more elsewhere; a job that forks or takes more GPUs than its gang may have less. If the
    best placement is not known (`SoloTimes.exact`), the solo time is a lower bound and the FTF an upper bound; reports
    say so.
    """
    schedule = schedule.relative
    instance = schedule.instance
    done = schedule.finished
    if not done.any():
        return np.zeros(0)
    end = float(schedule.end.max())
    completion = np.where(done, schedule.completion, np.maximum(end, instance.arrival))
    jct = completion[done] - instance.arrival[done]
    arrival = instance.arrival
    come, gone = _positive_parts(arrival), _positive_parts(completion)
    until, since = completion[done], arrival[done]
    stay = (come(until) - gone(until)) - (come(since) - gone(since))
    active = np.divide(stay, jct, out=np.ones_like(jct), where=jct > 0)  # a stay that the clock rounds to nothing
    share = np.maximum(1.0, active * instance.gpus[done] / instance.cluster.gpus)
    fairness = jct / (solo_times(instance).seconds[done] * share)
    return np.where(np.abs(fairness - 1.0) <= FAIR, 1.0, fairness)


def _positive_parts(origin: Floats) -> Callable[[Floats], Floats]:
    # The function sum (t - origin)^+ of moments t. That of arrivals less that of completions integrates the active jobs.
    ordered = np.sort(origin)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])

    def parts(at: Floats) -> Floats:
        k = np.searchsorted(ordered, at, side="right")
        return k * at - sums[k]

    return parts


def mean_of(values: Floats) -> float:
    """Return the mean of an array; 0 if it is empty.

    Parameters
    ----------
    values
        Numbers, f64[].
    """
    return float(values.mean()) if values.size else 0.0


# --- tables, for people and data frames; programs read the arrays -----------------------------------------------------


def jobs_table(schedule: Schedule) -> Table:
    """Return a table with one row a job, in the order of the instance.

    Parameters
    ----------
    schedule
        The schedule.

    Notes
    -----
    Columns: ``id``; ``arrival`` r_j, ``start`` of the first segment and ``end`` C_j, in seconds on the log's clock;
    ``jct`` = C_j - r_j and ``queueing`` = time arrived and not running, in seconds; ``gpus`` g_j. A value that a job
    lacks, because it did not finish or never started, is null. Complexity O(n + S log S).
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
    """Return a table with one row a segment, in the order of the schedule.

    Parameters
    ----------
    schedule
        The schedule.

    Notes
    -----
    Columns: ``job`` its id; ``start``, ``end`` in seconds on the log's clock; ``seconds`` its length; ``work`` in the
    units of `Instance.work`; ``gpus`` the number of GPUs; ``node`` and ``index`` the lists of GPUs, as in a schedule's
    ``.parquet`` file; ``steps`` of gradient accumulation if jobs share GPUs. Complexity O(K) for K pairs of segment and
    GPU.
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
    if schedule.sub_steps is not None:
        columns.append(pl.Series("steps", schedule.sub_steps))
    return Table(columns)


def first_starts(schedule: Schedule) -> Floats:
    """Return the time at which every job started, f64[n], in seconds; nan for a job that never did.

    Parameters
    ----------
    schedule
        The schedule.
    """
    first = np.full(schedule.instance.n, np.inf)
    np.minimum.at(first, schedule.job, schedule.start)
    return np.where(np.isfinite(first), first, np.nan)


def _lists(name: str, values: npt.NDArray[np.int64], offset: npt.NDArray[np.int64]) -> pl.Series:
    rows = [part.tolist() for part in np.split(values, offset[1:-1])] if offset.size > 1 else []
    return pl.Series(name, rows, dtype=pl.List(pl.Int64))
