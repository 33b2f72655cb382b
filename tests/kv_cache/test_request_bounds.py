"""Bounds of requests: golden values, no bound above the optimum, and certificates that were changed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import optsched as osd
from kv_cache.every_start import best_list, optimum, random_requests
from optsched.bounds.best_bound import BOUNDS
from optsched.bounds.certificate import CertificateError
from optsched.classes.kv_cache.bounds.priced_rounds import priced_certificate
from optsched.classes.kv_cache.problem.requests import request_instance
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance
from optsched.verifier.judgement import verify

NAMES = [name for name, bound in BOUNDS.items(("kv-cache",)) if bound.classes == ("kv-cache",)]
TEN = request_instance([1] * 10, [12, 8, 9, 10, 11, 1, 8, 3, 7, 14], 16)
FOUR = request_instance([2, 1, 3, 1], [4, 7, 2, 5], 12, arrival=[0, 1, 2, 3])


def values(instance: Instance, objective: str = "total_flow_time") -> dict[str, Fraction]:
    found = {name: BOUNDS.get(name).build(instance, objective, "kv-cache") for name in NAMES}
    for certificate in found.values():
        if certificate is not None:
            certificate.verify(instance)
    return {name: certificate.value for name, certificate in found.items() if certificate is not None}


def served(name: str, objective: str) -> bool:
    return objective in BOUNDS.get(name).objectives


def test_golden_values() -> None:
    """Bounds 3, 2 and 4 of ten requests, and bound 3 of four: 92/7, rounded down by less than 1e-14."""
    names = [name for name in NAMES if served(name, "total_flow_time")]
    found = {name: BOUNDS.get(name).build(TEN, "total_flow_time", "kv-cache") for name in names}
    rounded = {name: round(float(each.value), 3) for name, each in found.items() if each is not None}
    assert rounded["kv-mean-busy-time"] == 140.228
    assert rounded["kv-priced"] == 164.285
    assert float(found["kv-srpt"].value) == 125.8125  # type: ignore[union-attr]
    assert rounded["kv-alone"] == 83
    low = BOUNDS.get("kv-mean-busy-time").build(FOUR, "total_flow_time", "kv-cache")
    assert low is not None
    assert 0 <= Fraction(92, 7) - low.value < Fraction(1, 10**14)
    assert optimum(FOUR, 23.5) == (22, [0, 4, 2, 4])


@pytest.mark.parametrize(
    ("cells", "prompt", "output", "ordered", "best", "starts"),
    [(10, 1, [3, 8, 9, 4], 36, 35, [0, 1, 9, 1]), (9, 0, [4, 4, 9, 7], 35, 33, [0, 2, 6, 1])],
)
def test_list_schedules_do_not_suffice(
    cells: int, prompt: int, output: list[int], ordered: int, best: int, starts: list[int]
) -> None:
    """No order of the requests has the optimum, which starts some later than they fit."""
    instance = request_instance([prompt] * 4, output, cells)
    assert best_list(instance) == ordered
    value, found = optimum(instance, ordered)
    assert value == best
    assert sum(k + o for k, o in zip(found, output, strict=True)) == sum(
        k + o for k, o in zip(starts, output, strict=True)
    )
    from optsched.classes.kv_cache.problem.request_schedule import request_schedule

    for each in (found, starts):
        assert osd.check_schedule(instance, request_schedule(instance, each), value=float(best)) == []


def no_bound_is_above_the_optimum(seeds: range, slow: int) -> None:
    for seed in seeds:
        instance = random_requests(seed).relative
        weighted = instance.objective
        assert weighted is not None
        reached = min(osd.simulate(instance, policy).value() for policy in ("mc-sf", "least-volume"))
        best, _ = optimum(instance, reached + 0.5)
        for name in NAMES:
            every = slow if name in ("kv-busy-time", "kv-priced") else 1  # those that search
            if served(name, weighted) and name != "kv-priced-strong" and seed % every == 0:
                certificate = BOUNDS.get(name).build(instance, weighted, "kv-cache")
                assert certificate is None or certificate.value <= best, (seed, name)


def test_no_bound_is_above_the_optimum() -> None:
    """200 instances, of which every start was tried."""
    no_bound_is_above_the_optimum(range(200), 20)


@pytest.mark.study
def test_no_bound_is_above_the_optimum_of_many() -> None:
    """20,000 instances; the bounds that search are computed for every fourth one."""
    no_bound_is_above_the_optimum(range(20_000), 4)


def test_bounds_hold_in_affine_rounds() -> None:
    """The bounds hold for all objectives, and for the run of every policy."""
    for seed in range(4):
        instance = generate("kv-lognormal", seed, jobs=30, cells=800, affine=True, rate=20)
        runs = [osd.simulate(instance, policy) for policy in ("mc-sf", "least-volume", "vllm-fcfs")]
        for objective in ("total_flow_time", "makespan", "max_flow_time", "total_weighted_completion_time"):
            low = osd.bound(instance, objective)
            low.verify(instance)
            assert low.schedule_class == "kv-cache"
            assert all(float(low.value) <= run.value(objective) * (1 + 1e-9) for run in runs)


def test_any_prices_prove_something() -> None:
    """Prices of an unfinished solver are rounded to integers; negative ones and nan count as 0."""
    rng = np.random.default_rng(1)
    for late in (0.0, 1e6):
        instance = request_instance([1, 2, 0], [3, 2, 5], 7, arrival=np.array([0, 1, 4]) + late)
        best, _ = optimum(instance.relative, 99)
        for _ in range(20):
            prices = rng.exponential(0.1, 9) * rng.integers(-1, 3, 9)
            prices[3] = np.nan
            certificate = priced_certificate(instance, "total_flow_time", prices)
            certificate.verify(instance)
            assert certificate.value <= best


def test_a_changed_certificate_is_refused() -> None:
    """By the verifier in this process and by the stand-alone one."""
    for name in NAMES:
        if not served(name, "total_flow_time"):
            continue
        certificate = BOUNDS.get(name).build(FOUR, "total_flow_time", "kv-cache")
        assert certificate is not None
        assert "total_flow_time" in verify(certificate.to_json(), FOUR.to_json())
        data = certificate.data
        changed = [replace(certificate, value=certificate.value + Fraction(1, 10**9))]
        if "prices" in data:
            changed.append(replace(certificate, data={**data, "prices": [-1, *data["prices"]]}))
            changed.append(replace(certificate, data={**data, "unit": data["unit"] * 2}))
        for each in changed:
            with pytest.raises(CertificateError):
                each.verify(FOUR)
