"""Backfilling with reservations: jobs start out of turn if, as far as is believed, no reserved job waits longer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optsched.errors import InputError, check_legal
from optsched.policies import POLICIES
from optsched.policies.free_gpus import FreeGpus
from optsched.policies.predictors import PREDICTORS, predictor
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.registry import Seconds
from optsched.simulation.next_event import last_of_instant
from optsched.simulation.policy import Decision, Knowledge, KnownJobs, Order, Policy, Start, View, Wake
from optsched.simulation.predictor import Predictor
from optsched.simulation.reservation_plan import EVERY, new_plan

YEAR = 365 * 86400.0  # seconds; Slurm plans a job without a limit as one of a year
STATED = {"user": Knowledge.USER_LIMITS, "exact": Knowledge.CLAIRVOYANT}
LONGEST_EXACT = 2.0**42  # seconds: up to here sums of multiples of 1/1024 s need no rounding
FEW = 1_000  # jobs: the check of all promises takes time that grows with their square
BELIEVED = ("next-second", "double")


@dataclass
class ReservingPolicy(Policy):
    """Backfilling: the first waiting jobs have reservations, and other jobs start if they delay none of them.

    Subclasses choose the depth (number of waiting jobs with a reservation, or `EVERY`) and whether jobs behind those
    with a reservation are considered the shortest first.

    Parameters
    ----------
    walltime
        What a job is believed to take: ``user``, ``exact`` or a predictor.
    believe
        What is believed of a job beyond its believed end: ``next-second`` or ``double``.
    unlimited
        Seconds that a job without a walltime is believed to take.
    """

    walltime: str = "user"
    believe: str = "next-second"
    unlimited: Seconds = YEAR

    knowledge = Knowledge.USER_LIMITS
    noted_times = ("promised",)
    forecast = False
    _depth = 1
    _by_length = False

    def __post_init__(self) -> None:
        if self.walltime not in STATED and self.walltime.partition("/")[0] not in PREDICTORS:
            legal = f"{', '.join(STATED)}, or a predictor: {', '.join(PREDICTORS.names())}"
            raise InputError("unknown", field=f"{self.name}: walltime", value=self.walltime, legal=legal)
        self.make_predictor()
        check_legal(self.believe in BELIEVED, f"{self.name}: believe", self.believe, " or ".join(BELIEVED))
        legal = "a finite number of seconds > 0"
        check_legal(0 < self.unlimited < math.inf, f"{self.name}: unlimited", self.unlimited, legal)
        self.knowledge = STATED.get(self.walltime, Knowledge.PREDICTED)

    def properties(self, instance: Instance) -> tuple[str, ...]:
        """Return what the reservations promise, if beliefs are limits that hold and GPUs are one pool.

        Times must be multiples of 1/1024 s: their sums are then exact, and a tie is one to the policy and to the judge.

        Parameters
        ----------
        instance
            Jobs and the cluster of the run.
        """
        limit, duration = instance.walltime, instance.duration
        exact = self.walltime == "exact" and bool(np.isinf(limit).all())
        user = self.walltime == "user" and bool((np.isfinite(limit) & (limit >= duration)).all())
        one_pool = instance.cluster.node_gpus.size == 1 and instance.unrestricted
        times = np.concatenate([instance.relative.arrival, duration, limit[np.isfinite(limit)]])
        ticks = 1024 * times
        if not (ticks == np.floor(ticks)).all() or np.nansum(duration) + times.max(initial=0) > LONGEST_EXACT:
            return ()
        if not (one_pool and (exact or user) and not instance.profiled.any()):
            return ()
        if self._depth == EVERY:
            return ("promise-kept",) if instance.n <= FEW else ()
        return ("head-not-delayed", "work-conserved") if self._depth == 1 else ("work-conserved",)

    def make_predictor(self) -> Predictor | None:
        """Return the predictor of a run; None if the policy reads walltimes or knows durations."""
        return None if self.walltime in STATED else predictor(self.walltime)

    def accelerator(self, jobs: KnownJobs) -> Order:
        """Return the same decisions in compiled form.

        Parameters
        ----------
        jobs
            Jobs of the run.
        """
        if self.walltime == "user":
            seconds = np.where(np.isinf(jobs.walltime), self.unlimited, jobs.walltime)
        elif self.walltime == "exact":
            seconds = jobs.duration
        else:
            seconds = np.minimum(jobs.predicted * jobs.pace_range[0], jobs.walltime)
        choices = {"by_length": self._by_length, "doubles": self.believe == "double", "forecasts": self.forecast}
        plan = new_plan(seconds, jobs.walltime, jobs.cluster_gpus, self._depth, **choices)
        self._noted: Floats | None = plan.promised
        return Order(key=jobs.arrival, plan=plan)

    def notes(self) -> dict[str, Floats]:
        """Return ``promised``: the start of the first reservation of every job, in seconds; nan if it had none."""
        if self._noted is None:
            self._noted = np.full(max(self._seconds, default=-1) + 1, np.nan)
            self._noted[list(self._promised)] = list(self._promised.values())
        return {"promised": self._noted}

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._noted = None
        self._waiting: list[int] = []
        self._seconds: dict[int, float] = {}  # believed, of jobs that have arrived
        self._begun: dict[int, float] = {}  # of jobs that have started
        self._until: dict[int, float] = {}  # believed end of running jobs
        self._promised: dict[int, float] = {}
        # for depth EVERY: starts of reservations, free GPUs by belief, start of the next job
        self._start: dict[int, float] = {}
        self._profile = FreeGpus(view.now, view.cluster_gpus)
        self._wake = math.inf

    def decide(self, view: View) -> Iterator[Decision]:
        """Start the jobs whose turn it is, and those that delay no reservation.

        Parameters
        ----------
        view
            State of the run.
        """
        if not (view.arrived or view.finished) and view.now < self._wake:
            return
        self._hear(view)
        yield from self._keep_promises(view) if self._depth == EVERY else self._backfill(view)
        self._waiting = [job for job in self._waiting if job not in self._begun]
        if self.forecast and any(job not in self._promised for job in self._waiting):
            profile = self._of_running(view)
            for job in self._waiting:
                self._promised.setdefault(job, self._reserve(view, job, profile))

    def _hear(self, view: View) -> None:
        """Note which jobs have ended, which run longer than believed, and which have arrived."""
        now, self._early, self._wrong = view.now, False, False
        self._profile.begin_at(now)
        for job in view.finished:
            until = self._until.pop(job)
            self._early |= until > now
            self._profile.add(now, until, view.gpus(job))
        for job, until in self._until.items():
            if until <= now:
                self._until[job] = self._longer(view, job)
                self._profile.add(now, self._until[job], -view.gpus(job))
                self._wrong = True
        for job in view.arrived:
            self._seconds[job] = self._believed(view, job)
            self._waiting.append(job)

    def _longer(self, view: View, job: int) -> float:
        """Return the next believed end of a job that runs beyond its believed end."""
        if self.believe == "double":
            begun = self._begun[job]
            until = begun + min(2.0 * (view.now - begun), view.walltime(job))
            if until > view.now:
                return until
        return view.now + 1.0

    def _believed(self, view: View, job: int) -> float:
        if self.walltime == "exact":
            return view.duration(job)
        limit = view.walltime(job)
        if self.walltime == "user":
            return self.unlimited if math.isinf(limit) else limit
        return min(view.predicted(job) * view.pace_range(job)[0], limit)

    def _backfill(self, view: View) -> Iterator[Decision]:
        """Reserve GPUs for the first waiting jobs, again at every decision."""
        profile: FreeGpus | None = None
        reserved, behind = 0, list[int]()
        for job in self._waiting:
            if reserved == self._depth:
                behind.append(job)
            elif self._fits(view, job, profile):
                yield self._started(view, job, profile)
            else:
                profile = profile or self._of_running(view)
                self._promised.setdefault(job, self._reserve(view, job, profile))
                reserved += 1
        for job in sorted(behind, key=self._seconds.__getitem__) if self._by_length else behind:
            if self._fits(view, job, profile):
                yield self._started(view, job, profile)

    def _fits(self, view: View, job: int, profile: FreeGpus | None) -> bool:
        """Return whether a job may start now: beside the reservations, if there are any, and on GPUs of the placement."""
        if view.gpus(job) > view.free_gpus:
            return False
        return (profile is None or profile.stays(view.now + self._seconds[job], view.gpus(job))) and view.fits(job)

    def _of_running(self, view: View) -> FreeGpus:
        """Return the profile of the running jobs alone."""
        profile = FreeGpus(view.now, view.free_gpus)
        for job, until in self._until.items():
            profile.add(until, math.inf, view.gpus(job))
        return profile

    def _keep_promises(self, view: View) -> Iterator[Decision]:
        """Reserve GPUs for every waiting job; a reservation moves only to an earlier time while beliefs are right."""
        now = view.now
        old = [job for job in self._waiting if job in self._start]
        self._wrong |= any(last_of_instant(self._start[job]) < now for job in old)  # the placement found no GPUs
        if self._wrong:  # all reservations are made again
            for job in old:
                self._give_up(view, job)
            for job in old:
                self._start[job] = self._reserve(view, job, self._profile)
        elif self._early:
            for job in old:
                self._give_up(view, job)
                self._start[job] = self._reserve(view, job, self._profile)
        for job in self._waiting[len(old) :]:
            self._start[job] = self._promised[job] = self._reserve(view, job, self._profile)
        for job in self._waiting:
            if self._start[job] <= now and view.fits(job):
                yield self._started(view, job, None, self._start[job])
        # a job that needs more GPUs than are free now waits for an event in any case
        later = [job for job in self._waiting if self._start[job] > now and view.gpus(job) <= view.free_gpus]
        self._wake = min((self._start[job] for job in later), default=math.inf)
        if later:
            yield Wake(self._wake)

    def _reserve(self, view: View, job: int, profile: FreeGpus) -> float:
        """Take the earliest interval that a job fits into, and return its start."""
        seconds, gang = self._seconds[job], view.gpus(job)
        begin = profile.earliest(seconds, gang)
        profile.add(begin, begin + seconds, -gang)
        return begin

    def _give_up(self, view: View, job: int) -> None:
        start = self._start[job]
        self._profile.add(max(view.now, start), start + self._seconds[job], view.gpus(job))

    def _started(self, view: View, job: int, profile: FreeGpus | None, begin: float | None = None) -> Start:
        """Return the start of a job, noted in the profile; it runs by belief from now, or from its reservation, on."""
        begin = view.now if begin is None else begin
        self._begun[job], self._until[job] = view.now, begin + self._seconds[job]
        if profile is not None:
            profile.add(begin, self._until[job], -view.gpus(job))
        if self.forecast:
            self._promised.setdefault(job, view.now)
        return Start(job)


@dataclass
class FewReservations(ReservingPolicy):
    """Backfilling with reservations for the first waiting jobs only.

    Parameters
    ----------
    walltime, believe, unlimited
        As for `ReservingPolicy`.
    forecast
        Promise every job a start at its arrival, by a plan for the whole queue.
    """

    forecast: bool = False


ORDERS = {"fifo": False, "sjf": True}


@POLICIES.register("backfill")
@dataclass
class Backfill(FewReservations):
    """Backfilling (EASY, conservative, and between): jobs start out of turn if they delay no reserved job, by belief.

    The queue is in order of (arrival, index). One decision is taken at every time, after all its events: ``depth=1`` is
    EASY, ``depth=all`` conservative backfilling.

    **A number as depth.** Jobs start from the head while they fit. The first ``depth`` jobs that do not start have
    reservations: in order, each the earliest interval in which its GPUs are free beside running jobs, until their
    believed ends, and the reservations before it. The jobs behind them, in order of ``by``, start if they fit beside
    all that until their own believed ends. For ``depth=1`` this is the rule of the shadow time: a job starts if it ends
    by the start of the head, or uses only GPUs that the head leaves then.

    **All.** A job has a reservation from its arrival, the earliest interval beside all others, and starts at its
    start. When a job ends before its believed end, every waiting job in order of arrival moves to the earliest interval
    that is free, its own included; so no reservation moves to a later time. When a job runs beyond its believed end, or
    the placement finds no GPUs for a reserved job, all reservations are made again, in order of arrival.

    **Beliefs.** A job takes its walltime, and one without a walltime ``unlimited`` seconds; ``walltime=exact``: its
    duration; ``walltime=PREDICTOR``: the prediction at its arrival, at most its walltime. A running job that reaches its
    believed end is believed to end a second later, or with ``believe=double`` to run twice as long as so far, at most
    its walltime. The engine never kills a job: every job does all its work (``--walltimes cut`` reads a log so that
    jobs end at their limits). Reservations count the GPUs of the whole cluster. The placement decides whether a job
    starts; a job for which it finds no GPUs waits, so on several nodes a reserved job may start later than reserved.

    **Problem** P | r_j, size_j, online-r_j | sum (C_j - r_j). **Knowledge** user-limits; clairvoyant for ``exact``,
    predicted for a predictor.

    **Guarantee** no constant for flow times or sum C_j. ``depth=all``, one node, no job beyond its walltime: every job
    starts by the start that `Run.notes` calls ``promised``; a number: the same for a job that is first in the queue.
    Neither is a list schedule, so the bound of Garey and Graham does not apply; the makespan of strict FCFS is up to m
    times the optimum. **Tight family** as for FCFS, flow time: ``convoy``. **Complexity** a number: O(running jobs +
    queue x steps of the profile) a decision, steps <= running jobs + 2 depth; all: O(queue^2) an early end.
    **Reference** Lifka 1995 (EASY); Mu'alem and Feitelson, TPDS 2001 (conservative); Tsafrir, Etsion and Feitelson,
    TPDS 2007 (predictions, shortest first).

    Parameters
    ----------
    walltime
        What a job is believed to take: ``user`` (its walltime), ``exact`` (its duration), or a predictor, such as
        ``last-two`` or ``group-mean``.
    believe
        What is believed of a job beyond its believed end: ``next-second`` or ``double``.
    unlimited
        Seconds that a job without a walltime is believed to take (a year, as in Slurm).
    forecast
        Promise every job a start at its arrival, the one that it has if all jobs wait in the order of the queue. The
        plan for that costs O(queue^2) an arrival, and changes no decision.
    depth
        Number of waiting jobs with a reservation, or ``all``, which implies ``forecast``.
    by
        Order of the jobs behind those with a reservation: ``fifo``, or ``sjf`` (the shortest by belief first).
    """

    depth: str = "1"
    by: str = "fifo"

    name = "backfill"

    def __post_init__(self) -> None:
        super().__post_init__()
        depth = str(self.depth)
        legal = "a whole number >= 1, or all"
        check_legal(depth == "all" or (depth.isdecimal() and 1 <= int(depth) < 2**31), "backfill: depth", depth, legal)
        check_legal(self.by in ORDERS, "backfill: by", self.by, " or ".join(ORDERS))
        self._depth, self._by_length = EVERY if depth == "all" else int(depth), ORDERS[self.by]
        legal = "fifo: with depth=all every job has a reservation"
        check_legal(not (depth == "all" and self._by_length), "backfill: by", self.by, legal)
