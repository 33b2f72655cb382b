"""Random instances whose jobs meet on network interfaces, and a second look at how fast they are: naive, in plain Python.

All rates anew at every event, fixed points by halving an interval, apart from the engine, the referee and the formula that
they read.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.profile import Profile, Stage
from optsched.problem.scaling import Scaling, SubBatch
from optsched.problem.schedule import Schedule, SharedSchedule
from optsched.speeds.iteration_times import iteration_seconds
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import iteration_time

Gpu = tuple[int, int]

SCALINGS = {
    "wide": Scaling(0.5, 0.25, within=0.3, across=2.0, overlap=1.5, memory=1, memory_per_sample=0.5),
    "talks": Scaling(0.01, 0.001, across=1.0, across_growth=0.5, memory=2, memory_per_sample=0.25),
}


def random_contending_instance(seed: int, jobs: int = 18) -> Instance:
    """Stage graphs, scalings and durations on nodes of two kinds; any penalty and latency, now and then no load at all."""
    rng = random.Random(seed)
    cluster = Cluster(
        tuple(
            NodeGroup(size, count, gpu_memory=16, nic_bandwidth=size * rng.choice([1.0, 3.0]), intra_bandwidth=20.0)
            for count, size in ((3, rng.choice([1, 2, 3])), (rng.choice([1, 2]), 2))
        )
    )
    profiles = {
        f"p{k}": Profile(
            tuple(Stage(r, rng.random(), rng.random() + 0.1, rng.choice([0.0, 2.0, 9.0]), 1.0) for r in replicas),
            micro_batches=rng.choice([None, 2]),
        )
        for k, replicas in enumerate([(2,), (1, 1), (2, 1), (3,), (1, 2, 1)])
    }
    listed = []
    late = rng.choice([0, 10.0, 1e6])
    for j in range(jobs):
        arrival, kind = late + round(rng.uniform(0, 12), rng.choice([0, 3])), rng.random()
        if kind < 0.45:
            name = rng.choice(list(profiles))
            listed.append(
                Job(f"j{j}", arrival, profiles[name].gpus, iterations=rng.randint(1, 9), profile=name, gpu_memory=6.0)
            )
        elif kind < 0.8:
            gpus, name = rng.choice([1, 2, 3, 4]), rng.choice(list(SCALINGS))
            batch = gpus * rng.choice([6, 12])
            listed.append(Job(f"j{j}", arrival, gpus, iterations=rng.randint(1, 9), profile=name, batch_size=batch))
        else:
            gpus = rng.choice([1, 2, 3])
            listed.append(Job(f"j{j}", arrival, gpus, duration=rng.uniform(1, 20), gpu_memory=4.0))
    penalty = rng.choice([0.0, 0.5, 2.0, -0.5])
    return Instance(
        listed,
        cluster,
        profiles=profiles,
        scalings=SCALINGS,
        contention=Contention(1.0, penalty, rng.choice([0.0, 0.0, 0.3])),
        interference=Interference(rng.choice([1.0, 1.5])),
    )


@dataclass(frozen=True)
class Present:
    """A job on its GPUs, in so many sub-steps."""

    job: int
    gpus: tuple[Gpu, ...]
    steps: int = 1

    @property
    def nodes(self) -> list[int]:
        return [node for node, _ in self.gpus]


class World:
    """How fast everybody is beside everybody."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._known: dict[Present, tuple[float, float]] = {}

    def alone(self, who: Present) -> tuple[float, float]:
        """(seconds of a unit alone, share of them on the network)."""
        if who not in self._known:
            self._known[who] = self._alone(who)
        return self._known[who]

    def _alone(self, who: Present) -> tuple[float, float]:
        made, j = self.instance, who.job
        name, spans = made.table["profile"][j], len(set(who.nodes)) > 1
        if name is None:
            return 1.0, 0.0
        if name in made.profiles:
            network = Network.of(made.cluster)
            pace = iteration_time(made.profiles[name], network, who.nodes)
            compute_time = iteration_time(
                made.profiles[name], replace(network, cross=network.cross * math.inf), who.nodes
            )
        else:
            scaling, sub = made.scalings[name], self.split(who)
            pace = iteration_seconds(scaling, sub.size, sub.steps, len(who.gpus), spans)
            compute_time = sub.steps * (scaling.compute + scaling.per_sample * sub.size)
        assert made.contention is not None
        return pace, max(0.0, pace - compute_time - made.contention.latency) / pace if spans else 0.0

    def split(self, who: Present) -> SubBatch:
        """How a replica of a job at a scaling profile does its part of the batch."""
        (sub,) = (each for each in self.instance.sub_batches(who.job) if each.steps == who.steps)
        return sub

    def seconds(self, present: Sequence[Present]) -> list[float]:
        """Seconds of a unit of everybody's work."""
        cost = self.instance.contention
        step = 0.0 if cost is None else (cost.seconds_per_byte + cost.penalty) / cost.seconds_per_byte
        share = [self.alone(who)[1] for who in present]
        met = [0.0] * len(present)
        for m in range(self.instance.cluster.node_count):
            there = [k for k, who in enumerate(present) if share[k] > 0 and m in who.nodes]
            for k, others in zip(there, _met(tuple(share[k] for k in there), step), strict=True):
                met[k] = max(met[k], others)
        found = []
        for k, who in enumerate(present):
            xi = max(
                [1.0, *(self._xi(who.job, o.job) for o in present if o is not who and set(o.gpus) & set(who.gpus))]
            )
            found.append(self.alone(who)[0] * xi * (1 + share[k] * step * met[k]))
        return found

    def _xi(self, one: int, other: int) -> float:
        table = self.instance.interference
        assert table is not None
        return table.slowdown(self.instance.kinds[one], self.instance.kinds[other])


