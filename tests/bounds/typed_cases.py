"""Small clusters of several GPU types, and feasible schedules on them, made in fractions and by nobody's engine."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

import numpy as np
from events import advance

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs

GPUS = ("V100", "P100", "K80")
MODELS = ("vision", "language", "game")


def typed_instance(rng: np.random.Generator, most: int = 6, widest: int = 4, zeros: bool = True) -> Instance:
    """1 to ``most`` jobs at the speeds of a table (few with durations) on 1 to 3 types, 1 to 5 nodes of 1 to 3 GPUs."""
    types = list(rng.permutation(GPUS)[: rng.integers(1, 4)])
    flat = bool(rng.random() < 0.4)
    nodes = [
        NodeGroup(gpus=1 if flat else int(rng.integers(1, 4)), count=int(rng.integers(1, 3)), gpu=str(gpu))
        for gpu in types
    ]
    total = sum(node.gpus * node.count for node in nodes)
    table = {}
    for model in MODELS:
        for gpu in types:
            for gang in range(1, widest + 1):
                fast = float(rng.choice([1, 2, 3, 5, 8, 0.3])) * (1 + 0.7 * (gang - 1))
                slow = None if rng.random() < 0.3 else fast * float(rng.choice([0.5, 0.9, 1.1]))
                if zeros and rng.random() < 0.1:
                    fast, slow = 0.0, None
                table[model, str(gpu), gang] = Throughput(fast, slow)
    jobs = []
    while not jobs:
        for j in range(rng.integers(1, most + 1)):
            gang, model = int(rng.integers(1, min(widest, total) + 1)), str(rng.choice(MODELS))
            room = sum(node.gpus * node.count for node in nodes if table[model, node.gpu, gang].together > 0)
            work = float(rng.choice([1, 2, 3, 5, 8, 13]))
            dates = {"arrival": float(rng.choice([0, 0, 1, 3, 4.5])), "weight": float(rng.integers(0, 4))}
            if rng.random() < 0.15:
                jobs.append(Job(f"j{j}", gpus=gang, duration=work, due=float(rng.integers(1, 12)), **dates))
            elif room >= gang:
                jobs.append(Job(f"j{j}", gpus=gang, iterations=work, profile=model, **dates))
    return Instance(jobs, Cluster(tuple(nodes)), throughputs=Throughputs(table))


@dataclass(frozen=True)
class Speed:
    """Seconds a unit of work takes job j on nodes, read straight from the table: the rules of mixed gangs spelled out."""

    instance: Instance

    def pace(self, j: int, nodes: tuple[int, ...]) -> Fraction | None:
        """None: the gang may not run there."""
        cluster, job = self.instance.cluster, self.instance.job(j)
        if job.duration is not None:
            return Fraction(1)
        assert self.instance.throughputs is not None
        spread = len(set(nodes)) > 1 and any(group.gpus > 1 for group in cluster.nodes)
        paces = []
        for node in set(nodes):
            row = self.instance.throughputs.get(str(job.profile), cluster.nodes[cluster.node_group[node]].gpu, job.gpus)
            rate = 0.0 if row is None else row.over_nodes if spread else row.together
            if rate == 0:
                return None
            paces.append(Fraction(1.0 / rate))
        return max(paces)


def random_completions(
    instance: Instance, rng: np.random.Generator, *, forking: bool = False, preempt: bool = True, greedy: float = 0.7
) -> list[Fraction]:
    """Completion times of a feasible schedule: gangs on random or on their fastest GPUs, in random or in SRPT order.

    ``forking``: several copies of a job at once, each on one node. Work is done exactly, moments are fractions.
    """
    speed, n = Speed(instance), instance.n
    release = [Fraction(r) for r in instance.arrival.tolist()]
    left = dict(enumerate(map(Fraction, instance.work.tolist())))
    done: dict[int, Fraction] = {}
    now, held = min(release), dict[int, list[tuple[tuple[int, ...], Fraction]]]()
    while len(done) < n:
        if preempt or forking:
            held = {}
        free = [node for node, count in enumerate(instance.cluster.node_gpus) for _ in range(int(count))]
        for copies in held.values():
            for nodes, _ in copies:
                for node in nodes:
                    free.remove(node)
        ready = [j for j in range(n) if release[j] <= now and j not in done and j not in held]
        ready = [ready[k] for k in rng.permutation(len(ready))]
        if rng.random() < greedy:
            ready.sort(key=lambda j: left[j])
        tries = ready * (int(rng.integers(1, 5)) if forking else 1)
        for j in tries:
            found = _gang(speed, j, free, rng, one_node=forking and j in held, best=bool(rng.random() < greedy))
            if found is not None:
                held.setdefault(j, []).append(found)
                for node in found[0]:
                    free.remove(node)
        pace = {j: 1 / sum(1 / pace for _, pace in copies) for j, copies in held.items()}
        moments = [*release, *([now + Fraction(int(rng.integers(1, 9)), 4)] if preempt else [])]
        now, after = advance(now, {j: left[j] for j in held}, pace, moments)
        done |= {j: now for j in held if j not in after}
        left, held = {**left, **after}, {j: held[j] for j in after}
    return [done[j] for j in range(n)]


def _gang(
    speed: Speed, j: int, free: list[int], rng: np.random.Generator, one_node: bool, best: bool
) -> tuple[tuple[int, ...], Fraction] | None:
    gang = int(speed.instance.gpus[j])
    free = [node for node in free if speed.pace(j, (node,)) is not None]
    choices = [tuple([node] * gang) for node, gpus in groupby(sorted(free)) if len(list(gpus)) >= gang]
    if not one_node and len(free) >= gang:
        choices += [tuple(free[k] for k in rng.permutation(len(free))[:gang]) for _ in range(3)]
    paces = [(nodes, speed.pace(j, nodes)) for nodes in choices]
    runs = [(nodes, pace) for nodes, pace in paces if pace is not None]
    if not runs:
        return None
    return min(runs, key=lambda run: run[1]) if best else runs[int(rng.integers(len(runs)))]


def objective_value(instance: Instance, objective: str, completion: list[Fraction]) -> Fraction:
    """The objective by its name, in fractions."""
    if objective == "makespan":
        return max(completion)
    if objective == "max_fair_slowdown":
        stay = (end - Fraction(float(r)) for end, r in zip(completion, instance.arrival, strict=True))
        return max(x / Fraction(float(d)) for x, d in zip(stay, fair_flow_times(instance), strict=True))
    value = Fraction(0)
    if objective == "total_utility":
        stay = (end - Fraction(float(r)) for end, r in zip(completion, instance.arrival, strict=True))
        done = (
            Fraction(w) * Fraction(x) for w, x in zip(instance.weight.tolist(), instance.work.tolist(), strict=True)
        )
        return sum((x / time for x, time in zip(done, stay, strict=True)), Fraction(0))
    for j, end in enumerate(completion):
        weight = Fraction(float(instance.weight[j])) if "weighted" in objective else Fraction(1)
        if "flow" in objective:
            end -= Fraction(float(instance.arrival[j]))
        elif "tardiness" in objective:
            due = float(instance.due[j])
            end = max(Fraction(0), end - Fraction(due)) if np.isfinite(due) else Fraction(0)
        value += weight * end
    return value
