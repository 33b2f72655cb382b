"""Random instances of every class that verifiers without optsched know, all their certificates, and their best schedules.

Best schedules are looked for by exhaustion, of at most six jobs: without preemption by `best_placed` where their place
counts, with it by `bounds.preemptive_optimum`, and else by the searches of other tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import brute_force
import numpy as np
from bounds.cases import OBJECTIVES
from bounds.preemptive_optimum import PreemptiveOptimum, Way, mixes_of
from bounds.shared_cases import rich
from bounds.tampering import Document
from bounds.task_cases import task_instance
from bounds.task_optimum import TaskOptimum
from bounds.typed_cases import Speed, typed_instance
from examples import explored
from simulation.elastic_instances import elastic_instance

from optsched.bounds import BOUNDS, Certificate
from optsched.bounds.lp_dual import PriceRow, Prices, price_certificate
from optsched.bounds.modes import modes_for
from optsched.bounds.priced_time import priced_certificate
from optsched.bounds.priced_time_search import PricedTime
from optsched.classes import classes_of
from optsched.errors import InputError, OptschedError, RowErrors
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.speeds.goodput_rates import Goodputs
from optsched.verifier.class_table import CLASSES
from optsched.verifier.judgement import verify
from optsched.verifier.refusal import UNJUDGED, Refused

ROUNDING = 1 + Fraction(1, 10**9)  # seconds are float64 products of work and pace; searches in floats add them up


# --- instances -----------------------------------------------------------------------------------------------------------


def rigid(rng: np.random.Generator) -> Instance:
    """Up to six jobs: one machine or gangs, integers, eighths or floats that fit no grid, on a log's clock or from 0."""
    total, n = int(rng.choice([1, 2, 3, 4, 8])), int(rng.integers(1, 7))
    widest, scale = int(rng.choice([1, max(1, total // 2), total])), float(rng.choice([1.0, 0.125, 0.1, 1 / 3]))
    clock = float(rng.choice([0.0, 0.0, 1.7e9, 1e9 + 0.3]))
    jobs = []
    for j in range(n):
        arrival, length = clock + scale * float(rng.integers(0, 13)), scale * float(rng.integers(1, 9))
        due = None if rng.random() < 0.3 else arrival + scale * float(rng.integers(-5, 20))
        weight = float(rng.choice([1.0, 1.0, 0.0, 2.0, 1 / 3]))
        jobs.append(Job(f"j{j}", arrival, int(rng.integers(1, widest + 1)), length, weight=weight, due=due))
    return Instance(jobs, Cluster.machines(total))


def typed(rng: np.random.Generator) -> Instance:
    """Rates by GPU type, some of them 0; durations; few GPUs, so that all ways to run copies can be gone through."""
    while True:
        instance = typed_instance(rng, most=int(rng.choice([2, 3, 4, 5])), widest=3)
        if instance.cluster.gpus <= 6:
            return instance


def staged(rng: np.random.Generator) -> Instance:
    """Graphs of stages on nodes of different bandwidths, durations, memory and types."""
    while True:
        try:
            return _staged(rng)
        except RowErrors:  # a gang that finds no room
            continue


def _staged(rng: np.random.Generator) -> Instance:
    groups = []
    for gpu in rng.permutation(["V100", "K80", "v100"])[: rng.integers(1, 4)]:
        size, share = int(rng.integers(1, 4)), float(rng.choice([0.5, 1.0, 3.0, 10.0]))
        inside, memory = share * float(rng.choice([1.0, 1.5, 20.0])), [None, 8.0, 4.5][rng.integers(3)]
        groups.append(NodeGroup(size, 1, str(gpu), memory, share * size, inside))
    total, profiles = sum(group.gpus for group in groups), {}
    for name in ("one", "two", "three"):
        count = int(rng.integers(1, 4))
        stages = tuple(
            Stage(int(rng.integers(1, 3)), *_seconds(rng, 2), *_bytes(rng, 2), name=str(rng.choice(["", "s"])))
            for _ in range(count)
        )
        order = rng.permutation(count).tolist()
        pairs = [(order[s], order[u]) for s in range(count) for u in range(s + 1, count) if rng.random() < 0.6]
        edges = [(s, u) if rng.random() < 0.5 else (s, u, *_bytes(rng, 1)) for s, u in pairs]
        few = [None, 1, 2, 5][rng.integers(4)]
        profiles[name] = Profile.of_stages(stages, None if rng.random() < 0.4 else edges, few)
    jobs = []
    for j in range(int(rng.integers(1, 5))):
        name = str(rng.choice([name for name in profiles if profiles[name].gpus <= total] or ["none"]))
        work = {"duration": float(rng.integers(1, 9)), "gpus": int(rng.integers(1, total + 1))}
        if name != "none" and rng.random() < 0.8:
            work = {"iterations": float(rng.integers(1, 6)), "gpus": profiles[name].gpus}
        jobs.append(Job(f"j{j}", profile=None if "duration" in work else name, **_dates(rng), **work))
    contention = Contention(1.0, 0.5) if rng.random() < 0.3 else None
    return Instance(jobs, Cluster(tuple(groups)), profiles=profiles, contention=contention)


def _seconds(rng: np.random.Generator, count: int) -> list[float]:
    return [float(x) for x in rng.choice([0.1, 0.5, 1.0, 3.0], count)]


def _bytes(rng: np.random.Generator, count: int) -> list[float]:
    return [float(x) for x in rng.choice([0.0, 1.0, 7.0, 30.0], count)]


def _dates(rng: np.random.Generator) -> dict[str, float | None]:
    return {
        "arrival": float(rng.choice([0, 0, 0.5, 3])),
        "weight": float(rng.integers(0, 4)),
        "due": [None, float(rng.integers(1, 15))][rng.integers(2)],
        "gpu_memory": [None, 2.0, 6.0][rng.integers(3)],
    }


def shared(rng: np.random.Generator) -> Instance:
    """Kinds of jobs that slow each other down, or never meet; memory; durations, rates by GPU type, or sub-batches."""
    return rich(rng, most=5)


def scaled(rng: np.random.Generator) -> Instance:
    """Jobs on any number of three or four GPUs, and some that are rigid."""
    cluster, seed = str(rng.choice(["1x3", "2x2", "1x2+1x1", "3x1"])), int(rng.integers(10**6))
    instance = elastic_instance(seed, int(rng.integers(1, 7)), cluster=cluster, memory=bool(rng.random() < 0.5))
    jobs = [replace(job, due=[None, float(rng.integers(1, 60))][rng.integers(2)]) for job in instance.jobs]
    return instance.replace(jobs=jobs)


def with_tasks(rng: np.random.Generator) -> Instance:
    """Few GPUs, fewer the more jobs there are, so that all schedules can be gone through; also measured contention."""
    while True:
        instance = task_instance(rng, most=3, iterations=2, measured=bool(rng.random() < 0.2))
        if instance.cluster.gpus + instance.n <= 4:
            return instance


FAMILIES = {"rigid": rigid, "typed": typed, "staged": staged, "shared": shared, "tasks": with_tasks, "scaled": scaled}


def drawn(family: str, rng: np.random.Generator) -> Instance:
    """An instance of a family, on a log's clock or from 0 on."""
    instance, clock = FAMILIES[family](rng), float(rng.choice([0.0, 0.0, 1.7e9]))
    if not clock or instance.epoch:
        return instance
    later = [
        replace(job, arrival=job.arrival + clock, due=None if job.due is None else job.due + clock)
        for job in instance.jobs
    ]
    return instance.replace(jobs=later)


# --- certificates --------------------------------------------------------------------------------------------------------


def random_prices(rng: np.random.Generator, instance: Instance) -> Prices:
    """Prices of cells of time that nobody optimised."""
    rows = []
    for own in (False, True)[: int(rng.integers(1, 3))]:
        width = rng.integers(0, 3, instance.n) if own else instance.gpus
        rows.append(PriceRow(width, rng.integers(0, 9, int(rng.integers(1, 12)))))
    origin = Fraction(float(instance.arrival.min())) - Fraction(int(rng.integers(0, 2)), 3)
    return Prices("any", origin, Fraction(int(rng.integers(1, 5)), 4), int(rng.integers(1, 5)), tuple(rows))


def random_prices_over_time(rng: np.random.Generator, resources: int) -> PricedTime:
    """Of cells as short as a task, and up to several times what would be reasonable; they rise and fall."""
    cells, length = int(rng.integers(1, 40)), float(rng.choice([0.25, 0.5, 1.0, 2.0]))
    scale = rng.choice([0.0, 0.0625, 0.25], (1, resources)) * rng.integers(0, 2, (cells, 1))
    return PricedTime(np.arange(cells + 1) * length, rng.integers(0, 5, (cells, resources)) * scale)


def certificates(
    rng: np.random.Generator, instance: Instance, objectives: tuple[str, ...] = tuple(OBJECTIVES)
) -> Iterator[Certificate]:
    """Every bound of an instance that is known without optsched, of all its classes, and what random prices over time prove.

    Times count from its epoch. priced-gangs, of which each takes seconds, is for the study.
    """
    local = instance.relative
    for schedule_class, objective in product(classes_of(instance), objectives):
        for kind in CLASSES[schedule_class].theorems.get(objective, ()):
            if kind == "priced-gangs" and not explored():
                continue
            if kind == "lp-dual":
                if local.due[np.isfinite(local.due)].min(initial=0.0) >= 0:
                    yield price_certificate(local, objective, schedule_class, random_prices(rng, local))
                continue
            if kind == "priced-time" and (ways := modes_for(local, schedule_class)):
                at = random_prices_over_time(rng, ways[0][0].capacity.size)
                by_chance = priced_certificate(local, objective, schedule_class, at.moments, at.price)
                yield from () if by_chance is None else (by_chance,)
            try:
                certificate = BOUNDS.get(kind).build(local, objective, schedule_class)
            except InputError:  # no equal share of jobs that take no time
                continue
            if certificate is not None:
                yield certificate


# --- the best schedules --------------------------------------------------------------------------------------------------


class Optima:
    """The best schedules of one instance, each looked for once; times count from its epoch."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self._known = instance.relative, dict[tuple[str, str], Fraction]()
        self._preemptive = dict[str, PreemptiveOptimum]()

    def least(self, objective: str, schedule_class: str) -> Fraction:
        """The optimum of the class; of tasks whose all-reduces can meet the best schedule found, which may be above it."""
        key = objective, schedule_class
        if key not in self._known:
            if schedule_class == "task-sharing":
                self._known[key] = TaskOptimum(self.instance, objective).value
            elif schedule_class != "gang-nonpreemptive":
                self._known[key] = self._changing(schedule_class).value(objective)
            elif self.instance.unrestricted and not self.instance.profiled.any():
                self._known[key] = brute_force.optimum(self.instance, objective)
            else:
                self._known[key] = best_placed(self.instance, objective)
        return self._known[key]

    def reaches(self, value: Fraction, objective: str, schedule_class: str) -> bool:
        """Is a bound at most the optimum, to a billionth of it and, for floats, of what the longest job alone can cost?"""
        best, slack = self.least(objective, schedule_class), Fraction(0)
        if schedule_class in self._preemptive:
            longest = Fraction(1 / self._preemptive[schedule_class].second)
            slack = longest * Fraction(max(1.0, float(self.instance.weight.sum())))
        return value <= best + (best + slack) * (ROUNDING - 1)

    def _changing(self, schedule_class: str) -> PreemptiveOptimum:
        # the search among schedules that may stop and move jobs
        if schedule_class not in self._preemptive:
            instance, elastic = self.instance, schedule_class == "elastic"
            mixes = mixes_of(instance, schedule_class, lambda j: ways(instance, j, elastic=elastic))
            self._preemptive[schedule_class] = PreemptiveOptimum(instance, mixes)
        return self._preemptive[schedule_class]


def ways(instance: Instance, j: int, *, elastic: bool) -> list[Way]:
    """Every (GPUs a node, seconds) in which job j can run; ``elastic``: on any number of GPUs."""
    if instance.profiles:
        return brute_force.ways(instance, j)
    room, suits = instance.cluster.node_gpus.tolist(), instance.eligible(j)
    found, work = list[Way](), Fraction(float(instance.work[j]))
    goodput = Goodputs(instance).of(j) if elastic else None
    for counts in product(*(range(size + 1 if ok else 1) for size, ok in zip(room, suits, strict=True))):
        if goodput is not None:
            rate = goodput.rate([count for count in counts if count]) if any(counts) else 0.0
            found += [(counts, work / Fraction(rate))] if rate > 0 else []
        elif sum(counts) == instance.gpus[j]:
            pace = _pace(instance, j, tuple(v for v, count in enumerate(counts) for _ in range(count)))
            found += [(counts, work * pace)] if pace is not None else []
    return found


def _pace(instance: Instance, j: int, nodes: tuple[int, ...]) -> Fraction | None:
    # seconds of a unit of work of a gang; None: it may not run there
    if j in instance.jobs_at("scalings"):
        return Fraction(instance.speeds_of(j).pace(j, nodes))
    return Speed(instance).pace(j, nodes)


def best_placed(instance: Instance, objective: str) -> Fraction:
    """The best schedule without preemption, the fastest way to run first."""
    own = [sorted(ways(instance, j, elastic=False), key=lambda way: way[1]) for j in range(instance.n)]
    return brute_force.placed_optimum(instance, objective, own)


# --- what the verifiers that need nothing of optsched say of a certificate, and what optsched does -----------------------


def written(document: Any) -> Document:
    """As a file gives it back."""
    return dict(json.loads(json.dumps(document)))


def exit_code(doc: Document, instance: Instance | Document) -> int:
    """Return the exit code of the verifier for the document of a certificate."""
    if doc["format"] != "optsched-certificate/1":
        return 2
    try:
        verify(written(doc), written(instance.to_json() if isinstance(instance, Instance) else instance))
    except Refused as refused:
        return 2 if refused.rule == UNJUDGED else 1
    return 0


def holds_for_optsched(doc: Document, instance: Instance) -> bool:
    try:
        Certificate.of_document(doc, "c.json").verify(instance)
    except OptschedError:
        return False
    return True
