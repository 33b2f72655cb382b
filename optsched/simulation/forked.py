"""`run_forked`: rounds in which a job may train in several copies at once; what they do adds up.

A round begins when a job arrives in an idle cluster and then every L seconds while jobs are left; what arrives meanwhile
waits for the next one (which begins at once when the cluster has nothing to do any more); what arrives at the instant at
which a round begins (`optsched.simulation.instant`) is in it, and the round begins with the last of these arrivals. A copy
holds its GPUs from the begin of the round: o seconds of overhead, then work at its own rate until its target is reached or
the round is over. The overhead is that of a round (its copies are brought together and sent out again), not of a restart:
a job that stays where it is pays it too.
Work is conserved: what the copies of a job did adds up to what it asked for, and every copy is a segment of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from optsched.compiled import Stopwatch
from optsched.errors import InputError, KnowledgeError, SimulationError
from optsched.problem.cluster import Places
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule, node_first
from optsched.simulation.forking_policy import Copy, CopyDone, Floats, ForkingPolicy, Ints
from optsched.simulation.instant import last_of_instant
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import CONSERVED, Run
from optsched.speeds.duration import paces
from optsched.speeds.segment_paces import segment_paces
from optsched.speeds.type_speeds import type_speeds

Bools = npt.NDArray[np.bool_]
MOST_ROUNDS = 1e6
SAME = 1e-12  # relative: a target, or the work left, that is missed by the rounding of a few products is reached


@dataclass(frozen=True, slots=True)
class Round:
    """One round: ``active`` jobs when it began, and its ``segments`` in the schedule (one a copy)."""

    start: float
    end: float
    active: tuple[int, ...]
    segments: range


@dataclass(frozen=True, eq=False, repr=False)
class ForkedRun(Run):
    """A `Run` in rounds with up to ``copies`` copies of a job at once (at most the number of nodes; 1: no forking)."""

    copies: int = 1
    round: float = 0.0
    overhead: float = 0.0
    rounds: tuple[Round, ...] = field(default=(), repr=False)

    def on_clock(self, instance: Instance) -> Self:
        """As `Run.on_clock`; the rounds are put on that clock, too."""
        run = super().on_clock(instance)
        if run is self:
            return self
        begun = instance.epoch
        rounds = tuple(replace(each, start=each.start + begun, end=each.end + begun) for each in self.rounds)
        placed = replace(run, rounds=rounds)
        placed.__dict__["relative"] = self
        return placed

    @property
    def schedule_class(self) -> str:
        """``forking`` where a job could have several copies at once, else ``gang``."""
        return "forking" if self.copies > 1 else "gang"


def run_forked(
    instance: Instance,
    policy: ForkingPolicy,
    *,
    name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ForkedRun:
    """Replay an instance under a forking policy (see the module); deterministic.

    Parameters
    ----------
    name : how the run is called in reports (default: the policy's name).
    progress : called with (finished jobs, all jobs) after every round.

    Raises
    ------
    InputError
        Round, overhead or number of copies are not legal; a profile or bandwidth that is needed is missing.
    SimulationError
        The policy assigned what is not possible, or work was not conserved.

    Complexity O(n M) for the rates, then O(copies) a round beside the policy's own work (M groups of alike nodes).
    """
    name = name or policy.name
    instance.require_whole_jobs(name)
    _check(policy, name)
    _check_rounds(instance, policy, name)
    clock = Stopwatch()
    replay = _Replay(instance, policy, name)
    policy.begin(replay.view)
    replay.play(progress)
    return replay.result(clock.seconds)


def _check(policy: ForkingPolicy, name: str) -> None:
    length, overhead, copies = policy.round, policy.overhead, policy.copies
    if not (math.isfinite(length) and length > 0):
        raise InputError("not legal", field=f"{name}: round", value=length, legal="a finite number of seconds > 0")
    if not 0 <= overhead < length:
        legal = f"0 or more seconds, less than the round of {length:g}"
        raise InputError("not legal", field=f"{name}: overhead", value=overhead, legal=legal)
    if copies < 0:
        raise InputError("not legal", field=f"{name}: copies", value=copies, legal="an integer >= 1; 0: one a node")


def _check_rounds(instance: Instance, policy: ForkingPolicy, name: str) -> None:
    # Every round is played; `paces` says what is wrong with seconds that are out of range.
    alone = instance.work * paces(instance)[0]
    longest = float(alone.max(initial=0.0)) / instance.cluster.node_count  # in a copy on every node
    if longest / policy.round > MOST_ROUNDS:
        legal = f"at least {longest / MOST_ROUNDS:.3g} s: a run of at most {MOST_ROUNDS:g} rounds"
        raise InputError("too short for these jobs", field=f"{name}: round", value=policy.round, legal=legal)


def copy_rates(instance: Instance) -> Floats:
    """Units of work a second of a job's gang on one node of every node group, f64[n, M]; 0 where it may not or cannot run.

    O(n M) by the readable formulas of `optsched.speeds.segment_paces`.
    """
    cluster, n = instance.cluster, instance.n
    rates = np.zeros((n, len(cluster.nodes)))
    first = np.searchsorted(cluster.node_group, np.arange(len(cluster.nodes)))
    may = instance.class_eligible[:, first][instance.job_class] if n else np.zeros(rates.shape, dtype=np.bool_)
    job, group = np.nonzero(may & (instance.gpus[:, None] <= cluster.node_gpus[first]))
    gangs = instance.gpus[job]
    offset = np.concatenate([[0], np.cumsum(gangs)]).astype(np.int64)
    pace = segment_paces(instance, job, offset, np.repeat(first[group], gangs))
    rates[job, group] = np.where(np.isfinite(pace) & (pace > 0), 1.0 / pace, 0.0)
    return rates


class _View:
    """See `optsched.simulation.forking_policy.ForkingView`."""

    def __init__(self, instance: Instance, policy: ForkingPolicy) -> None:
        cluster = instance.cluster
        self._instance = instance
        self._clairvoyant = Knowledge(policy.knowledge) is Knowledge.CLAIRVOYANT
        self._policy = policy
        self.real = copy_rates(instance)
        self.remaining = instance.work.astype(np.float64)
        self.now, self.epoch = 0.0, instance.zero
        self.active: Ints = np.zeros(0, dtype=np.int64)
        self.gpus, self.weight = instance.gpus, instance.weight
        self.node_gpus, self.node_group = cluster.node_gpus, cluster.node_group
        self.group_gpu = tuple(group.gpu for group in cluster.nodes)
        self.hosts: Bools = self.real > 0

    @property
    def left(self) -> Floats:
        if self._clairvoyant:
            return self.remaining.copy()
        raise KnowledgeError(f"a {self._policy.knowledge} policy asked for the work that is left")

    @property
    def rates(self) -> Floats:
        if self._policy.knows_rates:
            return self.real.copy()
        raise KnowledgeError(f"policy {self._policy.name} does not know how fast jobs run where they have not run yet")

    @property
    def spread_rates(self) -> Floats:
        if not self._policy.knows_rates:
            raise KnowledgeError(f"policy {self._policy.name} does not know how fast jobs run over several nodes")
        speeds = type_speeds(self._instance)
        table = speeds.together if speeds.one_gpu_nodes else speeds.spread
        first = np.searchsorted(self.node_group, np.arange(len(self.group_gpu)))
        return table[:, speeds.node_type[first]]

    def reference(self, job: int) -> tuple[int, float]:
        group = int(np.argmax(self.hosts[job]))
        return group, float(self.real[job, group])

    def eligible(self, job: int) -> Bools:
        return self._instance.eligible(job)


class _Replay:
    """One run: the clock, the jobs that are left, and the segments so far."""

    def __init__(self, instance: Instance, policy: ForkingPolicy, name: str) -> None:
        self.instance, self.policy, self.name = instance, policy, name
        self.view = _View(instance, policy)
        nodes = instance.cluster.node_count
        self.copies = min(policy.copies, nodes) if policy.copies else nodes
        self.by_arrival = np.lexsort((np.arange(instance.n), instance.arrival))
        self.came = 0  # jobs that have arrived
        self.rounds: list[Round] = []
        self.job: list[int] = []
        self.on: list[Places] = []
        self.spans: list[tuple[float, float, float]] = []  # start, end, work
        self.spread: dict[tuple[int, Places], float] = {}  # rates of gangs on several nodes
        self.held: dict[int, set[int]] = {}  # nodes of the last round, of jobs that are not finished
        self.preemptions = 0

    # -- the clock

    def play(self, progress: Callable[[int, int], None] | None) -> None:
        """All rounds, until nothing is left or nothing that is left can run."""
        length, n = float(self.policy.round), self.instance.n
        now = base = self._next_arrival()  # a round begins at base + k L
        k = 0
        while now < math.inf:
            now = self._arrive(now)
            until = base + (k + 1) * length
            last = self._round(now, until)
            if last is not None and self.view.active.size:
                now, k = until, k + 1
            else:  # nothing to do, or nothing that can run here
                now = base = max(self._next_arrival(), now if last is None else last)
                k = 0
            if progress is not None:
                progress(int((self.view.remaining == 0).sum()), n)

    def _next_arrival(self) -> float:
        come = self.came < self.instance.n
        return float(self.instance.arrival[self.by_arrival[self.came]]) if come else math.inf

    def _arrive(self, now: float) -> float:
        """Everybody who comes in the instant of ``now``; its end."""
        last = last_of_instant(now)
        while self._next_arrival() <= last:
            now = max(now, self._next_arrival())
            self.came += 1
        jobs = self.by_arrival[: self.came]
        self.view.now, self.view.active = now, jobs[self.view.remaining[jobs] > 0]
        return now

    # -- one round

    def _round(self, now: float, until: float) -> float | None:
        """Play the round; the end of its last copy, None where the policy assigns nothing."""
        active = tuple(self.view.active.tolist())
        copies = list(self.policy.assign(self.view))
        self._check_copies(copies)
        if not copies:
            return None
        first = len(self.job)
        done = [self._run_copy(copy, now, until) for copy in copies]
        self._account(done)
        self.rounds.append(Round(now, until, active, range(first, len(self.job))))
        self.policy.collect(self.view, done)
        return max(end for _, end, _ in self.spans[first:])

    def _run_copy(self, copy: Copy, now: float, until: float) -> CopyDone:
        rate, room = self._rate(copy), float(self.policy.round) - float(self.policy.overhead)
        need = copy.target / rate
        if need < room * (1 - SAME):
            end, work = min(now + self.policy.overhead + need, until), copy.target
        else:
            end, work = until, copy.target if need <= room * (1 + SAME) else rate * room
        self.job.append(copy.job)
        self.on.append(copy.on)
        self.spans.append((now, max(end, math.nextafter(now, math.inf)), work))
        return CopyDone(copy, work, work / rate)

    def _rate(self, copy: Copy) -> float:
        if len(copy.on) == 1:
            return float(self.view.real[copy.job, self.view.node_group[copy.on[0][0]]])
        if (copy.job, copy.on) not in self.spread:
            nodes = np.repeat(*np.array(copy.on, dtype=np.int64).T)
            offset = np.array([0, nodes.size], dtype=np.int64)
            pace = float(segment_paces(self.instance, np.array([copy.job]), offset, nodes)[0])
            self.spread[copy.job, copy.on] = 1.0 / pace if math.isfinite(pace) and pace > 0 else 0.0
        return self.spread[copy.job, copy.on]

    def _account(self, done: Sequence[CopyDone]) -> None:
        """Subtract what was done; a job whose rest is the rounding of its targets is finished."""
        left = self.view.remaining
        now: dict[int, set[int]] = {}
        for each in done:
            j = each.copy.job
            left[j] -= each.work
            now.setdefault(j, set()).update(node for node, _ in each.copy.on)
        jobs = np.array(sorted(now), dtype=np.int64)
        over = jobs[left[jobs] <= SAME * self.instance.work[jobs]]
        left[over] = 0.0
        for j, nodes in self.held.items():
            self.preemptions += not nodes <= now.get(j, set())
        self.held = {j: nodes for j, nodes in now.items() if left[j] > 0}
        active = self.view.active
        self.view.active = active[left[active] > 0]

    # -- what a policy may not do

    def _check_copies(self, copies: Sequence[Copy]) -> None:
        view, active = self.view, set(self.view.active.tolist())
        free = view.node_gpus.copy()
        mine: dict[int, list[Copy]] = {}
        for copy in copies:
            if not isinstance(copy, Copy):
                raise self._wrong(f"{copy!r} is not a copy (legal: optsched.simulation.forking_policy.Copy)")
            if copy.job not in active:
                raise self._wrong(f"{copy!r} is of a job that is not active")
            self._check_places(copy, free)
            mine.setdefault(copy.job, []).append(copy)
        for j, its in mine.items():
            job = self.instance.ids[j]
            nodes = [node for copy in its for node, _ in copy.on]
            if len(its) > self.copies or len(set(nodes)) < len(nodes):
                raise self._wrong(
                    f"job {job!r} has {len(its)} copies (legal: at most {self.copies}, on different nodes)"
                )
            if sum(copy.target for copy in its) > view.remaining[j] * (1 + CONSERVED):
                raise self._wrong(f"the copies of job {job!r} are to do more than is left, {view.remaining[j]:g}")

    def _check_places(self, copy: Copy, free: Ints) -> None:
        job, view = self.instance.ids[copy.job], self.view
        if sum(count for _, count in copy.on) != view.gpus[copy.job] or any(count < 1 for _, count in copy.on):
            raise self._wrong(f"a copy of job {job!r} has the GPUs {copy.on} (legal: {view.gpus[copy.job]} in all)")
        for node, count in copy.on:
            if not 0 <= node < free.size or not self.instance.eligible(copy.job)[node]:
                raise self._wrong(f"a copy of job {job!r} is on node {node}, which it may not use")
            free[node] -= count
            if free[node] < 0:
                raise self._wrong(f"there are not enough GPUs on node {node} for all its copies")
        if not (math.isfinite(copy.target) and copy.target > 0 and self._rate(copy) > 0):
            raise self._wrong(f"a copy of job {job!r} has the target {copy.target!r} (legal: > 0, where it can run)")

    def _wrong(self, what: str) -> SimulationError:
        return SimulationError(f"policy {self.name} at {self.view.now + self.view.epoch:.12g} s: {what}")

    # -- the end

    def result(self, seconds: float) -> ForkedRun:
        """The run, its GPUs named and its work added up once more."""
        instance, left = self.instance, self.view.remaining
        start, end, work = np.array(self.spans, dtype=np.float64).reshape(-1, 3).T.copy()
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
        events = self.came + int((left == 0).sum()) + len(self.rounds)
        return ForkedRun(
            schedule,
            self.name,
            Knowledge(self.policy.knowledge),
            True,
            events,
            self.preemptions,
            seconds,
            notes=notes,
            noted_times=tuple(getattr(self.policy, "noted_times", ())),
            copies=self.copies,
            round=float(self.policy.round),
            overhead=float(self.policy.overhead),
            rounds=tuple(self.rounds),
        )
