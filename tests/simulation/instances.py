"""Small random instances with integer data (many ties), and their translation for the reference simulator."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import KnownJobs, Order, OrderedPolicy
from optsched.simulation.run import Run
from simulation.reference import CountReplay, Place, Replay, Rule, Task, consolidated, first_fit

HOMOGENEOUS = ("1x1", "3x1", "1x8", "2x4", "4x2")
MIXED = Cluster(
    (
        NodeGroup(count=2, gpus=4, gpu="V100", gpu_memory=16),
        NodeGroup(count=3, gpus=2, gpu="P100", gpu_memory=16),
        NodeGroup(count=1, gpus=4, gpu="K80", gpu_memory=12),
        NodeGroup(count=2, gpus=1, gpu="v100", gpu_memory=32),
    )
)
WIDTHS = (1, 1, 2, 3, 4, 6, 8)  # divisors of 24: with thresholds that are multiples of 24 all event times are integers


def random_instance(seed: int, cluster: Cluster | str, jobs: int = 12) -> Instance:
    """Up to ``jobs`` jobs that fit on ``cluster``; on `MIXED` some are restricted in type or memory."""
    rng = np.random.default_rng([seed, 7])
    cluster = cluster if isinstance(cluster, Cluster) else Cluster.parse(cluster)
    spread = int(rng.choice([1, 10, 40]))  # all at once, crowded, nearly idle
    made = []
    for j in range(int(rng.integers(1, jobs + 1))):
        types = [None, ("V100",), ("p100", "K80"), ("V100", "K80")][int(rng.choice([0, 0, 1, 2, 3]))]
        memory = [None, 8, 14, 30][int(rng.choice([0, 0, 1, 2, 3]))]
        types, memory = (types, memory) if cluster is MIXED else (None, None)
        offered = sum(group.gpus * group.count for group in cluster.nodes if group.suits(types, memory))
        if not offered:
            types, memory, offered = None, None, cluster.gpus
        made.append(
            Job(
                f"job-{j}",
                arrival=int(rng.integers(0, spread)),
                gpus=int(rng.choice([width for width in WIDTHS if width <= offered])),
                duration=int(rng.integers(1, 13)),
                weight=int(rng.integers(0, 4)),
                due=None if rng.random() < 0.3 else int(rng.integers(0, 50)),
                gpu_memory=memory,
                gpu_types=types,
            )
        )
    return Instance(made, cluster, f"random-{seed}")


def _exact(value: float) -> Any:
    return Fraction(value) if np.isfinite(value) else value


def rule_of(instance: Instance, order: Order) -> Rule:
    """The engine's `Order` in fractions."""
    slope = np.zeros(instance.n) if order.slope is None else order.slope
    return Rule(
        key=[_exact(value) for value in np.asarray(order.key, dtype=float).tolist()],
        slope=[Fraction(value) for value in slope.tolist()],
        preemptive=order.preemptive,
        skip=order.skip,
        thresholds=tuple(Fraction(value) for value in order.thresholds),
        starvation=Fraction(order.starvation),
        round=Fraction(order.round),
        restart=Fraction(order.restart),
    )


def eligible_nodes(instance: Instance, j: int) -> list[bool]:
    """Which nodes suit a job, read from the job and the node groups."""
    job, found = instance.job(j), []
    for group in instance.cluster.nodes:
        typed = job.gpu_types is None or group.gpu.lower() in [name.lower() for name in job.gpu_types]
        roomy = job.gpu_memory is None or group.gpu_memory is None or job.gpu_memory <= group.gpu_memory
        found += [typed and roomy] * group.count
    return found


def replayed(instance: Instance, policy: OrderedPolicy, placement: str, *, by_count: bool = False) -> Replay:
    """The reference's run. ``by_count`` asks `CountReplay`, which needs one pool of GPUs."""
    rule = rule_of(instance, policy.order(KnownJobs(instance, policy.knowledge)))
    size = instance.cluster.node_gpus.tolist()
    eligible = [eligible_nodes(instance, j) for j in range(instance.n)]
    if placement == "count":
        size, eligible = pools(size, eligible)
    place: Place = consolidated if placement == "consolidated" else first_fit
    tasks = [
        Task(j, Fraction(job.arrival), job.gpus, Fraction(job.duration or 0), eligible[j], rule.key[j])
        for j, job in enumerate(instance.jobs)
    ]
    return (CountReplay if by_count else Replay)(tasks, size, rule, place)


def pools(size: list[int], eligible: list[list[bool]]) -> tuple[list[int], list[list[bool]]]:
    # `count` never looks at nodes: neighbours that every job treats alike are one pool.
    pools: list[int] = []
    kept: list[int] = []
    for node, gpus in enumerate(size):
        if kept and all(row[node] == row[kept[-1]] for row in eligible):
            pools[-1] += gpus
        else:
            pools.append(gpus)
            kept.append(node)
    return pools, [[row[node] for node in kept] for row in eligible]


def history(run: Run, *, nodes: bool) -> list[list[tuple[Any, ...]]]:
    """Of every job, its segments (start, end, work, and the GPUs by node) in order of time."""
    found: list[list[tuple[Any, ...]]] = [[] for _ in range(run.instance.n)]
    for segment in run.schedule.segments():
        counts: dict[int, int] = {}
        for node, _ in segment.gpus:
            counts[node] = counts.get(node, 0) + 1
        where = (counts,) if nodes else (len(segment.gpus),)
        found[segment.job].append((segment.start, segment.end, segment.work, *where))
    return [sorted(segments, key=lambda segment: segment[0]) for segments in found]


def reference_history(replay: Replay, *, nodes: bool) -> list[list[tuple[Any, ...]]]:
    """The same of the reference's run."""
    return [
        [(start, end, work, held if nodes else sum(held.values())) for start, end, work, held in task.segments]
        for task in replay.tasks
    ]
