"""Small instances whose jobs share GPUs, the best schedule that starts jobs at events, and random schedules in fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from events import advance, least

from bounds.typed_cases import objective_value
from optsched.errors import RowErrors
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.speeds.duration import paces
from optsched.speeds.partner_rates import sharing_rates
from optsched.speeds.type_speeds import type_speeds

NAMES = "abcdefgh"
Placed = tuple[tuple[int, ...], int]  # GPUs, sub-batch option


def small_shared(rng: np.random.Generator, gpus: int, jobs: int, xi: float | str) -> Instance:
    """Random jobs of the law of recipe ``sharing-small``; ``xi`` a ratio, or "exp": one for every ordered pair."""
    seconds = 10 ** rng.uniform(-1, 1, jobs)
    gang = rng.integers(1, gpus + 1, jobs)
    late = rng.random(jobs) >= 0.4
    release = np.where(late, rng.uniform(0, 0.7 * seconds.sum(), jobs), 0.0)
    if isinstance(xi, str):
        ratios = 1 + rng.exponential(0.5, (jobs, jobs))
        physics = Interference(2.0, tuple(NAMES[:jobs]), tuple(map(tuple, ratios.tolist())))
    else:
        physics = Interference(float(xi))
    rows = zip(release.tolist(), gang.tolist(), seconds.tolist(), strict=True)
    listed = [Job(f"j{k}", r, g, e, model=NAMES[k]) for k, (r, g, e) in enumerate(rows)]
    return Instance(listed, Cluster((NodeGroup(gpus),)), interference=physics)


def rich(rng: np.random.Generator, most: int = 4) -> Instance:
    """1 to ``most`` jobs: kinds, pairs that never share, two node groups, types, memory, weights, due dates; sub-batches,
    or speeds by GPU type.
    """
    while True:
        try:
            return _rich(rng, most)
        except RowErrors:  # a gang that finds no room
            continue


def _rich(rng: np.random.Generator, most: int) -> Instance:
    kinds = NAMES[: rng.integers(1, 4)]
    ratios = [[float(rng.choice([1.0, 1.25, 1.5, 2.0, 3.0])) for _ in kinds] for _ in kinds]
    table = [[None if rng.random() < 0.15 else value for value in row] for row in ratios]
    groups = [
        NodeGroup(int(rng.integers(1, 3)), 1, str(gpu), [None, 8.0, 6.0][rng.integers(3)])
        for gpu in rng.permutation(["V100", "K80"])[: rng.integers(1, 3)]
    ]
    memory = float(rng.integers(1, 3))
    batched = {name: Scaling(1.0, 0.5, within=0.25, across=0.5, memory=1.0, memory_per_sample=memory) for name in kinds}
    mode = ["durations", "batches", "batches", "speeds"][rng.integers(4)]
    jobs = [_rich_job(rng, f"j{k}", groups, kinds, mode) for k in range(rng.integers(1, most + 1))]
    speed = {
        (kind, group.gpu, gang): Throughput(float(rng.choice([0.5, 1.0, 2.0, 4.0])))
        for kind in kinds
        for group in groups
        for gang in range(1, 5)
    }
    physics = Interference(float(rng.choice([1.0, 1.4, 2.0])), tuple(kinds), tuple(map(tuple, table)))
    given: dict[str, Any] = {"batches": {"scalings": batched}, "speeds": {"throughputs": Throughputs(speed)}}.get(
        mode, {}
    )
    return Instance(jobs, Cluster(tuple(groups)), interference=physics, **given)


def _rich_job(rng: np.random.Generator, name: str, groups: list[NodeGroup], kinds: str, mode: str) -> Job:
    types = [None, (groups[0].gpu,)][int(rng.random() < 0.3)]
    gang = int(rng.integers(1, 1 + sum(group.gpus for group in groups if types is None or group.gpu in types)))
    what: dict[str, Any] = {"duration": float(rng.integers(1, 9)), "gpu_memory": [None, 2.0, 5.0][rng.integers(3)]}
    if mode != "durations" and rng.random() < 0.7:
        what = {"iterations": float(rng.integers(1, 5)), "batch_size": int(gang * rng.choice([1, 2, 4]))}
    what |= {"weight": float(rng.integers(0, 4)), "due": [None, float(rng.integers(1, 15))][rng.integers(2)]}
    kind = str(rng.choice([*kinds, "unknown"])) if "duration" in what else str(rng.choice(list(kinds)))
    release = float(rng.choice([0, 0, 0.5, 1, 3]))
    return Job(name, release, gang, profile=kind, model=kind, gpu_types=types, **what)


@dataclass
class RunContext:
    """Who can be where, from the model's definition: one number for every GPU, the physics of every job."""

    instance: Instance
    group: list[int] = field(init=False)

    def __post_init__(self) -> None:
        cluster = self.instance.cluster
        self.group = np.repeat(cluster.node_group, cluster.node_gpus).tolist()
        self.node = np.repeat(np.arange(cluster.node_count), cluster.node_gpus).tolist()
        self.room = np.repeat(cluster.node_memory, cluster.node_gpus).tolist()
        self.suits = [self.instance.eligible(j)[self.node].tolist() for j in range(self.instance.n)]
        self.rates, self.speeds = sharing_rates(self.instance), type_speeds(self.instance)
        self.pace = paces(self.instance)[0].tolist()

    def options(self, j: int) -> int:
        return int(self.rates.options[j])

    def memory(self, j: int, option: int) -> float:
        return float(self.rates.memory[j, option])

    def slow(self, j: int, other: int) -> float:
        table, kinds = self.instance.interference, self.instance.kinds
        there, back = table.slowdown(kinds[j], kinds[other]), table.slowdown(kinds[other], kinds[j])
        return math.inf if math.inf in (there, back) else there

    def fits(self, j: int, option: int, gpu: int, beside: tuple[int, ...], running: dict[int, Placed]) -> bool:
        if not self.suits[j][gpu] or len(beside) > 1:
            return False
        used = sum(self.memory(k, running[k][1]) for k in beside)
        return used + self.memory(j, option) <= self.room[gpu] and all(self.slow(j, k) < math.inf for k in beside)

    def residents(self, running: dict[int, Placed]) -> list[tuple[int, ...]]:
        return [tuple(j for j, (gpus, _) in running.items() if g in gpus) for g in range(len(self.group))]

    def seconds_a_unit(self, j: int, running: dict[int, Placed]) -> Fraction:
        """With its present partners, exact in the floats of the physics."""
        gpus, option = running[j]
        spans = int(len({self.node[g] for g in gpus}) > 1)
        beside = self.residents(running)
        worst = max([1.0, *(self.slow(j, k) for g in gpus for k in beside[g] if k != j)])
        pace = self.pace[j]
        if j in self.instance.jobs_at("throughputs"):
            pace = 1.0 / self.speeds.rate(j, {self.node[g] for g in gpus})
        elif j in self.instance.jobs_at("scalings"):
            pace = self.scaled_pace(j, spans)
        return Fraction(pace) * Fraction(float(self.rates.stretch[j, option, spans])) * Fraction(worst)

    def scaled_pace(self, j: int, spans: int) -> float:
        """Seconds of an iteration with the fewest sub-steps, from the definition of a scaling profile without overlap."""
        job, profiles = self.instance.jobs[j], self.instance.scalings
        assert profiles is not None
        assert job.profile is not None
        assert job.batch_size is not None
        scaling = profiles[job.profile]
        together = 0.0 if job.gpus == 1 else scaling.across if spans else scaling.within
        steps = int(self.rates.steps[j, 0])
        local = -(-job.batch_size // (job.gpus * steps))
        return steps * (scaling.compute + scaling.per_sample * local) + together

    def starts(self, j: int, running: dict[int, Placed]) -> Iterator[Placed]:
        """All ways to start j beside those that run; GPUs with the same residents and alike nodes are one."""
        beside, seen = self.residents(running), set()
        gang = int(self.instance.gpus[j])
        for option in range(self.options(j)):
            able = [g for g in range(len(self.group)) if self.fits(j, option, g, beside[g], running)]
            for gpus in combinations(able, gang):
                alike = (option, tuple(sorted((self.group[g], beside[g]) for g in gpus)))
                if alike not in seen:
                    seen.add(alike)
                    yield gpus, option


def best_at_events(instance: Instance, objective: str) -> float:
    """The best value of schedules without preemption that start jobs at releases and completions, in floats."""
    site, release, work = RunContext(instance), instance.arrival.tolist(), instance.work.tolist()

    def pace(running: dict[int, Placed]) -> dict[int, float]:
        return {j: float(site.seconds_a_unit(j, running)) for j in running}

    def value(ends: list[float]) -> float:
        return float(objective_value(instance, objective, ends))

    return float(least(release, work, site.starts, pace, fastest=site.pace, value=value, close=1e-12))


def random_completions(instance: Instance, rng: np.random.Generator, *, preempt: bool) -> list[Fraction]:
    """Completion times of a schedule that chance makes, in fractions; with ``preempt`` jobs may also stop and move."""
    site, now = RunContext(instance), Fraction(0)
    release = [Fraction(r) for r in instance.arrival.tolist()]
    left = dict(enumerate(map(Fraction, instance.work.tolist())))
    done: dict[int, Fraction] = {}
    running: dict[int, Placed] = {}
    while len(done) < instance.n:
        if preempt and running and rng.random() < 0.5:
            running = {j: placed for j, placed in running.items() if rng.random() < 0.6}
        for j in rng.permutation(instance.n).tolist():
            if j not in done and j not in running and release[j] <= now and rng.random() < 0.8:
                ways = list(site.starts(j, running))
                if ways:
                    running[j] = ways[rng.integers(len(ways))]
        moments, events = list(release), running or max(release) > now
        if not events or (running and rng.random() < 0.3):  # also between events
            moments.append(now + Fraction(int(rng.integers(1, 17)), 16))
        pace = {j: site.seconds_a_unit(j, running) for j in running}
        now, after = advance(now, {j: left[j] for j in running}, pace, moments)
        done |= {j: now for j in running if j not in after}
        left, running = {**left, **after}, {j: running[j] for j in after}
    return [done[j] for j in range(instance.n)]
