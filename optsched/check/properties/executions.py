"""`Executions`: what ran when, of a finished schedule; `instants`: its states at every instant, in order of time."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule

MEETING = 8  # units in the last place between two times that mean the same instant
OVERDUE = 1.0  # seconds: a job that runs beyond its limit is expected to end that long from now


@dataclass(frozen=True)
class Executions:
    """Rigid jobs, each of which ran in one piece on its gang, in seconds since `epoch`.

    Attributes
    ----------
    ids
        Names of the jobs.
    capacity
        GPUs of the cluster.
    epoch
        Reading of the instance's clock at time 0.
    arrival
        Submissions, f64[n].
    gpus
        Gang sizes, i64[n].
    limit
        Limits, f64[n].
    duration
        Run times without a limit, f64[n].
    start
        Starts, f64[n]; inf for a job that never ran.
    end
        Ends, f64[n]; inf for a job that never ran.
    width
        GPUs that each job held, i64[n].
    """

    ids: tuple[str, ...]
    capacity: int
    epoch: float
    arrival: Floats
    gpus: Ints
    limit: Floats
    duration: Floats
    start: Floats
    end: Floats
    width: Ints

    @classmethod
    def of(cls, instance: Instance, schedule: Schedule) -> Executions:
        """Return the executions of a schedule.

        A job without a walltime has its run time as its limit. Times that differ by rounding become equal.

        Parameters
        ----------
        instance
            Jobs and the cluster.
        schedule
            The schedule.

        Raises
        ------
        InputError
            A job runs in several pieces, or jobs are restricted to some nodes.
        """
        epoch, instance, schedule = instance.epoch, instance.relative, schedule.relative
        pieces = np.bincount(schedule.job, minlength=instance.n)
        if (pieces > 1).any():
            job = int(np.argmax(pieces > 1))
            message = f"job {instance.ids[job]!r} runs in {pieces[job]} pieces"
            raise InputError(message, field="schedule", legal="one piece a job")
        if not instance.unrestricted:
            raise InputError("jobs are restricted to some nodes", field="instance", legal="jobs that may use every GPU")
        start, end = np.full(instance.n, np.inf), np.full(instance.n, np.inf)
        width = instance.gpus.copy()
        start[schedule.job], end[schedule.job], width[schedule.job] = schedule.start, schedule.end, schedule.gangs
        times = _snapped(np.concatenate([instance.arrival, start, end]))
        arrival, start, end = np.split(times, 3)
        end = np.where(end > start, end, np.nextafter(start, np.inf))
        with np.errstate(invalid="ignore"):
            duration = np.where(np.isnan(instance.duration), end - start, instance.duration)
        limit = np.where(np.isinf(instance.walltime), duration, instance.walltime)
        capacity = instance.cluster.gpus
        return cls(instance.ids, capacity, epoch, arrival, instance.gpus, limit, duration, start, end, width)

    @cached_property
    def slack(self) -> float:
        """Seconds by which two times may differ and mean the same instant."""
        times = np.concatenate([self.start + self.limit, self.end, self.arrival])
        return MEETING * float(np.spacing(times[np.isfinite(times)].max(initial=1.0)))

    @cached_property
    def queue(self) -> list[int]:
        """Jobs by (submission, position)."""
        return [int(job) for job in np.lexsort((np.arange(self.arrival.size), self.arrival))]

    @cached_property
    def exact(self) -> bool:
        """True if every limit equals the run time."""
        return bool(np.all(np.abs(self.limit - self.duration) <= self.slack))

    def on_clock(self, time: float) -> float:
        """Return a time on the clock of the instance, in seconds.

        Parameters
        ----------
        time
            Seconds since `epoch`.
        """
        return time + self.epoch

    def at(self, time: float) -> str:
        """Return a time on the clock of the instance as text.

        Parameters
        ----------
        time
            Seconds since `epoch`.
        """
        return f"{self.on_clock(time):.15g} s" if math.isfinite(time) else "no time"

    def named(self, job: int) -> str:
        """Return a job with its gang size as text.

        Parameters
        ----------
        job
            Index of the job.
        """
        gpus = int(self.gpus[job])
        return f"job {self.ids[job]!r} ({gpus} GPU{'s' if gpus != 1 else ''})"


def _snapped(times: Floats) -> Floats:
    # Times that follow each other within rounding become the first of them.
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    with np.errstate(invalid="ignore"):
        apart = ~(np.diff(ordered, prepend=-np.inf) <= MEETING * np.spacing(np.abs(ordered)))
    snapped = np.empty_like(times)
    snapped[order] = ordered[np.maximum.accumulate(np.where(apart, np.arange(times.size), 0))]
    return snapped


Ends = list[tuple[float, int]]  # (expected end, job), sorted


@dataclass
class Instant:
    """The state at one instant, after all ends and submissions of that time, and before its starts.

    Attributes
    ----------
    now
        The time, in seconds since the epoch of the executions.
    free
        Free GPUs.
    running
        (start + limit, job) of the running jobs, sorted.
    waiting
        Places in the queue of the jobs that still wait after the starts of this instant, sorted.
    ended
        Jobs that end now.
    arrived
        Jobs that are submitted now, in order of the queue.
    started
        Jobs that start now, in order of the queue.
    """

    now: float
    free: int
    running: Ends
    waiting: list[int]
    ended: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    started: list[int] = field(default_factory=list)


def instants(jobs: Executions) -> Iterator[Instant]:
    """Yield the state at every time at which something happens; the lists are valid until the next one.

    Complexity O(n log n) and the moves within lists as long as the queue.

    Parameters
    ----------
    jobs
        The executions.
    """
    queue, gpus = jobs.queue, jobs.gpus.tolist()
    place = {job: k for k, job in enumerate(queue)}
    expected = (jobs.start + jobs.limit).tolist()
    happens: dict[float, tuple[list[int], list[int], list[int]]] = {}
    for kind, times in enumerate((jobs.end, jobs.arrival, jobs.start)):
        for job, time in enumerate(times.tolist()):
            if math.isfinite(time):
                happens.setdefault(time, ([], [], []))[kind].append(job)
    free, running, waiting, taken = jobs.capacity, Ends(), list[int](), set[int]()
    for now in sorted(happens):
        ended, arrived, started = (sorted(kind, key=place.__getitem__) for kind in happens[now])
        for job in ended:
            free += gpus[job]
            del running[bisect_left(running, (expected[job], job))]
        for job in arrived:
            if job not in taken:
                insort(waiting, place[job])
        for job in started:
            taken.add(job)
            if jobs.arrival[job] <= now:
                del waiting[bisect_left(waiting, place[job])]
        yield Instant(now, free, running, waiting, ended, arrived, started)
        for job in started:
            free -= gpus[job]
            insort(running, (expected[job], job))