@cache  # the same jobs meet again and again
def _met(share: tuple[float, ...], step: float) -> list[float]:
    if len(share) < 2:
        return [0.0] * len(share)

    def busy(p: float, total: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            u = (low + high) / 2
            f = 1 + step * (total - u)
            low, high = (u, high) if u * (1 - p + p * f) < p * f else (low, u)
        return high

    low, high = 0.0, float(len(share))
    for _ in range(60):
        total = (low + high) / 2
        low, high = (total, high) if sum(busy(p, total) for p in share) > total else (low, total)
    return [sum(busy(p, high) for i, p in enumerate(share) if i != j) for j in range(len(share))]


class ElasticWorld(World):
    """The same where a job at a scaling profile has any gang, each replica its part of the job's own batch."""

    def split(self, who: Present) -> SubBatch:
        made, j = self.instance, who.job
        splits = made.scalings[made.table["profile"][j]].sub_batches(made.table["batch_size"][j], len(who.gpus))
        return next((each for each in splits if each.memory <= made.gpu_memory[j]), splits[0])


def worth(instance: Instance, schedule: Schedule, of_worlds: type[World] = World) -> tuple[list[float], list[float]]:
    """(work, work that the stay is worth) of every segment, from who else is there at each moment."""
    world, rows = of_worlds(instance), list(schedule.segments())
    steps = schedule.steps.tolist() if isinstance(schedule, SharedSchedule) else None
    of = []
    for k, row in enumerate(rows):
        options = instance.sub_batches(row.job)
        of.append(Present(row.job, tuple(row.gpus), steps[k] if steps else options[0].steps if options else 1))
    times = sorted({row.start for row in rows} | {row.end for row in rows})
    done = [0.0] * len(rows)
    for begin, end in itertools.pairwise(times):
        here = [k for k, row in enumerate(rows) if row.start <= begin and row.end >= end]
        for k, seconds in zip(here, world.seconds([of[k] for k in here]), strict=True):
            done[k] += (end - begin) / seconds
    return [row.work for row in rows], done
