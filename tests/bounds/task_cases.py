"""Small instances of jobs with tasks, and schedules of them that chance makes, in the fractions of the second simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
from simulation.task_reference import Gpu, Key, Number, World

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job


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


@dataclass
class AnySchedule(World):
    """Gangs on any GPUs that suit, tasks in any order; GPUs idle and messages wait, the less the more ``eager``."""

    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    eager: float = 1.0

    def choose(self, job: int) -> tuple[Gpu, ...]:
        suiting = [gpu for gpu in self.all_gpus if self.instance.eligible(job)[gpu[0]]]
        gangs = list(combinations(suiting, int(self.instance.gpus[job])))
        return gangs[self.rng.integers(len(gangs))]

    def rank(self, keys: Sequence[Key], job: int) -> tuple[Number, int]:
        return self.rng.random(), job

    def communicate(self) -> None:
        self.ask = True
        super().communicate()

    def admit(self, job: int) -> bool:
        # nobody waits for ever: where nothing else is to come, all that can start does
        others = self.transfers or self.to_come or not all(each.at_barrier for each in self.resident.values())
        return not others or self.rng.random() < self.eager

    def compute(self) -> None:
        every, others = self.all_gpus, self.transfers or self.to_come or self.busy
        self.all_gpus = [gpu for gpu in every if not others or self.rng.random() < self.eager]
        super().compute()
        self.all_gpus = every


def random_completions(instance: Instance, rng: np.random.Generator, eager: float) -> list[Fraction]:
    """C_j of every job in a schedule that chance makes."""
    world = AnySchedule(instance, None, None, rng=rng, eager=eager)
    world.run()
    return [end for _, _, _, end, _ in sorted(world.segments)]
