"""Prices of running gangs over time: below every schedule, never less than prices by GPU, closing where gangs do not fit."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from brute_force import optimum, preemptive_optimum
from examples import studied

import optsched as osd
from bounds import cases, typed_cases
from bounds.cases import SUMS, instance_of, queue, random_gangs
from bounds.typed_cases import objective_value
from optsched.bounds import Certificate, priced_gangs
from optsched.bounds.modes import modes_of_gangs
from optsched.bounds.priced_gangs import GangsToPrice, PricedGangs, proof_of
from optsched.bounds.priced_time import priced_certificate
from optsched.bounds.sum_costs import sum_costs
from optsched.problem.instance import Instance
from optsched.verifier.gang_knapsack import most_together

FLOW, KIND = "total_flow_time", "priced-gangs"
built = partial(cases.built, KIND)
ROUNDING = 1 + Fraction(1, 10**9)


@pytest.fixture(autouse=True)
def a_short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MOST_CELLS", 150), ("STEPS", 20), ("LAST_STEPS", 100), ("FIRST_STEPS", 30)):
        monkeypatch.setattr(priced_gangs, name, value)


# --- below every schedule ------------------------------------------------------------------------------------------------


def exhaustive(seed: int, count: int) -> tuple[int, int]:
    """(instances, those on which this is more than all other bounds)."""
    rng, checked, better = np.random.default_rng(seed), 0, 0
    while checked < count:
        instance, objective = random_gangs(rng), SUMS[checked % len(SUMS)]
        certificate = built(instance, objective, ("gang", "gang-nonpreemptive")[checked % 2])
        checked += 1
        if certificate is None:
            continue
        assert certificate.value <= optimum(instance, objective) * ROUNDING, instance.to_json()
        if instance.n <= 4 and float(instance.duration.sum()) <= 20:
            assert certificate.value <= preemptive_optimum(instance, objective) * ROUNDING, instance.to_json()
        better += certificate.value > osd.bound(instance, objective, "gang").value
    return checked, better


@pytest.mark.compiled
@pytest.mark.parametrize(("seed", "count"), [(0, 16), studied(1, 200)])
def test_never_above_the_optimum(seed: int, count: int) -> None:
    checked, better = exhaustive(seed, count)
    assert (checked, better > 0) == (count, True)


def typed_below(seed: int, count: int) -> int:
    rng, checked = np.random.default_rng(seed), 0
    for k in range(count):
        instance, objective = typed_cases.typed_instance(rng), SUMS[k % len(SUMS)]
        certificate = built(instance, objective)
        for _ in range(4 if certificate else 0):
            assert certificate is not None
            value = objective_value(instance, objective, typed_cases.random_completions(instance, rng))
            assert certificate.value <= value * ROUNDING, instance.to_json()
            checked += 1
    return checked


@pytest.mark.compiled
@pytest.mark.parametrize(("seed", "count"), [(0, 12), studied(1, 200)])
def test_never_above_a_schedule_on_gpus_of_several_types(seed: int, count: int) -> None:
    assert typed_below(seed, count) >= 1.6 * count


@pytest.mark.compiled
def test_any_prices_are_below_the_optimum() -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        instance = random_gangs(rng)
        gangs = GangsToPrice(sum_costs(instance, FLOW), modes_of_gangs(instance))
        found = priced_gangs.best_priced_gangs(gangs)
        if found is None:
            continue
        shaken = replace(found, own=found.own * rng.uniform(0, 2, found.own.size), price=found.price + rng.uniform())
        proof = proof_of(gangs, shaken)
        assert proof is not None
        certificate = Certificate(instance.digest, FLOW, "gang", KIND, *proof)
        certificate.verify(instance)
        assert certificate.value <= optimum(instance, FLOW)


def test_the_knapsack_by_all_sets() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        total = int(rng.integers(1, 20))
        gangs = [(int(rng.integers(1, total + 1)), int(rng.integers(1, 30))) for _ in range(rng.integers(0, 8))]
        sets = itertools.chain.from_iterable(itertools.combinations(gangs, k) for k in range(len(gangs) + 1))
        assert most_together(gangs, total) == max(sum(p for _, p in s) for s in sets if sum(g for g, _ in s) <= total)


# --- what it is worth ----------------------------------------------------------------------------------------------------


@pytest.mark.compiled
def test_gangs_that_do_not_fit_together_run_one_by_one() -> None:
    # 2 GPUs each of 3: prices by GPU let three halves of a job run at once
    instance = instance_of([(0.0, 2, 1.0)] * 4, 3)
    certificate = built(instance, FLOW)
    assert 9.7 < certificate.value <= 1 + 2 + 3 + 4


@pytest.mark.compiled
def test_never_less_than_prices_by_gpu() -> None:
    rng = np.random.default_rng(4)
    for seed in range(4):
        jobs = [(float(rng.integers(0, 9)), int(rng.choice([1, 2, 3])), float(rng.integers(1, 7))) for _ in range(20)]
        instance = instance_of(jobs, 5)
        gangs = GangsToPrice(sum_costs(instance, FLOW), modes_of_gangs(instance))
        moments, price = np.arange(65.0), rng.uniform(0, 1, (64, 1)) * (seed + 1) / 8
        by_gpu = priced_certificate(instance, FLOW, "gang", moments, price)
        first = instance.arrival.astype(np.int64)
        start = np.concatenate([[0], np.cumsum(64 - first)])
        at = PricedGangs(moments, 0 * price, first, start, np.zeros(start[-1]))
        by_job = proof_of(gangs, replace(at, own=price[at.cell, 0] * gangs.gang[at.job]))
        assert by_job[0] >= by_gpu.value - Fraction(1, 10**4)


@pytest.mark.release
@pytest.mark.parametrize("name", ["queue", studied("cluster-week")])
def test_what_is_open_of_srtf_is_halved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    instance = queue(24) if name == "queue" else osd.load(name)
    before, after = osd.bound(instance, FLOW), built(instance, FLOW)
    assert after.value > (float(before.value) + osd.simulate(instance, "srtf").value(FLOW)) / 2


@pytest.mark.compiled
def test_only_where_it_is_asked_for() -> None:
    instance = queue()
    assert osd.bound(instance, FLOW).kind != KIND
    assert osd.bound(instance, FLOW, strong=True).kind == KIND
    report = osd.evaluate(instance, "srtf", FLOW, strong=True)
    assert report.certificate is not None
    assert report.certificate.kind == KIND
    assert osd.compare(instance, "srtf", FLOW, strong=True)["bound_kind"].to_list() == [KIND]


@pytest.mark.compiled
def test_cells_do_not_become_too_short_for_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    # more gangs than fit want to run at very few moments only: cells there are halved, for as long as that is allowed
    for name, value in (("MOST_CELLS", 4096), ("STEPS", 2), ("LAST_STEPS", 2)):
        monkeypatch.setattr(priced_gangs, name, value)
    rows = [(1.0, 3, 3.0), (8.0, 2, 8.0), (14.0, 4, 5.0), (11.0, 1, 5.0), (19.0, 1, 8.0), (19.0, 4, 1.0)]
    certificate = built(instance_of(rows, 8), "total_completion_time")
    moments = certificate.data["moments"]
    assert min(b - a for a, b in itertools.pairwise(moments)) > (moments[-1] - moments[0]) >> 18


@pytest.mark.compiled
def test_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(Instance([], "1x2"), FLOW) is None
    monkeypatch.setattr(priced_gangs, "MOST_JOBS", 3)
    assert built(instance_of([(0.0, 2, 1.0)] * 4, 3), FLOW) is None


@pytest.mark.compiled
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e5])
def test_times_of_any_size(scale: float) -> None:
    instance = queue(30, scale)
    certificate = built(instance, FLOW)
    assert certificate.value > osd.bound(instance, FLOW).value
