"""Compiled steps of `unified` for rigid gangs: the schedules and knapsacks of the readable form, bit for bit."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from examples import few

from optsched.compiled import without_interpreting
from optsched.policies.goodput_allocation import best_counts
from optsched.policies.simulate import simulate
from optsched.policies.unified import Unified
from optsched.policies.unified_gang_deals import GANG, fill_knapsack
from optsched.policies.unified_gang_places import may_improve
from optsched.policies.unified_places import exchange
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.run import Run

MEMORY = Cluster((NodeGroup(4, gpu_memory=8.0), NodeGroup(2, count=3, gpu_memory=16.0)))
CLUSTERS: list[str | Cluster] = ["1x4", "2x4", "3x2+1x8", "6x3", "8x1", MEMORY]
TYPED = ["2x4:V100+2x4:K80", "1x8:V100+4x2:K80+2x4:P100", "8x1:V100+8x1:K80"]
PROFILES = ("a", "b", "c")


class Readable(Unified):
    """The readable form."""

    compiled = False


class Compiled(Unified):
    """The compiled form; ``readable`` counts the events at which the other one decided."""

    readable = 0

    def _deal(self, view: Any, jobs: list[int]) -> Any:
        self.readable += 1
        return super()._deal(view, jobs)


def random_jobs(rng: np.random.Generator, gpus: int, profiles: tuple[str, ...], widest: int) -> list[Job]:
    whole, load, now = bool(rng.random() < 0.4), float(rng.choice([0.4, 1.0, 4.0])), 0.0
    weights = ([1.0], [1.0, 2.0, 3.0], [0.0, 1.0, 1e-12], rng.uniform(0.1, 3, 9))[int(rng.integers(4))]
    jobs = []
    for j in range(int(rng.integers(5, 30))):
        gang = min(int(rng.choice([1, 1, 2, 3, 4, 8])), widest)
        length = 60.0 * int(rng.integers(1, 15)) if whole else float(np.exp(rng.uniform(1, 8)))
        gap = float(rng.integers(4)) * 60 if whole else float(rng.exponential(length * gang / gpus / load))
        now += gap if rng.random() < 0.8 else 0.0
        fields: dict[str, Any] = {"weight": float(rng.choice(weights))}
        if rng.random() < 0.2:
            fields["restart"] = float(rng.choice([0, 10, 500]))
        if profiles and rng.random() < 0.8:
            jobs.append(
                Job(f"j{j}", now, gang, iterations=int(length) + 1, profile=str(rng.choice(profiles)), **fields)
            )
        else:
            jobs.append(Job(f"j{j}", now, gang, duration=length, **fields))
    return jobs


def random_instance(seed: int) -> Instance:
    """Jobs with durations; every third time of a table for several types, every fifth time with a job that is resized."""
    rng = np.random.default_rng([seed, 54])
    if seed % 3 == 0:
        text = TYPED[seed // 3 % len(TYPED)]
        rates: dict[tuple[str, str, int], Throughput] = {}
        for name in PROFILES:
            for gpu in ("V100", "K80", "P100"):
                for gang in (1, 2, 3, 4, 8):
                    rate = float(rng.integers(1, 4)) if seed % 2 else float(rng.uniform(0.2, 3))
                    rates[name, gpu, gang] = Throughput(rate, rate * float(rng.choice([0.5, 0.8, 1.0])))
        return Instance(random_jobs(rng, 16, PROFILES, 8), text, throughputs=Throughputs(rates))
    cluster = CLUSTERS[seed % len(CLUSTERS)]
    jobs = random_jobs(rng, 8, (), 4)
    if cluster is MEMORY:
        fields: list[dict[str, Any]] = [
            {"gpu_memory": float(rng.choice([4, 12]))} if job.gpus == 1 else {} for job in jobs
        ]
        jobs = [
            Job(job.id, job.arrival, job.gpus, duration=job.duration, weight=job.weight, **of)
            for job, of in zip(jobs, fields, strict=True)
        ]
    if seed % 5 == 1:
        jobs.append(Job("wide", jobs[-1].arrival, 1, iterations=500, profile="good", batch_size=840))
        return Instance(jobs, cluster, scalings={"good": Scaling(0.0, 0.1)})
    return Instance(jobs, cluster)


def segments(run: Run) -> list[Any]:
    return [(s.job, s.start, s.end, s.work, s.gpus) for s in run.schedule.segments()]


def require_the_same(seed: int) -> None:
    instance, rng = random_instance(seed), np.random.default_rng([seed, 55])
    given: dict[str, Any] = {
        "restart": float(rng.choice([0, 5, 300])),
        "predictor": str(rng.choice(["perfect", "shrinkage"])),
        "resize": bool(rng.random() < 0.5),
    }
    compiled = Compiled(**given)
    runs = [simulate(instance, policy) for policy in (compiled, Readable(**given))]
    assert segments(runs[0]) == segments(runs[1])
    assert runs[0].preemptions == runs[1].preemptions
    assert (compiled.readable > 0) == any(job.profile == "good" for job in instance.jobs)


@pytest.mark.parametrize("seed", few(range(30), 12))
@pytest.mark.parametrize("interpreted", [True, pytest.param(False, marks=pytest.mark.compiled)])
def test_it_makes_the_schedule_of_the_readable_form(seed: int, interpreted: bool) -> None:
    with contextlib.nullcontext() if interpreted else without_interpreting():
        require_the_same(seed)


@pytest.mark.study
@pytest.mark.parametrize("block", range(10))
def test_it_makes_the_schedule_of_the_readable_form_on_many_instances(block: int) -> None:
    with without_interpreting():
        for seed in range(1000 + 200 * block, 1200 + 200 * block):
            require_the_same(seed)


@pytest.mark.parametrize("seed", range(40))
def test_its_knapsack_is_that_of_the_dynamic_program_also_where_many_are_optimal(seed: int) -> None:
    rng = np.random.default_rng([seed, 56])
    jobs, room = int(rng.integers(2, 25)), int(rng.integers(1, 20))
    gpus = np.minimum(rng.integers(1, 6, jobs), room)
    value = rng.integers(0, int(rng.choice([3, 2**30])), jobs).astype(np.float64)
    if gpus.sum() <= room:
        gpus[0] = room
    order, chosen = np.argsort(-value / gpus, kind="stable"), np.zeros(jobs, dtype=np.int64)
    fill_knapsack(value, gpus, room, order, np.zeros(room + 1), np.zeros((jobs, room + 1), dtype=np.bool_), chosen)
    rows = [np.full(room + 1, -np.inf) for _ in range(jobs)]
    for row, g, worth in zip(rows, gpus.tolist(), value.tolist(), strict=True):
        row[0], row[g] = 0.0, worth
    assert (chosen * gpus).tolist() == best_counts(rows, room)


@pytest.mark.parametrize("seed", range(40))
def test_types_are_exchanged_wherever_that_helps(seed: int) -> None:
    rng = np.random.default_rng([seed, 57])
    m, types = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    gangs, order = np.zeros(m, dtype=GANG), np.tile(np.arange(m), (4, 1))
    gangs["gpus"], gangs["type"] = rng.integers(1, 4, m), rng.integers(0, types, m)
    value, stock = rng.integers(1, 5, (m, types)).astype(np.float64), rng.integers(0, 4, types)
    kind, left = gangs["type"].copy(), stock.copy()
    exchange(value, gangs["gpus"], kind, left)
    changed = bool((kind != gangs["type"]).any())
    assert not changed or may_improve(gangs, order, value, stock, np.zeros((types, types)))
