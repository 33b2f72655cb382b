"""Slurm's two scheduling loops: a main loop in order of priority, and a backfill loop that plans whole nodes in cycles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.node_plan import NodePlan, places_now
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Places
from optsched.registry import Seconds
from optsched.simulation.next_event import last_of_instant
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, View, Wake

MINUTE = 60.0
DAY = 86400.0
YEAR = 365 * DAY  # Slurm plans a job without a limit as one of a year
ALL = "all"


@POLICIES.register("slurm")
@dataclass
class Slurm(Policy):
    """Slurm's scheduler: a main loop by priority, and backfilling with reservations of whole nodes, in cycles.

    **Main loop.** After every submission and every end, jobs start in order of priority. The first job that does not
    fit closes the nodes that it may use for all jobs behind it: jobs that may use the same nodes are a partition, in
    which no job passes another.

    **Backfill loop.** Every ``interval`` seconds a plan is made again from nothing. In order of priority, each waiting
    job submitted before gets the earliest start at which its GPUs are free, if running jobs end at their limits, and
    no reservation is in the way. A job whose start is now starts. The others have a reservation, which takes whole
    nodes from the step of ``resolution`` seconds in which it begins to the end of the step in which it ends. A job
    whose start lies more than ``window`` seconds ahead has none, and jobs behind it may starve it.

    Limits are the walltimes, rounded up to minutes; a job without one is planned as a year. A job beyond its limit is
    expected to end in the next second. A gang runs on the first node that has enough free GPUs; a gang larger than
    every node takes idle nodes.

    **Priority** int(``age`` x waiting time / ``max_age``, at most 1, + ``size`` x gang / GPUs of the cluster + ``fair``
    x 2 ** (- share of the usage of its user / (1 / number of users))), where usage (GPU-seconds) is halved every
    ``half_life``. Ties go by arrival.

    **Problem** P | r_j, size_j, online-r_j | sum (C_j - r_j). **Knowledge** user-limits.

    **Guarantee** none: plans are made again, so no start is promised to any job but the first, and to that one only if
    it lies within ``window``. **Tight family** none known. **Complexity** O(queue x nodes) a main loop, O(queue x (nodes +
    running jobs + reservations)) a cycle. **Reference** the slurm.conf manual, SchedulerParameters; Yoo, Jette and
    Grondona, JSSPP 2003. The rules are those that explain runs of Slurm 22.05, 24.11 and 26.05.

    Parameters
    ----------
    interval
        Seconds between two backfill cycles (bf_interval).
    first
        Seconds from the first arrival to the first cycle.
    window
        How far ahead reservations are made, in seconds (bf_window).
    resolution
        Step of the plan in seconds (bf_resolution); 0: reservations are exact.
    second
        Second of the clock's minute at the first arrival: steps of the plan begin at whole minutes.
    depth
        Number of reservations in each partition (bf_job_part_count_reserve), or ``all``; 1 is EASY.
    tested
        Number of jobs that a cycle considers (bf_max_job_test).
    whole
        Whether a reservation takes whole nodes; otherwise it takes the GPUs of the gang.
    age
        Weight of the waiting time (PriorityWeightAge).
    size
        Weight of the gang size (PriorityWeightJobSize).
    fair
        Weight of fair share by user (PriorityWeightFairshare).
    max_age
        Waiting time at which the age counts fully, in seconds (PriorityMaxAge).
    half_life
        Seconds in which usage is halved (PriorityDecayHalfLife).
    """

    interval: Seconds = 30.0
    first: Seconds = 30.0
    window: Seconds = DAY
    resolution: Seconds = MINUTE
    second: Seconds = 0.0
    depth: str = ALL
    tested: int = 500
    whole: bool = True
    age: float = 0.0
    size: float = 0.0
    fair: float = 0.0
    max_age: Seconds = 7 * DAY
    half_life: Seconds = 7 * DAY

    name = "slurm"
    knowledge = Knowledge.USER_LIMITS
    uses = ("nodes",)
    noted_times = ("promised",)

    def __post_init__(self) -> None:
        for name in ("interval", "max_age", "half_life"):
            value = getattr(self, name)
            check_legal(0 < value < math.inf, f"slurm: {name}", value, "a finite number of seconds > 0")
        for name in ("first", "resolution", "second"):
            value = getattr(self, name)
            check_legal(0 <= value < math.inf, f"slurm: {name}", value, "a finite number of seconds >= 0")
        check_legal(self.window >= 0, "slurm: window", self.window, "a number of seconds >= 0")
        for name in ("age", "size", "fair"):
            value = getattr(self, name)
            check_legal(0 <= value < math.inf, f"slurm: {name}", value, "a finite number >= 0")
        depth = str(self.depth)
        check_legal(
            depth == ALL or (depth.isdecimal() and int(depth) >= 1), "slurm: depth", depth, "an integer >= 1, or all"
        )
        check_legal(self.tested >= 1, "slurm: tested", self.tested, "an integer >= 1")
        self._depth = math.inf if depth == ALL else int(depth)

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._size: Ints = view.free
        self._waiting: list[int] = []  # by arrival
        self._until: dict[int, tuple[float, Places]] = {}  # believed end and nodes of running jobs
        self._suits: dict[int, tuple[Bools, int]] = {}  # by kind of job: nodes that it may use, also as bits
        self._usage: dict[str | None, float] = {}  # GPU-seconds of the users that have submitted
        self._promised: dict[int, float] = {}
        self._backfilled: set[int] = set()
        self._seen, self._counted, self._changed, self._wake = 0, view.now, True, -math.inf

    def notes(self) -> dict[str, Floats]:
        """Return ``promised``, the first planned start of every job (nan if none), and ``backfilled``, 1 or 0."""
        promised, backfilled = np.full(self._seen, np.nan), np.zeros(self._seen)
        promised[list(self._promised)] = list(self._promised.values())
        backfilled[list(self._backfilled)] = 1.0
        return {"promised": promised, "backfilled": backfilled}

    def decide(self, view: View) -> Iterator[Decision]:
        """Run the main loop after an event, and the backfill loop in its cycles.

        Parameters
        ----------
        view
            State of the run.
        """
        happened = bool(view.arrived or view.finished)
        self._hear(view)
        if happened or self._moves:
            self._changed = True
            yield from self._main_loop(view)
        if self._next_cycle(view.now, here=True) <= last_of_instant(view.now) and self._changed:
            yield from self._backfill_loop(view)
        if self._waiting and self._changed:
            cycle = self._next_cycle(view.now, here=False)
            if cycle != self._wake:
                self._wake = cycle
                yield Wake(cycle)

    @property
    def _moves(self) -> bool:
        """True if priorities change with time."""
        return self.age > 0 or self.fair > 0

    def _hear(self, view: View) -> None:
        now = view.now
        if self.fair > 0:
            passed, self._counted = now - self._counted, now
            for user in self._usage:
                self._usage[user] *= 0.5 ** (passed / self.half_life)
            for job in self._until:
                self._usage[view.user(job)] += passed * view.gpus(job)
        for job in view.finished:
            del self._until[job]
        for job in view.arrived:
            self._waiting.append(job)
            self._seen = max(self._seen, job + 1)
            if self.fair > 0:
                self._usage.setdefault(view.user(job), 0.0)

    def _next_cycle(self, now: float, here: bool) -> float:
        """Return the first cycle after now, or with ``here`` from now on."""
        count = max(0, math.floor((now - self.first) / self.interval))
        cycle = self.first + count * self.interval
        over = last_of_instant(cycle) < now if here else cycle <= last_of_instant(now)
        return self.first + (count + 1) * self.interval if over else cycle

    def _queue(self, view: View) -> list[int]:
        """Return the waiting jobs by priority, ties by arrival."""
        if not (self._moves or self.size > 0):
            return list(self._waiting)
        total, users = sum(self._usage.values()), len(self._usage)

        def priority(job: int) -> int:
            aged = min(1.0, (view.now - view.arrival(job)) / self.max_age)
            share = self._usage[view.user(job)] / total if total > 0 else 0.0
            return int(
                self.age * aged + self.size * view.gpus(job) / view.cluster_gpus + self.fair * 0.5 ** (share * users)
            )

        return sorted(self._waiting, key=lambda job: -priority(job))

    def _nodes_of(self, view: View, job: int) -> tuple[Bools, int]:
        kind = view.kind(job)
        if kind not in self._suits:
            suits = view.eligible(job)
            self._suits[kind] = suits, sum(1 << node for node in suits.nonzero()[0].tolist())
        return self._suits[kind]

    def _main_loop(self, view: View) -> Iterator[Decision]:
        free, closed, every = view.free, 0, (1 << self._size.size) - 1
        for job in self._queue(view):
            suits, bits = self._nodes_of(view, job)
            if closed & bits:
                continue
            places = places_now(free, self._size, suits, view.gpus(job))
            if places is None:
                closed |= bits
                if closed == every:
                    return
                continue
            yield self._started(view, job, places)
            for node, count in places:
                free[node] -= count

    def _backfill_loop(self, view: View) -> Iterator[Decision]:
        now, reserved = view.now, Counter[int]()
        running = [(end if end > now else now + 1.0, places) for end, places in self._until.values()]
        plan = NodePlan(now, view.free, self._size, running)
        missed = {job for job in self._waiting if view.arrival(job) >= now}
        failed: dict[
            tuple[int, bool], float
        ] = {}  # the plan only fills up: a longer job of that kind has no place either
        self._changed = bool(missed) or any(end <= now for end, _ in self._until.values())
        for job in [job for job in self._queue(view) if job not in missed][: self.tested]:
            (suits, bits), gang, seconds = self._nodes_of(view, job), view.gpus(job), self._limit(view, job)
            full = reserved[bits] >= self._depth
            kind = view.kind(job), full
            if seconds >= failed.get(kind, math.inf):
                continue
            found = plan.earliest(gang, seconds, suits, now if full else now + self.window)
            if found is None:
                failed[kind] = seconds
                continue
            begin, places = found
            if begin <= now:
                yield self._started(view, job, places)
                plan.take(now, now + seconds, places)
                self._backfilled.add(job)
                self._changed = True
                continue
            reserved[bits] += 1
            self._promised.setdefault(job, begin)
            if self.whole:
                places = tuple((node, int(self._size[node])) for node, _ in places)
            plan.take(self._step(begin, math.floor), self._step(begin + seconds, math.ceil), places)

    def _step(self, time: float, rounded: Callable[[float], int]) -> float:
        """Return a time rounded to the steps of the plan, which begin at whole minutes of the clock."""
        if self.resolution == 0:
            return time
        return rounded((time + self.second) / self.resolution) * self.resolution - self.second

    def _limit(self, view: View, job: int) -> float:
        limit = view.walltime(job)
        return YEAR if math.isinf(limit) else math.ceil(limit / MINUTE) * MINUTE

    def _started(self, view: View, job: int, places: Places) -> Start:
        self._until[job] = view.now + self._limit(view, job), places
        self._waiting.remove(job)
        self._promised.setdefault(job, view.now)
        return Start(job, on=places)
