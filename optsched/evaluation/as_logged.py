"""`as_logged`: the schedule that really ran, as the log of an instance says, with everything in it that cannot be true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from optsched.classes import usual_class
from optsched.io.traces.log_reading import moment_in_words, unit_of
from optsched.problem.arrays import Floats, Ints
from optsched.problem.gpu_names import named_anyway
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.rounding import counted, number
from optsched.simulation.knowledge import NOT_STATED
from optsched.simulation.metrics import HOUR, first_starts, metrics, without_overhead
from optsched.simulation.run import Run

AS_LOGGED = "as logged"
SAME = 1e-9  # relative: two sums of times that differ by rounding alone
LONG = 3600.0  # seconds: a shorter span of idle GPUs is not listed


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """A statement of a log that no schedule of its instance can have.

    Parameters
    ----------
    rule
        The rule of the referee that it breaks: ``arrival``, ``gang``, ``capacity`` or ``work``.
    job
        Id of the job.
    detail
        What the log says, and what would be consistent.
    """

    rule: str
    job: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: job {self.job!r} {self.detail}"


@dataclass(frozen=True, slots=True)
class IdleSpan:
    """A span of time in which the next job waited although enough GPUs for it were idle.

    Parameters
    ----------
    start, end
        Start and end in seconds on the clock of the log.
    idle
        GPUs that were idle during the whole span.
    waiting
        Most jobs that waited at once.
    gpu_hours
        GPU-hours that were idle in the span.
    """

    start: float
    end: float
    idle: int
    waiting: int
    gpu_hours: float


@dataclass(frozen=True, eq=False, repr=False)
class LoggedRun(Run):
    """The schedule that really ran, as a `Run` that no policy made and that the referee has not judged.

    Jobs complete at the end of their last piece. If the log holds more GPUs than there are, the names of GPUs mean
    nothing; numbers of GPUs and times are those of the log.

    Attributes
    ----------
    inconsistencies
        Everything in the log that no schedule can have. Its ratio may then be less than 1.
    """

    inconsistencies: tuple[Inconsistency, ...] = ()

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """See `optsched.simulation.metrics.metrics`; busy GPU-hours are never more than those that the log holds.

        A job without a duration, whose speed depends on its GPUs, is busy as long as it holds them.
        """
        found, schedule = metrics(self.schedule), self.schedule.relative
        held = schedule.end - schedule.start
        timed = ~np.isnan(schedule.instance.duration)[schedule.job]
        busy = float(np.dot(schedule.gangs, np.where(timed, np.minimum(held, schedule.work), held))) / HOUR
        overhead = float(np.dot(schedule.gangs, held)) / HOUR - busy
        split = without_overhead(schedule, busy, found["gpu_hours"]["waiting"])
        split["gpu_hours"]["overhead"] = overhead
        split["gpu_hours"]["idle"] -= overhead
        return {**found, **split}

    @cached_property
    def most_in_use(self) -> int:
        """The most GPUs that the log has in use at once."""
        return int(_in_use_at_starts(self.schedule.relative)[0].max(initial=0))

    @cached_property
    def idle_spans(self) -> tuple[IdleSpan, ...]:
        """Spans of more than an hour in which the next job waited although it fitted, the most idle GPU-hours first.

        The next job is the first one by arrival that has not started. Such a span is an outage, dedicated time, or a
        limit that the instance does not know.
        """
        spans = _idle_spans(self.schedule.relative, self.instance.epoch)
        return tuple(sorted(spans, key=lambda span: -span.gpu_hours))


def as_logged(instance: Instance) -> LoggedRun | None:
    """Return the schedule that really ran; None if no job of the instance says when it ran.

    The log need not be consistent. What no schedule of the instance can have is listed and is no error.

    Parameters
    ----------
    instance
        Jobs, some with ``ran``, and a cluster.
    """
    if not has_log(instance):
        return None
    local = instance.relative
    job, start, end, gpus = pieces_of(local)
    # a job that changed its size may last longer than its duration, which stands for its GPU-seconds, and has lost nothing
    total = np.bincount(job, weights=end - start, minlength=local.n)
    whole = np.bincount(job, weights=(end - start) * (gpus / local.gpus[job]), minlength=local.n)
    ran_for = np.where(np.isnan(local.duration), total, np.minimum(total, whole))
    last = np.zeros(job.size, dtype=np.bool_)
    last[np.unique(job[::-1], return_index=True)[1]] = True  # counted from the end
    scale = np.divide(local.work, ran_for, out=np.ones(local.n), where=total > 0)
    scale[np.abs(scale - 1) <= SAME] = 1.0
    # work in proportion to the time that a piece lasts; all of it at once where the log has no time at all
    work = np.where(total[job] > 0, (end - start) * scale[job], local.work[job] * last[::-1])
    schedule = Schedule(local, job, start, end, work, *named_anyway(local, start, end, gpus), AS_LOGGED)
    ran = int(np.unique(job).size)
    run = LoggedRun(
        schedule,
        AS_LOGGED,
        NOT_STATED,
        preemptive=bool(job.size > ran),
        events=instance.n + ran,
        preemptions=job.size - ran,
        seconds=0.0,
        inconsistencies=tuple(_inconsistencies(schedule, instance.epoch)),
    )
    return run.on_clock(instance)


def jobs_that_ran(instance: Instance) -> pl.Series:
    """Return which jobs of an instance say when they ran, bool[n].

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    return instance.table["ran"].list.len().fill_null(0) > 0


