"""`run_elastic`: rounds, at the end of which every job may be given another number of GPUs; its work goes on.

Decisions are taken at multiples of L seconds after the first arrival; who arrives at the instant of one
(`optsched.simulation.instant`) is in it. A job whose GPUs change holds the new ones for o seconds of restart (its first
start included), then works at the rate of its placement (`optsched.speeds.goodput`) until its work is done, which is an
exact moment, or its GPUs change again. What it leaves is idle until the next decision. Segments of a job have gangs of
their own; their work, in its own iterations, adds up to what it asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.compiled import Stopwatch
from optsched.errors import InputError, KnowledgeError, SimulationError
from optsched.problem.cluster import Places
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule, node_first
from optsched.simulation.elastic_policy import Allocation, ElasticPolicy
from optsched.simulation.instant import last_of_instant
from optsched.simulation.metrics import HOUR, metrics, offered_hours
from optsched.simulation.policy import Floats, Ints, Knowledge
from optsched.simulation.run import CONSERVED, Run
from optsched.speeds.goodput import Goodputs

MOST_ROUNDS = 1e6  # of the longest job alone: every round is played
PATIENCE = 1000  # rounds, or restarts if these are longer, in which nobody works
SAME = 1e-12  # relative: work that is left by the rounding of a few products is done


@dataclass(frozen=True, eq=False, repr=False)
class ElasticRun(Run):
    """A `Run` in which jobs may change their number of GPUs, every ``round`` seconds at the cost of ``restart``.

    ``preemptions`` counts how often the GPUs of a job that had started changed, or were taken away. ``rate`` f64[S]: work a
    second in every segment, once the restart at its begin is over.
    """

    round: float = 0.0
    restart: float = 0.0
    elastic: bool = True
    rate: Floats = field(default_factory=lambda: np.zeros(0), repr=False)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """See `optsched.simulation.metrics.metrics`; busy GPU-hours are those at work, overhead those of restarts."""
        found, held = metrics(self.schedule), self.schedule.end - self.schedule.start
        hours = float(np.dot(self.schedule.gangs, held)) / HOUR
        busy = float(np.dot(self.schedule.gangs, self.schedule.work / self.rate)) / HOUR
        total = offered_hours(self.schedule.relative)
        split = {**found["gpu_hours"], "busy": busy, "overhead": hours - busy}
        return {**found, "utilization": busy / total if total > 0 else 0.0, "gpu_hours": split}

    @property
    def schedule_class(self) -> str:
        """``elastic``; ``gang`` where no job of the instance is."""
        return "elastic" if self.elastic else "gang"


def run_elastic(
    instance: Instance,
    policy: ElasticPolicy,
    *,
    name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ElasticRun:
    """Replay an instance under an elastic policy (see the module); deterministic.

    Parameters
    ----------
    name : how the run is called in reports (default: the policy's name).
    progress : called with (finished jobs, all jobs) after every decision.

    Raises
    ------
    InputError
        Jobs have tasks, their speeds are not known, or round and restart are not legal.
    SimulationError
        The policy allocated what is not possible, or work was not conserved.

    Complexity O(G) for every class of jobs, then O(active jobs) a round beside the policy's own work.
    """
    name = name or policy.name
    instance.require_whole_jobs(name)
    _check(policy, name)
    clock = Stopwatch()
    replay = _Replay(instance, policy, name)
    replay.play(progress)
    return replay.result(clock.seconds)


def _check(policy: ElasticPolicy, name: str) -> None:
    if not (math.isfinite(policy.round) and policy.round > 0):
        raise InputError(
            "not legal", field=f"{name}: round", value=policy.round, legal="a finite number of seconds > 0"
        )
    if not (math.isfinite(policy.restart) and policy.restart >= 0):
        legal = "a finite number of seconds >= 0"
        raise InputError("not legal", field=f"{name}: restart", value=policy.restart, legal=legal)


@dataclass(frozen=True, slots=True)
class _Hold:
    """A job on its GPUs: since ``start``, at work from ``ready`` on, with ``left`` units to do then; ``end`` at best."""

    on: Places
    start: float
    ready: float
    rate: float
    left: float

    @property
    def end(self) -> float:
        return self.ready + self.left / self.rate

    def done(self, now: float) -> float:
        """Work from ``ready`` to ``now``."""
        return self.left if now >= self.end else max(now - self.ready, 0.0) * self.rate


class _View:
    """See `optsched.simulation.elastic_policy.ElasticView`."""

    def __init__(self, instance: Instance, policy: ElasticPolicy) -> None:
        self._instance, self._knowledge = instance, Knowledge(policy.knowledge)
        self.goodputs = Goodputs(instance)
        self.now, self.epoch = 0.0, instance.zero
        self.active: Ints = np.zeros(0, dtype=np.int64)
        self.arrival, self.weight, self.gpus = instance.arrival, instance.weight, instance.gpus
        self.node_gpus = instance.cluster.node_gpus
        self.holds: dict[int, _Hold] = {}
        self.remaining = instance.work.astype(np.float64)  # of jobs that hold nothing; see `left`
        self.count: Ints = np.zeros(instance.n, dtype=np.int64)

    @property
    def left(self) -> Floats:
        if self._knowledge is not Knowledge.CLAIRVOYANT:
            raise KnowledgeError(f"a {self._knowledge} policy asked for the work that is left")
        left = self.remaining.copy()
        for j, hold in self.holds.items():
            left[j] = hold.left - hold.done(self.now)
        return left

    def eligible(self, job: int) -> npt.NDArray[np.bool_]:
        return self._instance.eligible(job)

    def rates(self, job: int) -> Floats:
        return self.goodputs.table(job)

    def rate(self, job: int, on: Places) -> float:
        return self.goodputs.rate(job, on)

    def held(self, job: int) -> Places:
        return self.holds[job].on if job in self.holds else ()

    def starts(self, job: int) -> int:
        return int(self.count[job])


class _Replay:
    """One run: the clock, who holds what, and the segments so far."""

    def __init__(self, instance: Instance, policy: ElasticPolicy, name: str) -> None:
        self.instance, self.policy, self.name = instance, policy, name
        self.view = _View(instance, policy)
        self.length, self.restart = float(policy.round), float(policy.restart)
        self.first = float(instance.arrival.min(initial=math.inf))
        self._check_rounds()
        self.by_arrival = np.lexsort((np.arange(instance.n), instance.arrival)).tolist()
        self.came = self.rounds = self.preemptions = self.fruitless = 0
        self.job: list[int] = []
        self.on: list[Places] = []
        self.spans: list[tuple[float, float, float, float]] = []  # start, end, work, rate

    def _check_rounds(self) -> None:
        best = [float(self.view.rates(j).max(initial=0.0)) for j in range(self.instance.n)]
        longest = max((w / v for w, v in zip(self.instance.work.tolist(), best, strict=True) if v > 0), default=0.0)
        if (longest + self.restart) / self.length > MOST_ROUNDS:
            legal = f"at least {longest / MOST_ROUNDS:.3g} s: a run of at most {MOST_ROUNDS:g} rounds"
            raise InputError("too short for these jobs", field=f"{self.name}: round", value=self.length, legal=legal)

    # -- the clock

    def play(self, progress: Callable[[int, int], None] | None) -> None:
        """All decisions, until nothing is left or nothing that is left can run."""
        getattr(self.policy, "begin", lambda: None)()
        k = self._next_arrival()
        while k >= 0:
            now = self._arrive(self.first + k * self.length)
            self._finish(now)
            busy = bool(self.view.active.size) and self._allocated(now)
            self.rounds += 1
            if progress is not None:
                progress(self.came - self.view.active.size, self.instance.n)
            # where nobody takes anything, nothing changes before somebody arrives
            k = k + 1 if busy else self._next_arrival()

    def _next_arrival(self) -> int:
        """The first round, counted from 0, by whose begin another job has come; -1: all have."""
        if self.came == self.instance.n:
            return -1
        arrival = float(self.instance.arrival[self.by_arrival[self.came]])
        k = round((arrival - self.first) / self.length)
        return k if last_of_instant(self.first + k * self.length) >= arrival else k + 1

    def _arrive(self, now: float) -> float:
        """Everybody who comes until the instant of ``now`` is over; its end."""
        fresh, last = self.came, last_of_instant(now)
        while self.came < self.instance.n and self.instance.arrival[self.by_arrival[self.came]] <= last:
            now = max(now, float(self.instance.arrival[self.by_arrival[self.came]]))
            self.came += 1
        self.view.now = now
        if self.came > fresh:
            new = np.array(self.by_arrival[fresh : self.came], dtype=np.int64)
            self.view.active = np.concatenate([self.view.active, new])
        return now

    def _finish(self, now: float) -> None:
        rest = SAME * self.instance.work
        over = [j for j, hold in self.view.holds.items() if hold.left - hold.done(now) <= rest[j]]
        for j in over:
            self._leave(j, min(self.view.holds[j].end, now), done=True)
        if over:
            self.view.active = self.view.active[~np.isin(self.view.active, over)]

    # -- one decision

    def _allocated(self, now: float) -> bool:
        """Ask, and let jobs change their GPUs; was anything allocated?"""
        view = self.view
        given = {each.job: tuple(sorted(each.on)) for each in self._legal(list(self.policy.allocate(view)))}
        self._watch(now)
        for j in [j for j, hold in view.holds.items() if given.get(j) != hold.on]:
            self._leave(j, now)
            self.preemptions += 1
        for j, on in given.items():
            if j not in view.holds:
                view.holds[j] = _Hold(on, now, now + self.restart, view.rate(j, on), float(view.remaining[j]))
                view.count[j] += 1
        return bool(given)

    def _watch(self, now: float) -> None:
        """Raise `SimulationError` where all jobs have been moved again and again before any of them had worked."""
        holds = self.view.holds.values()
        self.fruitless = self.fruitless + 1 if holds and all(hold.ready >= now for hold in holds) else 0
        if self.fruitless * self.length > PATIENCE * max(self.length, self.restart):
            raise SimulationError(
                f"policy {self.name} at {now:g} s after the first arrival: for {self.fruitless:,} rounds of "
                f"{self.length:g} s no job has worked: its GPUs change before its restart of {self.restart:g} s is over"
            )

    def _leave(self, j: int, end: float, *, done: bool = False) -> None:
        """Job ``j`` gives its GPUs back at ``end``, ``done`` or not: a segment."""
        hold = self.view.holds.pop(j)
        work = hold.left if done else hold.done(end)
        self.view.remaining[j] = hold.left - work
        self.job.append(j)
        self.on.append(hold.on)
        self.spans.append((hold.start, max(end, math.nextafter(hold.start, math.inf)), work, hold.rate))

    def _legal(self, allocations: Sequence[Allocation]) -> Sequence[Allocation]:
        active, free = set(self.view.active.tolist()), self.view.node_gpus.copy()
        for each in allocations:
            if not isinstance(each, Allocation):
                raise self._wrong(f"{each!r} is no allocation (legal: optsched.simulation.elastic_policy.Allocation)")
            if each.job not in active:
                raise self._wrong(f"{each!r} is of a job that is not active, or has two")
            active.remove(each.job)
            self._legal_places(each, free)
        return allocations

    def _legal_places(self, each: Allocation, free: Ints) -> None:
        job = self.instance.ids[each.job]
        if not each.on or len({node for node, _ in each.on}) < len(each.on) or any(count < 1 for _, count in each.on):
            raise self._wrong(f"job {job!r} has {each.on} (legal: (node, GPUs >= 1) of every node once)")
        for node, count in each.on:
            if not 0 <= node < free.size or not self.view.eligible(each.job)[node]:
                raise self._wrong(f"job {job!r} is on node {node}, which it may not use")
            free[node] -= count
            if free[node] < 0:
                raise self._wrong(f"there are not enough GPUs on node {node}")
        if self.view.rate(each.job, each.on) <= 0:
            raise self._wrong(f"job {job!r} cannot run on {each.on}")

    def _wrong(self, what: str) -> SimulationError:
        return SimulationError(f"policy {self.name} at {self.view.now + self.view.epoch:.12g} s: {what}")

    # -- the end

    def result(self, seconds: float) -> ElasticRun:
        """The run, its GPUs named and its work added up once more."""
        instance, left = self.instance, self.view.remaining
        start, end, work, rate = np.array(self.spans, dtype=np.float64).reshape(-1, 4).T.copy()
        places = [place for on in self.on for place in on]
        node, count = np.array(places, dtype=np.int64).reshape(-1, 2).T.copy()
        offset = np.cumsum([0, *(len(on) for on in self.on)], dtype=np.int64)
        job = np.array(self.job, dtype=np.int64)
        schedule = Schedule.from_counts(
            instance, job, start, end, work, offset, node, count, node_first(instance), self.name
        )
        missing = np.abs(schedule.received + left - instance.work)
        for j in np.flatnonzero(missing > CONSERVED * np.maximum(1.0, instance.work))[:1].tolist():
            raise SimulationError(f"job {instance.ids[j]!r}: {missing[j]:g} units of work were lost or invented")
        notes: Any = getattr(self.policy, "notes", dict)()
        return ElasticRun(
            schedule,
            self.name,
            Knowledge(self.policy.knowledge),
            True,
            self.came + int((left == 0).sum()) + self.rounds,
            self.preemptions,
            seconds,
            notes=notes,
            noted_times=tuple(getattr(self.policy, "noted_times", ())),
            round=self.length,
            restart=self.restart,
            elastic=bool(instance.scaled.any()),
            rate=rate,
        )
