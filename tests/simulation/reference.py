"""A second simulator of whole jobs, in plain Python fractions: the documented semantics word for word, slowly.

Shares no code with the engine. At every event time it applies what happens, then asks the rule once by scanning the
whole queue. How fast jobs are is a function of who runs where (`Pace`), so that every speed model can be played, with
contention or without; whatever numbers go in, fractions or floats, come out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Counts = dict[int, int]  # node -> GPUs there
# place(gang, free per node, size per node, eligible per node) -> Counts, or None when the gang has to wait
Place = Callable[[int, list[int], list[int], list[bool]], Counts | None]
# pace(GPUs by node of every running job) -> seconds that a unit of its work takes
Pace = Callable[[dict[int, Counts]], dict[int, Any]]


@dataclass
class Rule:
    """`optsched.simulation.policy.Order`, in fractions."""

    key: list[Any]
    slope: list[Fraction]
    preemptive: bool = False
    skip: bool = True
    thresholds: tuple[Fraction, ...] = ()
    starvation: Fraction = Fraction(0)
    round: Fraction = Fraction(0)
    restart: Fraction = Fraction(0)


@dataclass
class Task:
    """A job and everything that is known about it at the present."""

    index: int
    arrival: Fraction
    gpus: int
    left: Fraction  # units of work
    eligible: list[bool]
    key: Any
    arrived: bool = False
    held: Counts | None = None
    began: Fraction = Fraction(0)  # of the running segment
    overhead: Fraction = Fraction(0)  # seconds of it still to pay
    level: int = 0
    served: Fraction = Fraction(0)  # GPU-seconds held since it last entered level 0 afresh
    ceased: Fraction = Fraction(0)
    segments: list[tuple[Fraction, Fraction, Fraction, Counts]] = field(default_factory=list)
    work: Fraction = Fraction(0)  # of the running segment

    @property
    def active(self) -> bool:
        return self.arrived and self.left > 0

    @property
    def rank(self) -> tuple[int, Any, int]:
        return (self.level, self.key, self.index)


class Replay:
    """One run: ``tasks`` afterwards hold the segments (start, end, work, GPUs by node) of every job."""

    def __init__(
        self, tasks: Sequence[Task], size: Sequence[int], rule: Rule, place: Place, pace: Pace | None = None
    ) -> None:
        self.tasks, self.size, self.rule, self.place = list(tasks), list(size), rule, place
        self.pace_of = pace or (lambda held: dict.fromkeys(held, Fraction(1)))
        self.now = Fraction(0)
        self.due: Fraction | None = None  # the end of the round at which to decide
        first = min((task.arrival for task in self.tasks), default=Fraction(0))  # when rounds begin
        while (time := self.next_event()) is not None:
            self.advance(time)
            if self.rule.round and (self.now - first) % self.rule.round:
                if any(task.held is None for task in self.tasks if task.active):
                    self.due = first + ((self.now - first) // self.rule.round + 1) * self.rule.round
            else:
                self.due = None
                self.decide()

    def free(self) -> list[int]:
        held = [task.held for task in self.tasks if task.held is not None]
        return [size - sum(counts.get(node, 0) for counts in held) for node, size in enumerate(self.size)]

    # -- events -------------------------------------------------------------------------------------------------------

    def next_event(self) -> Fraction | None:
        self.pace = self.pace_of({task.index: task.held for task in self.tasks if task.held is not None})
        times = [] if self.due is None else [self.due]
        for task in self.tasks:
            if not task.arrived:
                times.append(task.arrival)
            elif task.held is not None:
                times.append(self.end(task))
                if task.level < len(self.rule.thresholds):
                    times.append(self.now + (self.rule.thresholds[task.level] - task.served) / task.gpus)
            elif task.active and task.level and self.rule.starvation:
                times.append(task.ceased + self.rule.starvation * task.served / task.gpus)
        return min((time for time in times if time >= self.now), default=None)

    def end(self, task: Task) -> Fraction:
        """When it is done if nothing changes."""
        return self.now + task.overhead + task.left * self.pace[task.index]

    def advance(self, time: Fraction) -> None:
        for task in self.tasks:
            if task.held is not None:
                elapsed = time - self.now
                paid = min(elapsed, task.overhead)
                done = task.left if self.end(task) == time else (elapsed - paid) / self.pace[task.index]
                task.overhead -= paid
                task.left -= done
                task.work += done
                task.served += elapsed * task.gpus
                task.key += self.rule.slope[task.index] * (elapsed - paid)
        self.now = time
        for task in self.tasks:
            if task.held is not None and task.left == 0:
                self.release(task)
            elif task.held is not None:
                while task.level < len(self.rule.thresholds) and task.served >= self.rule.thresholds[task.level]:
                    task.level += 1
            elif task.active and task.level and self.has_starved(task, time):
                task.level, task.served = 0, Fraction(0)
            if not task.arrived and task.arrival <= time:
                task.arrived = True

    def has_starved(self, task: Task, time: Fraction) -> bool:
        waited, ran = time - task.ceased, task.served / task.gpus
        return bool(self.rule.starvation) and waited >= self.rule.starvation * ran

    def release(self, task: Task) -> None:
        assert task.held is not None
        if self.now > task.began:
            task.segments.append((task.began, self.now, task.work, task.held))
        task.held = None
        task.ceased = self.now

    def give(self, task: Task, counts: Counts) -> None:
        assert sum(counts.values()) == task.gpus
        task.held = counts
        if task.segments and task.segments[-1][1] == self.now and task.segments[-1][3] == counts:
            task.began, _, task.work, _ = task.segments.pop()  # it stood still: nothing was stopped, nothing is to pay
            return
        task.began = self.now
        task.work = Fraction(0)
        task.overhead = self.rule.restart if task.segments else Fraction(0)

    def try_start(self, task: Task) -> bool:
        counts = self.place(task.gpus, self.free(), self.size, task.eligible)
        if counts is not None:
            self.give(task, counts)
        return counts is not None

    # -- decisions ----------------------------------------------------------------------------------------------------

    def decide(self) -> None:
        queue = sorted((task for task in self.tasks if task.active), key=lambda task: task.rank)
        if self.rule.preemptive:
            self.decide_preemptive(queue)
            return
        for task in queue:
            if task.held is None and not self.try_start(task) and not self.rule.skip:
                return

    def decide_preemptive(self, queue: list[Task]) -> None:
        """Waiting jobs in order: on idle GPUs, else on those of less important jobs, the least important evicted first."""
        for task in queue:
            if task.held is not None or self.try_start(task):
                continue
            less = [other for other in queue if other.held is not None and other.rank > task.rank]
            free, counts, evicted = self.free(), None, []
            while less and counts is None:
                victim = less.pop()
                evicted.insert(0, victim)
                for node, gpus in (victim.held or {}).items():
                    free[node] += gpus
                counts = self.place(task.gpus, free, self.size, task.eligible)
            if counts is None:
                continue
            for node, gpus in counts.items():
                free[node] -= gpus
            for victim in evicted:  # the most important first: who still has room keeps running
                held = victim.held or {}
                if all(free[node] >= gpus for node, gpus in held.items()):
                    for node, gpus in held.items():
                        free[node] -= gpus
                else:
                    self.release(victim)
            self.give(task, counts)


class CountReplay(Replay):
    """Preemption as one thinks of it on GPU counts: who is served is decided afresh, in order, by counting GPUs.

    A job keeps or gets GPUs if and only if they fit into what more important jobs left. For placement ``count`` on a
    homogeneous cluster this must be the same as the eviction rule of `Replay`, and of the engine.
    """

    def decide_preemptive(self, queue: list[Task]) -> None:
        left = sum(self.size)
        served = []
        for task in queue:
            if task.gpus <= left:
                left -= task.gpus
                served.append(task)
        for task in queue:
            if task.held is not None and task not in served:
                self.release(task)
        for task in served:
            if task.held is None:
                self.give(task, {0: task.gpus})


# -- placements, from their descriptions ----------------------------------------------------------------------------------


def first_fit(gang: int, free: list[int], size: list[int], eligible: list[bool]) -> Counts | None:
    """The first eligible free GPUs in index order; for ``count`` the same question: are there enough?"""
    counts: Counts = {}
    for node, gpus in enumerate(free):
        take = min(gpus, gang - sum(counts.values())) if eligible[node] else 0
        if take:
            counts[node] = take
    return counts if sum(counts.values()) == gang else None


def consolidated(gang: int, free: list[int], size: list[int], eligible: list[bool]) -> Counts | None:
    """Up to a node's size: one node, first fit. Larger: idle whole nodes in index order, the rest on one other node."""
    nodes = [node for node in range(len(size)) if eligible[node]]
    counts: Counts = {}
    if gang > max((size[node] for node in nodes), default=0):
        for node in nodes:
            if free[node] == size[node] <= gang - sum(counts.values()):
                counts[node] = size[node]
    rest = gang - sum(counts.values())
    if rest:
        home = next((node for node in nodes if node not in counts and free[node] >= rest), None)
        if home is None:
            return None
        counts[home] = rest
    return counts
