"""Goodput in arrays, compiled and interpreted, next to its plain form: the same schedules, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import studied
from frozen.runs import digest_of
from simulation.elastic_instances import elastic_instance

from optsched.compiled import without_interpreting, without_machine_code
from optsched.io.traces.generate import generate
from optsched.policies.goodput import Goodput
from optsched.policies.goodput_allocation import best_counts, fewest_nodes
from optsched.policies.goodput_deals import GoodputDeals
from optsched.policies.goodput_numbers import best_numbers
from optsched.policies.goodput_places import place_gangs
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance
from policies.goodput_plain import PlainGoodput

PARAMETERS: list[dict[str, Any]] = [
    {},
    {"p": 0.0},
    {"p": 1.0, "restart": 0.0},
    {"round": 20.0, "restart": 5.0},
    {"p": -10.0},
    {"p": 0.5},
    {"p": -3.3, "restart": 100.0},
]


def random_instance(seed: int) -> Instance:
    """Elastic jobs; jobs with durations, more and fewer than the GPUs hold; GPU types and stage graphs."""
    if seed % 9 == 0:
        return generate("sharing-cluster", seed, jobs=12 + seed % 5, nodes=2 + seed % 4, load=1.0 + seed % 2)
    if seed % 3 == 0:
        return elastic_instance(seed)
    if seed % 3 == 1:
        return generate("philly-like", seed, jobs=14, cluster="2x4" if seed % 2 else "4x8")
    return generate("all-four", seed, jobs=8)


@pytest.mark.parametrize("seed", [*range(6), *(studied(k) for k in range(100, 700))])
def test_rounds_are_those_of_the_plain_form(seed: int) -> None:
    instance, parameters = random_instance(seed), PARAMETERS[seed % len(PARAMETERS)]
    if seed % 3 == 1:
        parameters = {**parameters, "round": 300.0}
    made, plain = simulate(instance, Goodput(**parameters)), simulate(instance, PlainGoodput(**parameters))
    assert digest_of(made.schedule) == digest_of(plain.schedule)
    assert made.events == plain.events


def test_rounds_in_which_all_jobs_keep_their_gpus_compute_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, planned = list[float](), list[float]()
    decide, plan = GoodputDeals.decide, GoodputDeals._plan

    def asked_again(deals: GoodputDeals) -> Any:
        asked.append(deals._view.now)
        return decide(deals)

    def planned_again(deals: GoodputDeals, now: float) -> Any:
        planned.append(now)
        return plan(deals, now)

    monkeypatch.setattr(GoodputDeals, "decide", asked_again)
    monkeypatch.setattr(GoodputDeals, "_plan", planned_again)
    simulate(generate("sharing-cluster", 1, jobs=20, nodes=4, load=0.8), "goodput")
    assert len(asked) > 3 * len(planned)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [*range(12), *(studied(k) for k in range(100, 500))])
def test_compiled_rounds_are_the_interpreted_ones(seed: int) -> None:
    instance = random_instance(3 * seed + 3)
    with without_machine_code():
        interpreted = simulate(instance, Goodput())
    with without_interpreting():
        assert digest_of(simulate(instance, Goodput()).schedule) == digest_of(interpreted.schedule)


def numbers_of(rows: list[Any], gpus: int, states: int = 1) -> list[int]:
    """Numbers of GPUs by the compiled knapsack."""
    numbers = [np.flatnonzero(np.isfinite(row)) for row in rows]
    values = np.concatenate([row[can] for row, can in zip(rows, numbers, strict=True)])
    first = np.concatenate([[0], np.cumsum([can.size for can in numbers])]).astype(np.int64)
    size, picks = first[-1] + 2, np.zeros(len(rows), dtype=np.int64)
    scratch = np.full((2, gpus + 1), np.nan), np.zeros((9, size), dtype=np.int64), np.zeros((3, size))
    needed = states + 1
    while needed > states:
        states = needed
        chosen = np.zeros(states, dtype=np.int64)
        needed = best_numbers(np.concatenate(numbers), values, first, *scratch, chosen, picks)
    return [int(can[pick - begin]) for can, pick, begin in zip(numbers, picks, first, strict=False)]


def random_values(rng: np.random.Generator, jobs: int, gpus: int) -> list[Any]:
    """Values of jobs of few kinds, so that many choices tie: any, rising, or as of one of the power means."""
    kinds = [np.sort(rng.random(gpus + 1)) * (np.arange(gpus + 1) > 0) for _ in range(2)]
    shape, rows = int(rng.integers(6)), []
    for j in range(jobs):
        rate = kinds[j % 2] * rng.choice([1.0, 1.0, 0.9])
        row = [
            lambda _: rng.integers(0, 5, gpus + 1) * 1.0,
            lambda _: rng.normal(size=gpus + 1).cumsum(),
            lambda rate: rate,
            lambda rate: np.log(rate + 1e-3),
            lambda rate: -1 / (rate + 1e-3),
            lambda rate: -((rate + 1e-3) ** -10),
        ][shape](rate)
        row[rng.random(gpus + 1) < rng.choice([0.0, 0.4])] = -np.inf
        row[0] = min(row[np.isfinite(row)].min(initial=0.0), 0.0)
        rows.append(row)
    return rows


@pytest.mark.parametrize("seed", [*range(40), *(studied(k) for k in range(100, 3000))])
def test_numbers_are_those_of_the_whole_knapsack(seed: int) -> None:
    rng = np.random.default_rng([seed, 61])
    gpus, jobs = int(rng.integers(1, 40)), int(rng.integers(1, 10))
    rows = random_values(rng, jobs, gpus)
    assert numbers_of(rows, gpus) == best_counts(rows, gpus)


@pytest.mark.parametrize("seed", range(20))
def test_places_are_those_of_the_readable_step(seed: int) -> None:
    rng = np.random.default_rng([seed, 58])
    jobs = int(rng.integers(1, 8))
    counts = rng.integers(1, 12, jobs)
    free, eligible = rng.integers(0, 5, 6), rng.random((2, 6)) < 0.7
    row, order = rng.integers(0, 2, jobs), rng.permutation(jobs)
    left, node, count = free.copy(), *np.zeros((2, 24), dtype=np.int64)
    begins, scratch = np.zeros(jobs + 1, dtype=np.int64), np.zeros((3, 6), dtype=np.int64)
    place_gangs(order, counts, row, eligible, left, scratch, node, count, begins)
    for i, j in enumerate(order.tolist()):
        expected = fewest_nodes(int(counts[j]), np.where(eligible[row[j]], free, 0))
        part = slice(begins[i], begins[i + 1])
        assert tuple(zip(node[part].tolist(), count[part].tolist(), strict=True)) == expected
        for m, taken in expected:
            free[m] -= taken
    assert left.tolist() == free.tolist()