def has_log(instance: Instance) -> bool:
    """Return True if some whole job of an instance says when it ran.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    return bool(jobs_that_ran(instance).any()) and usual_class(instance).whole


def pieces_of(instance: Instance) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the pieces that ran: job, start and end in seconds, and GPUs, in the order of their ends.

    Parameters
    ----------
    instance
        Jobs, some with ``ran``.
    """
    piece = pl.col("ran").list
    rows = instance.table.with_row_index("job").select("job", "gpus", "ran").explode("ran").drop_nulls("ran")
    rows = rows.select(
        pl.col("job").cast(pl.Int64),
        start=piece.get(0),
        end=piece.get(1),
        gpus=pl.coalesce(piece.get(2, null_on_oob=True).cast(pl.Int64), "gpus"),
    ).sort("end", "start", "job", maintain_order=True)
    return tuple(rows[name].to_numpy() for name in ("job", "start", "end", "gpus"))  # type: ignore[return-value]


# --- what cannot be true ----------------------------------------------------------------------------------------------


def _inconsistencies(schedule: Schedule, epoch: float) -> Iterator[Inconsistency]:
    """Yield what no schedule of the instance can have, rule by rule; O(S log S)."""
    instance, job, start, end = schedule.instance, schedule.job, schedule.start, schedule.end
    ids, gangs, unit = instance.ids, schedule.gangs, unit_of(instance)

    def at(seconds: float) -> str:
        return moment_in_words(instance, seconds + epoch)

    for s in np.flatnonzero(start < instance.arrival[job]).tolist():
        arrival = at(instance.arrival[job[s]])
        yield Inconsistency("arrival", ids[job[s]], f"starts at {at(start[s])}, before its submission at {arrival}")
    for s in np.flatnonzero(gangs != instance.gpus[job]).tolist():
        asked = instance.gpus[job[s]]
        held = counted(int(gangs[s]), unit)
        yield Inconsistency("gang", ids[job[s]], f"holds {held} from {at(start[s])}, and its gang is {asked}")
    order = np.lexsort((start, job))
    twice = np.flatnonzero((np.diff(job[order]) == 0) & (start[order][1:] < end[order][:-1]))
    for s in order[twice + 1].tolist():
        yield Inconsistency("gang", ids[job[s]], f"starts again at {at(start[s])}, before its last piece ends")
    in_use, rows = _in_use_at_starts(schedule)
    total = instance.cluster.gpus
    for s, used in zip(rows[in_use > total].tolist(), in_use[in_use > total].tolist(), strict=True):
        held = f"{used:,} {unit}s are in use, of {total:,}"
        yield Inconsistency("capacity", ids[job[s]], f"starts at {at(start[s])}: {held}")
    lasted = np.bincount(job, weights=end - start, minlength=instance.n)
    short = np.flatnonzero(lasted < instance.duration * (1 - SAME) - np.spacing(np.abs(end).max(initial=0.0)))
    for j in short[np.isin(short, job)].tolist():
        stated = number(float(instance.duration[j]), 15)
        yield Inconsistency("work", ids[j], f"ran for {number(float(lasted[j]), 15)} s, and its duration is {stated} s")


def _in_use_at_starts(schedule: Schedule) -> tuple[Ints, Ints]:
    """Return the GPUs in use after the start of every piece that lasts, and the pieces; ends come first at one moment."""
    rows = np.flatnonzero(schedule.end > schedule.start)
    rows = rows[np.argsort(schedule.start[rows], kind="stable")]
    by_end = np.sort(schedule.end[rows])
    freed = np.cumsum(schedule.gangs[rows][np.argsort(schedule.end[rows], kind="stable")])
    ended = np.searchsorted(by_end, schedule.start[rows], side="right")
    return np.cumsum(schedule.gangs[rows]) - np.where(ended > 0, freed[ended - 1], 0), rows


# --- idle GPUs while jobs wait ----------------------------------------------------------------------------------------


def _idle_spans(schedule: Schedule, epoch: float) -> Iterator[IdleSpan]:
    """Yield the spans longer than `LONG` in which the next job waits although it fits; O(S log S)."""
    instance = schedule.instance
    first = np.where(np.isnan(first_starts(schedule)), np.inf, first_starts(schedule))
    first[~np.isin(np.arange(instance.n), schedule.job)] = -np.inf  # a job that never ran waits for nothing
    order = np.lexsort((np.arange(instance.n), instance.arrival))
    arrival, gang = instance.arrival[order], instance.gpus[order]
    moment = np.unique(np.concatenate([instance.arrival, schedule.start, schedule.end]))
    changes = np.bincount(np.searchsorted(moment, schedule.start), weights=schedule.gangs, minlength=moment.size)
    changes -= np.bincount(np.searchsorted(moment, schedule.end), weights=schedule.gangs, minlength=moment.size)
    free = instance.cluster.gpus - np.cumsum(changes)
    # the next job: the first one by arrival whose start, hence the latest start up to it, lies after the moment
    head = np.searchsorted(np.maximum.accumulate(first[order]), moment, side="right")
    head = np.minimum(head, instance.n - 1)
    waits = (first[order][head] > moment) & (arrival[head] <= moment)
    waiting = np.searchsorted(arrival, moment, side="right") - np.searchsorted(np.sort(first), moment, side="right")
    fits = np.append(waits & (free >= gang[head]), False)[:-1]
    edge = np.flatnonzero(np.diff(np.concatenate([[False], fits, [False]]).astype(np.int8)))
    length = np.append(np.diff(moment), 0.0)
    for begin, until in edge.reshape(-1, 2).tolist():
        stop = min(until, moment.size - 1)
        if moment[stop] - moment[begin] > LONG:
            idle = float(np.dot(free[begin:until], length[begin:until])) / HOUR
            yield IdleSpan(
                float(moment[begin]) + epoch,
                float(moment[stop]) + epoch,
                int(free[begin:until].min()),
                int(waiting[begin:until].max()),
                idle,
            )
