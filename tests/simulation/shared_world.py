"""Random instances whose jobs may share GPUs, and a small simulator of them.

In plain Python, all jobs at every event, apart from the engine and from the referee.
"""

from __future__ import annotations

import dataclasses
import math
import random
from dataclasses import dataclass

import numpy as np
from events import State, run, shared

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Segment, SharedSchedule

SCALINGS = {
    "wide": Scaling(0.5, 0.25, within=0.3, across=2.0, overlap=1.5, memory=1, memory_per_sample=0.5),
    "small": Scaling(1.0, 0.125, within=0.1, across=0.5, most_local=8, memory=2, memory_per_sample=0.25),
}
KINDS = ("wide", "small", "vision", "text")

Gpu = tuple[int, int]


def random_shared_instance(seed: int, jobs: int = 14) -> Instance:
    """Two kinds of nodes, jobs with durations and jobs with batches, a table with gaps and pairs that never share."""
    rng = random.Random(seed)
    cluster = Cluster(
        (
            NodeGroup(count=2, gpus=rng.choice([1, 2, 3]), gpu="V100", gpu_memory=16),
            NodeGroup(count=rng.choice([1, 2]), gpus=2, gpu="K80", gpu_memory=10),
        )
    )
    # every other table: fast clocks, large slow-downs
    spread = rng.choice([0.3, 1.0, 4.0])
    ratios = [
        [None if rng.random() < 0.08 else 1 + rng.choice([0.0, 0.25, rng.expovariate(1 / spread)]) for _ in KINDS]
        for _ in KINDS
    ]
    listed = []
    late = rng.choice([0, 10.0, 1e6])
    for j in range(jobs):
        arrival = late + round(rng.uniform(0, 60), rng.choice([0, 3, 9]))
        gpus = rng.choice([1, 1, 1, 2, 2, 3])
        if rng.random() < 0.5:
            each = {"profile": rng.choice(["wide", "small"]), "batch_size": gpus * rng.choice([6, 12, 16])}
            listed.append(Job(f"j{j}", arrival=arrival, gpus=gpus, iterations=rng.randint(1, 12), **each))
        else:
            kind = rng.choice(["vision", "text", "nobody knows", None])
            seconds = rng.choice([rng.randint(1, 40), rng.expovariate(1 / 15) + 0.01])
            memory = rng.choice([None, 3.0, 6.5, 9.0])
            listed.append(Job(f"j{j}", arrival=arrival, gpus=gpus, duration=seconds, model=kind, gpu_memory=memory))
    return Instance(listed, cluster, scalings=SCALINGS, interference=Interference(rng.choice([1.5, 2]), KINDS, ratios))


@dataclass(frozen=True)
class _Placed:
    gang: tuple[Gpu, ...]
    steps: int
    memory: float
    pace: float  # seconds a unit of work, with nobody beside it


@dataclass
class SharedWorld:
    """A run. Choices are random, among those that are possible."""

    instance: Instance
    seed: int

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.eager = self.rng.choice([0.3, 0.7, 1.0])
        sizes = self.instance.cluster.node_gpus.tolist()
        self.gpus = [(node, index) for node, count in enumerate(sizes) for index in range(count)]

    def xi(self, a: int, b: int) -> float:
        kinds, table = self.instance.kinds, self.instance.interference
        assert table is not None
        return table.slowdown(kinds[a], kinds[b])

    def pace(self, job: int, option: int, gang: tuple[Gpu, ...]) -> float:
        if job not in self.instance.jobs_at("scalings"):
            return 1.0
        s = self.instance.scalings[str(self.instance.table["profile"][job])]
        sub = self.instance.sub_batches(job)[option]
        computing = s.compute + s.per_sample * sub.size
        spans = len({node for node, _ in gang}) > 1
        network = (s.across if spans else s.within) if len(gang) > 1 else 0.0
        network += (s.across_growth if spans else s.within_growth) * max(len(gang) - 2, 0)
        return (sub.steps - 1) * computing + (computing**s.overlap + network**s.overlap) ** (1 / s.overlap)

    def possible(self, job: int, memory: float, running: dict[int, _Placed]) -> list[Gpu]:
        suits, found = self.instance.eligible(job), []
        for gpu in self.gpus:
            beside = {j: each for j, each in running.items() if gpu in each.gang}
            held = sum(each.memory for each in beside.values())
            room = held + memory <= float(self.instance.cluster.node_memory[gpu[0]])
            never = any(math.isinf(max(self.xi(job, j), self.xi(j, job))) for j in beside)
            if suits[gpu[0]] and room and not never and len(beside) <= 1:
                found.append(gpu)
        return found

    def choose(self, job: int, state: State) -> _Placed | None:
        options = self.instance.sub_batches(job)
        option = self.rng.randrange(len(options)) if options else 0
        memory = options[option].memory if options else float(self.instance.gpu_memory[job])
        open_gpus = self.possible(job, memory, state.running)
        wanted = int(self.instance.gpus[job])
        if len(open_gpus) < wanted or (state.running and self.rng.random() > self.eager):
            return None
        gang = tuple(self.rng.sample(open_gpus, wanted))
        return _Placed(gang, options[option].steps if options else 1, memory, self.pace(job, option, gang))

    def schedule(self) -> SharedSchedule:
        """Run it all."""
        release, work = self.instance.arrival.tolist(), self.instance.work.tolist()

        def pace(running: dict[int, _Placed]) -> dict[int, float]:
            alone = {j: each.pace for j, each in running.items()}
            return shared(self.xi, alone.get)({j: each.gang for j, each in running.items()})

        played = run(release, lambda j, _: work[j], self.choose, pace)
        order = sorted(range(len(played)), key=lambda j: (played[j][2], played[j][1]))
        segments = [Segment(j, played[j][0].gang, *played[j][1:], work[j]) for j in order]
        plain = SharedSchedule.from_segments(self.instance, segments, "right")
        return with_steps(plain, [played[j][0].steps for j in order])


def with_steps(schedule: SharedSchedule, steps: list[int]) -> SharedSchedule:
    """The schedule with these sub-steps."""
    return dataclasses.replace(schedule, steps=np.array(steps, dtype=np.int64))
