"""The baselines of A-SRPT (spjf, spwf, wcs-*) against the reference simulator, on durations and on profiles."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from examples import few
from simulation.reference import Counts, Replay, Rule, Task, first_fit

from optsched.io.traces.generate import generate
from optsched.policies import POLICIES
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.speeds.duration import paces
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import iteration_time
from policies.test_a_srpt import started

Key = Callable[[float, float, float], float]  # (arrival, gang, predicted seconds at alpha_min)

RULES: dict[str, tuple[Key, bool]] = {
    "spjf": (lambda r, g, p: p, False),
    "spwf": (lambda r, g, p: g * p, False),
    "wcs-duration": (lambda r, g, p: p, True),
    "wcs-workload": (lambda r, g, p: g * p, True),
    "wcs-subtime": (lambda r, g, p: r, True),
}


def replayed(instance: Instance, key: list[float], conserving: bool) -> list[float]:
    """Starts on first-fit GPUs; every placement of these jobs takes whole seconds."""
    names, work = instance.table["profile"].to_list(), [Fraction(units) for units in instance.work.tolist()]
    network = Network.of(instance.cluster) if instance.profiled.any() else None

    def pace(held: dict[int, Counts]) -> dict[int, Fraction]:
        if network is None:
            return dict.fromkeys(held, Fraction(1))
        nodes = {j: [m for m, count in counts.items() for _ in range(count)] for j, counts in held.items()}
        alpha = {j: iteration_time(instance.profiles[names[j]], network, on) for j, on in nodes.items()}
        return {j: round(work[j] * Fraction(alpha[j])) / work[j] for j in held}

    columns = zip(map(Fraction, instance.arrival.tolist()), instance.gpus.tolist(), work, key, strict=True)
    everywhere = [True] * instance.cluster.node_count
    tasks = [Task(j, r, gang, units, everywhere, own) for j, (r, gang, units, own) in enumerate(columns)]
    rule = Rule(key=key, slope=[Fraction(0)] * instance.n, skip=conserving)
    return [task.segments[0][0] for task in Replay(tasks, instance.cluster.node_gpus, rule, first_fit, pace).tasks]


def small(seed: int) -> Instance:
    rng = random.Random(seed)
    if seed % 2:
        return generate("ddl-small", seed, jobs=10, nodes=rng.choice([2, 3]), gpus=rng.choice([2, 4]), span=0.5)
    return generate("a-srpt-small", seed, jobs=12, gpus=rng.choice([2, 4, 8]), latest=rng.choice([0, 8, 20]))


@pytest.mark.parametrize("error", [1, 3])
@pytest.mark.parametrize("name", RULES)
def test_every_start_is_that_of_the_reference(name: str, error: int) -> None:
    rule, conserving = RULES[name]
    for seed in few(range(30), 10):
        instance = small(seed)
        run = simulate(instance, f"{name}:predictor=noisy/error={error}/seed={seed}+first-fit")
        assert run.predicted is not None
        seconds = run.predicted * paces(instance)[0]
        key = [float(f"{rule(*row):.10e}") for row in zip(instance.arrival, instance.gpus, seconds, strict=True)]
        assert started(run) == pytest.approx(replayed(instance, key, conserving), rel=1e-12)


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


def test_they_say_that_they_rest_on_predictions() -> None:
    for name in RULES:
        policy = POLICIES.get(name)()
        assert str(policy.knowledge) == "predicted"
        assert policy.default_placement == "heavy-edge"
        assert policy.predictor == "perfect"
