"""Tiresias in the Pollux artifact as its public description has it, once more and in small: plain Python, tick by tick.

Nothing of optsched is used. At the end of every tick: jobs that ended leave, jobs that came stand behind the first queue,
running jobs whose service (time held x GPUs) has reached the threshold go behind the second. Then both queues are walked:
a job runs where its gang is no larger than the number of GPUs that are left, else it waits, and loses what it holds. Jobs
that keep running keep their GPUs; then the new ones, in order, fill the node with most free GPUs, then the next. Every
change of GPUs, the first start too, costs a restart.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from scipy.interpolate import LinearNDInterpolator

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


# -- jobs of a Pollux workload, straight from the files -------------------------------------------------------------------


# the largest sub-batch of every application
MOST_LOCAL = {"bert": 12, "cifar10": 1024, "deepspeech2": 80, "imagenet": 200, "ncf": 32768, "yolov3": 8}


@cache
def steps_of(folder: Path, application: str) -> Steps:
    """Read and triangulated once."""
    return Steps(folder, application)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


class Steps:
    """Measured step and sync seconds of an application."""

    def __init__(self, folder: Path, application: str) -> None:
        self.placed: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        cells = defaultdict(list)
        for row in _rows(folder / f"traces__{application}__placements.csv"):
            name, local = row["placement"], float(row["local_bsz"])
            times = float(row["step_time"]), float(row["sync_time"])
            self.placed[name].append((local, *times))
            cells[len(name), sum(map(int, name)), local].append(times)
        points = [(*key, *np.mean(cells[key], axis=0)) for key in sorted(cells)]
        fields = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
        points += [
            tuple(float(row[f]) for f in fields) for row in _rows(folder / f"traces__{application}__scalability.csv")
        ]
        grid = np.array(points)
        self.between = LinearNDInterpolator(grid[:, :3], grid[:, 3:])

    @cache  # noqa: B019  (a few objects, for one test)
    def of(self, placement: tuple[int, ...], local: int) -> tuple[float, float]:
        text = "".join(map(str, placement))
        name = min(text[k:] + text[:k] for k in range(len(text)))
        if name in self.placed:
            grid = np.array(self.placed[name])
            if not grid[0, 0] <= local <= grid[-1, 0]:
                return math.nan, math.nan  # the artifact stops here
            return float(np.interp(local, grid[:, 0], grid[:, 1])), float(np.interp(local, grid[:, 0], grid[:, 2]))
        step, sync = self.between([min(len(placement), 16), sum(placement), local])[0]
        return float(step), float(sync)


def jobs_of(folder: Path, workload: Path) -> list[TickJob]:
    """The jobs of a workload; a gang that has more samples than a GPU takes accumulates gradients."""
    iterations: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in _rows(folder / "iterations.csv"):
        iterations[row["application"]].append((float(row["batch_size"]), float(row["iterations"])))
    steps = {name: steps_of(folder, name) for name in MOST_LOCAL}
    jobs = []
    for row in _rows(workload):
        name, gpus, batch = row["application"], int(row["num_replicas"]), int(row["batch_size"])
        local = math.ceil(batch / gpus)
        parts = math.ceil(local / MOST_LOCAL[name])
        size = math.ceil(local / parts)
        work = float(np.interp(batch, *zip(*sorted(iterations[name]), strict=True)))

        def seconds(placement: tuple[int, ...], name: str = name, size: int = size, parts: int = parts) -> float:
            step, sync = steps[name].of(placement, size)
            return step + (parts - 1) * (step - sync)

        jobs.append(TickJob(row["name"], float(row["time"]), gpus, work, seconds))
    return jobs
