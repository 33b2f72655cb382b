"""Small random instances with integer data (many ties), and their translation for the reference simulator."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.contract.instances import MIXED, WIDTHS, random_instance
from optsched.problem.instance import Instance
from optsched.simulation.policy import KnownJobs, Order, OrderedPolicy
from optsched.simulation.run import Run
from simulation.reference import CountReplay, Place, Replay, Rule, Task, consolidated, first_fit

__all__ = ["HOMOGENEOUS", "MIXED", "WIDTHS", "random_instance"]

HOMOGENEOUS = ("1x1", "3x1", "1x8", "2x4", "4x2")
Exact = Callable[[float], Any]  # the fraction that a float stands for


def exactly(value: float) -> Any:
    """What the float is."""
    return Fraction(value) if np.isfinite(value) else value


def rule_of(instance: Instance, order: Order, exact: Exact = exactly) -> Rule:
    """The engine's `Order` in fractions."""
    slope = np.zeros(instance.n) if order.slope is None else order.slope
    return Rule(
        key=[exact(value) for value in np.asarray(order.key, dtype=float).tolist()],
        slope=[exact(value) for value in slope.tolist()],
        preemptive=order.preemptive,
        skip=order.skip,
        thresholds=tuple(map(exact, order.thresholds)),
        starvation=exact(order.starvation),
        round=exact(order.round),
        restart=exact(order.restart),
    )


def eligible_nodes(instance: Instance, j: int) -> list[bool]:
    """Which nodes suit a job, read from the job and the node groups."""
    job, found = instance.job(j), []
    for group in instance.cluster.nodes:
        typed = job.gpu_types is None or group.gpu.lower() in [name.lower() for name in job.gpu_types]
        roomy = job.gpu_memory is None or group.gpu_memory is None or job.gpu_memory <= group.gpu_memory
        found += [typed and roomy] * group.count
    return found


def replayed(
    instance: Instance, policy: OrderedPolicy, placement: str, *, by_count: bool = False, exact: Exact = exactly
) -> Replay:
    """The reference's run. ``by_count`` asks `CountReplay`, which needs one pool of GPUs."""
    rule = rule_of(instance, policy.order(KnownJobs(instance, policy.knowledge)), exact)
    size = instance.cluster.node_gpus.tolist()
    eligible = [eligible_nodes(instance, j) for j in range(instance.n)]
    if placement == "count":
        size, eligible = pools(size, eligible)
    place: Place = consolidated if placement == "consolidated" else first_fit
    tasks = [
        Task(j, exact(job.arrival), job.gpus, exact(job.duration or 0), eligible[j], rule.key[j])
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
