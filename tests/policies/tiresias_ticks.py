"""Tiresias in the Pollux artifact as its public description has it, once more and in small: plain Python, tick by tick.

Nothing of optsched is used. At the end of every tick: jobs that ended leave, jobs that came stand behind the first queue,
running jobs whose service (time held x GPUs) has reached the threshold go behind the second. Then both queues are walked:
a job runs where its gang is no larger than the number of GPUs that are left, else it waits, and loses what it holds. Jobs
that keep running keep their GPUs; then the new ones, in order, fill the node with most free GPUs, then the next. Every
change of GPUs, the first start too, costs a restart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

Seconds = Callable[[tuple[int, ...]], float]  # of an iteration, by the replicas on the nodes


@dataclass
class TickJob:
    name: str
    arrival: float
    gpus: int
    iterations: float
    seconds: Seconds
    done: float = 0.0
    delay: float = 0.0
    held: float = 0.0
    nodes: list[int] = field(default_factory=list)  # of every GPU, in the order in which they were given
    completion: float | None = None
    starts: int = 0


@dataclass(frozen=True)
class Rules:
    """What an account of the semantics may leave open."""

    tick: float = 60.0
    threshold: float = 57600.0
    restart: float = 30.0
    first: bool = True  # the restart is paid at the first start, too
    requeue: bool = True  # the second queue is in the order in which jobs came to it, else in that of arrival


def run(jobs: list[TickJob], nodes: int, gpus: int, rules: Rules) -> list[TickJob]:
    """Simulate; the jobs get their ``completion``."""
    first: list[TickJob] = []
    second: list[TickJob] = []
    coming = sorted(jobs, key=lambda job: job.arrival)
    now = 0.0
    while coming or first or second:
        first = [job for job in first if job.completion is None]
        second = [job for job in second if job.completion is None]
        while coming and coming[0].arrival <= now:
            first.append(coming.pop(0))
        for job in [job for job in first if job.held * job.gpus >= rules.threshold]:
            first.remove(job)
            second.append(job)
        if not rules.requeue:
            second.sort(key=lambda job: job.arrival)
        _allot(first + second, nodes, gpus, rules)
        for job in first + second:
            if job.nodes:
                _advance(job, now, rules)
        now += rules.tick
    return jobs


def _allot(queue: list[TickJob], nodes: int, gpus: int, rules: Rules) -> None:
    left = nodes * gpus
    chosen = []
    for job in queue:
        if job.gpus <= left:
            left -= job.gpus
            chosen.append(job)
        else:
            job.nodes = []
    free = [gpus] * nodes
    for job in queue:
        for node in job.nodes:
            free[node] -= 1
    for job in chosen:
        if job.nodes:
            continue
        while len(job.nodes) < job.gpus:
            node = max(range(nodes), key=lambda v: (free[v], -v))
            taken = min(free[node], job.gpus - len(job.nodes))
            job.nodes += [node] * taken
            free[node] -= taken
        job.delay = rules.restart if rules.first or job.starts else 0.0
        job.starts += 1


def _advance(job: TickJob, now: float, rules: Rules) -> None:
    pace = job.seconds(tuple(job.nodes.count(node) for node in sorted(set(job.nodes))))
    paid = min(job.delay, rules.tick)
    job.delay -= paid
    ticked, needed = rules.tick - paid, (job.iterations - job.done) * pace
    if needed <= ticked * (1 + 1e-12):
        job.done, ticked = job.iterations, ticked - needed
        job.completion = now + rules.tick - ticked
        job.held += rules.tick - ticked
    else:
        job.done += ticked / pace
        job.held += rules.tick
    if job.completion is not None:
        job.nodes = []


def mean_jct(jobs: list[TickJob]) -> float:
    """Mean of completion - arrival."""
    return sum((job.completion or math.nan) - job.arrival for job in jobs) / len(jobs)
