"""Small instances of jobs with tasks, and feasible schedules of them, made in fractions and by nobody's engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job

Choose = Callable[[int], int]  # of so many options, which?
FORWARD, BACKWARD, BARRIER = 0, 1, 2  # what a worker does next


def task_instance(rng: np.random.Generator, most: int = 4, iterations: int = 3, *, measured: bool = False) -> Instance:
    """1 to ``most`` jobs on 1 to 4 nodes of 1 to 3 GPUs, two types and memories; eta of either sign, or measured ratios."""
    nodes = [
        NodeGroup(int(rng.integers(1, 4)), int(rng.integers(1, 3)), str(gpu), [None, 8.0, 4.0][rng.integers(3)])
        for gpu in rng.permutation(["V100", "K80"])[: rng.integers(1, 3)]
    ]
    cluster = Cluster(tuple(nodes))
    tasks = {
        "even": IterationTasks(1, 1, 2),
        "bytes": IterationTasks(0, float(rng.integers(0, 2)), float(rng.integers(1, 9))),
        "mute": IterationTasks(1.5, 0.25),
        "mixed": IterationTasks(0.5, 1.5, 0.75),
    }
    b = float(rng.choice([0.5, 1, 3]))
    contention = Contention(b, b * float(rng.choice([0, 0.25, 1, -0.5, -0.75])), float(rng.choice([0, 0, 0.5])))
    if measured:
        names = tuple(tasks)
        ratios = rng.choice([1.0, 0.75, 0.5], (len(names), len(names)))
        contention = Contention(b, 0, contention.latency, names, tuple(map(tuple, ratios.tolist())))
    jobs: list[Job] = []
    while not jobs:
        for j in range(rng.integers(1, most + 1)):
            memory = [None, 3.0, 6.0][rng.integers(3)]
            types = [None, (nodes[0].gpu,)][int(rng.random() < 0.3)]
            room = sum(group.gpus * group.count for group in nodes if group.suits(types, memory))
            if room:
                job = Job(
                    f"j{j}",
                    float(rng.choice([0, 0, 0.5, 1, 3])),
                    int(rng.integers(1, room + 1)),
                    iterations=float(rng.integers(1, iterations + 1)),
                    profile=str(rng.choice(list(tasks))),
                    weight=float(rng.integers(0, 4)),
                    due=[None, float(rng.integers(1, 15))][rng.integers(2)],
                    gpu_memory=memory,
                    gpu_types=types,
                )
                jobs.append(job)
    return Instance(jobs, cluster, tasks=tasks, contention=contention)


def random_choices(rng: np.random.Generator, eager: float) -> Choose:
    """The first option with this probability, else any: the first never is to wait."""
    return lambda count: 0 if rng.random() < eager else int(rng.integers(count))


@dataclass
class _State:
    gang: tuple[int, ...]
    left: int
    doing: list[int]  # of every worker, what it does next or now
    bytes_left: Fraction | None = None  # of a transfer that was started
    wakes: Fraction = Fraction(0)  # when its bytes begin to move


@dataclass
class TaskRun:
    """One schedule: ``choose`` places gangs (on any GPUs that suit), starts transfers and tasks, or lets them wait."""

    instance: Instance
    choose: Choose
    idle: bool = True
    now: Fraction = Fraction(0)
    states: dict[int, _State] = field(default_factory=dict)
    busy: dict[int, tuple[int, int, Fraction]] = field(default_factory=dict)  # GPU: (job, worker, end)
    done: dict[int, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arrival = [Fraction(r) for r in self.instance.arrival.tolist()]
        self.now = min(self.arrival)
        self.kinds = [str(name) for name in self.instance.table["profile"].to_list()]
        self.seconds = {name: (Fraction(t.forward), Fraction(t.backward)) for name, t in self.instance.tasks.items()}
        self.bytes = {name: Fraction(t.message or 0) for name, t in self.instance.tasks.items()}
        self.node_of = [node for node, gpus in enumerate(self.instance.cluster.node_gpus.tolist()) for _ in range(gpus)]
        link = self.instance.contention
        self.b, self.eta, self.latency = Fraction(link.seconds_per_byte), Fraction(link.penalty), Fraction(link.latency)

    def completions(self) -> list[Fraction]:
        """C_j of every job."""
        while len(self.done) < self.instance.n:
            self._settle()
            self._decide()
            self._advance()
        return [self.done[j] for j in range(self.instance.n)]

    def _nodes(self, j: int) -> set[int]:
        return {self.node_of[gpu] for gpu in self.states[j].gang}

    def _settle(self) -> None:
        # all that ends now ends; then who arrives is placed
        for gpu, (j, worker, end) in list(self.busy.items()):
            if end == self.now:
                del self.busy[gpu]
                self.states[j].doing[worker] += 1
        for j, state in list(self.states.items()):
            sends = self.bytes[self.kinds[j]] > 0 and len(self._nodes(j)) > 1
            moved = state.bytes_left == 0
            if moved or (not sends and all(step == BARRIER for step in state.doing)):
                state.left, state.bytes_left, state.doing = state.left - 1, None, [FORWARD] * len(state.gang)
                if state.left == 0:
                    self.done[j] = self.now
                    del self.states[j]
        for j, release in enumerate(self.arrival):
            if release <= self.now and j not in self.states and j not in self.done:
                eligible = self.instance.eligible(j)
                suiting = [gpu for gpu, node in enumerate(self.node_of) if eligible[node]]
                gangs = list(combinations(suiting, int(self.instance.gpus[j])))
                gang = gangs[self.choose(len(gangs))]
                self.states[j] = _State(gang, int(self.instance.iterations[j]), [FORWARD] * len(gang))

    def _pending(self) -> bool:
        running = bool(self.busy) or any(state.bytes_left is not None for state in self.states.values())
        return running or any(release > self.now for release in self.arrival)

    def _decide(self) -> None:
        # nobody waits for ever: where nothing else is to come, the last one that is asked has to start
        waiting = [
            j for j, x in self.states.items() if x.bytes_left is None and all(step == BARRIER for step in x.doing)
        ]
        for gpu in range(len(self.node_of)):
            ready = [
                (j, worker)
                for j, state in self.states.items()
                for worker, held in enumerate(state.gang)
                if held == gpu and state.doing[worker] < BARRIER
            ]
            if ready and gpu not in self.busy:
                option = self.choose(len(ready) + self.idle)
                if option < len(ready) or not (waiting or self._pending()):
                    j, worker = ready[option % len(ready)]
                    seconds = self.seconds[self.kinds[j]][self.states[j].doing[worker]]
                    self.busy[gpu] = (j, worker, self.now + seconds)
        for j in waiting:
            if self.choose(2) == 0 or (j == waiting[-1] and not self._pending()):
                self.states[j].bytes_left, self.states[j].wakes = self.bytes[self.kinds[j]], self.now + self.latency

    def _rates(self) -> dict[int, Fraction]:
        moving = [j for j, state in self.states.items() if state.bytes_left is not None and state.wakes <= self.now]
        link = self.instance.contention
        rates = {}
        for j in moving:
            others = [[i for i in moving if i != j and node in self._nodes(i)] for node in self._nodes(j)]
            k = 1 + max(map(len, others))
            rates[j] = 1 / (k * self.b + (k - 1) * self.eta)
            if link is not None and link.measured:
                kept = link.ratios[link.kinds.index(self.kinds[j])]
                slowed = ((Fraction(kept[link.kinds.index(self.kinds[i])]) for i in here) for here in others)
                rates[j] = min(prod(each, start=1 / self.b) for each in slowed)
        return rates

    def _advance(self) -> None:
        rates = self._rates()
        moments = [end for _, _, end in self.busy.values()]
        moments += [self.now + (self.states[j].bytes_left or 0) / rate for j, rate in rates.items()]
        moments += [
            state.wakes for state in self.states.values() if state.bytes_left is not None and state.wakes > self.now
        ]
        moments += [release for release in self.arrival if release > self.now]
        then = min(moments, default=self.now)  # nothing to wait for: a job has just ended, or settles at once
        for j, rate in rates.items():
            self.states[j].bytes_left = (self.states[j].bytes_left or 0) - rate * (then - self.now)
        self.now = then
