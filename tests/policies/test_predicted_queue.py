"""The baselines of A-SRPT (spjf, spwf, wcs-*) against a naive simulation of a sorted queue, on durations and on profiles."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from optsched.io.traces.generate import generate
from optsched.policies import POLICIES
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run
from optsched.speeds.duration import paces
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import iteration_time

Key = Callable[[float, float, float], float]  # (arrival, gang, predicted seconds at alpha_min)

RULES: dict[str, tuple[Key, bool]] = {
    "spjf": (lambda r, g, p: p, False),
    "spwf": (lambda r, g, p: g * p, False),
    "wcs-duration": (lambda r, g, p: p, True),
    "wcs-workload": (lambda r, g, p: g * p, True),
    "wcs-subtime": (lambda r, g, p: r, True),
}


def naive(instance: Instance, key: list[float], conserving: bool) -> list[float]:
    """Starts on first-fit GPUs: at every arrival and completion the sorted queue is scanned from its head."""
    size = instance.cluster.node_gpus.tolist()
    network = Network.of(instance.cluster) if instance.profiled.any() else None
    names = instance.table["profile"].to_list()
    start: dict[int, float] = {}
    held: dict[int, tuple[float, list[int]]] = {}  # job -> end, nodes
    events = sorted(set(instance.arrival.tolist()))
    while events:
        now = events.pop(0)
        held = {j: (end, nodes) for j, (end, nodes) in held.items() if end > now}
        queue = [j for j in range(instance.n) if instance.arrival[j] <= now and j not in start]
        for j in sorted(queue, key=lambda k: (key[k], k)):
            free = list(size)
            for _, nodes in held.values():
                for node in nodes:
                    free[node] -= 1
            if sum(free) < instance.gpus[j]:
                if conserving:
                    continue
                break
            nodes = [m for m, count in enumerate(free) for _ in range(count)][: int(instance.gpus[j])]
            pace = 1.0 if network is None else iteration_time(instance.profiles[names[j]], network, nodes)
            start[j], held[j] = now, (now + float(instance.work[j]) * pace, nodes)
            events = sorted({*events, held[j][0]})
    return [start[j] for j in range(instance.n)]


def started(run: Run) -> list[float]:
    start = np.empty(run.instance.n)
    start[run.schedule.job] = run.schedule.start
    return start.tolist()


def small(seed: int) -> Instance:
    rng = random.Random(seed)
    if seed % 2:
        return generate("ddl-small", seed, jobs=10, nodes=rng.choice([2, 3]), gpus=rng.choice([2, 4]), span=0.5)
    return generate("a-srpt-small", seed, jobs=12, gpus=rng.choice([2, 4, 8]), latest=rng.choice([0, 8, 20]))


@pytest.mark.parametrize("error", [1, 3])
@pytest.mark.parametrize("name", RULES)
def test_every_start_is_that_of_a_naive_simulation(name: str, error: int) -> None:
    rule, conserving = RULES[name]
    for seed in range(30):
        instance = small(seed)
        run = simulate(instance, f"{name}:predictor=noisy/error={error}/seed={seed}+first-fit")
        assert run.predicted is not None
        seconds = run.predicted * paces(instance)[0]
        key = [float(f"{rule(*row):.10e}") for row in zip(instance.arrival, instance.gpus, seconds, strict=True)]
        assert started(run) == pytest.approx(naive(instance, key, conserving), rel=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_the_head_blocks_or_it_does_not(name: str) -> None:
    # One of two GPUs is free; first in every order is a job that needs both.
    jobs = [
        Job("runs", gpus=1, duration=10),
        Job("head", gpus=2, duration=1, arrival=1),
        Job("next", gpus=1, duration=3, arrival=1),
    ]
    run = simulate(Instance(jobs, "1x2"), name)
    assert started(run) == ([0, 10, 1] if RULES[name][1] else [0, 10, 11])


def test_the_orders_differ() -> None:
    jobs = [
        Job("busy", gpus=4, duration=1),
        Job("early", gpus=4, duration=10, arrival=0.25),
        Job("wide", gpus=4, duration=2, arrival=0.5),
        Job("narrow", gpus=2, duration=3, arrival=0.75),
        Job("long", gpus=4, duration=20, arrival=0.75),
    ]
    instance = Instance(jobs, "1x4")
    order = {name: np.argsort(started(simulate(instance, name)), kind="stable").tolist() for name in RULES}
    assert order["spjf"] == [0, 2, 3, 1, 4]
    assert order["spwf"] == [0, 3, 2, 1, 4]
    assert order["wcs-duration"] == order["spjf"]
    assert order["wcs-workload"] == order["spwf"]
    assert order["wcs-subtime"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", [name for name, (_, conserving) in RULES.items() if conserving])
def test_no_gpus_stand_idle_beside_a_job_that_fits(name: str) -> None:
    for seed in range(20):
        instance = generate("a-srpt-small", seed, jobs=15, gpus=8, latest=20)
        run = simulate(instance, name)
        start, end = np.array(started(run)), run.schedule.completion
        moments = np.unique(np.concatenate([start, end]))
        for now, _ in pairwise(moments.tolist()):
            used = instance.gpus[(start <= now) & (end > now)].sum()
            waits = (instance.arrival <= now) & (start > now)
            assert (instance.gpus[waits] > instance.cluster.gpus - used).all()


def test_they_say_that_they_rest_on_predictions() -> None:
    for name in RULES:
        policy = POLICIES.get(name)()
        assert str(policy.knowledge) == "predicted"
        assert policy.default_placement == "heavy-edge"
        assert policy.predictor == "perfect"
