"""Prices of GPUs over the cells of a log: below every schedule, and more than the plain bounds where jobs wait."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from brute_force import optimum, preemptive_optimum
from examples import studied

import optsched as osd
from bounds import typed_cases
from bounds.cases import SUMS, built, instance_of, proved, queue, random_gangs
from bounds.tampering import refused
from optsched.bounds import Certificate, CertificateError, priced_log, priced_log_search
from optsched.bounds.priced_log import jobs_of, proof_of
from optsched.bounds.priced_log_search import LogPrices
from optsched.bounds.priced_time import priced_certificate
from optsched.evaluation.quick_bounds import least_bounded_slowdown
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance
from optsched.verifier.judgement import verify
from optsched.verifier.priced_log_proof import LogCells, LogJob

FLOW, KIND = "total_flow_time", "priced-log"
pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True)
def few_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priced_log, "FEWEST_JOBS", 1)
    monkeypatch.setattr(priced_log_search, "FEW_CELLS", 300)


def exhaustive(seed: int, count: int) -> tuple[int, int]:
    """(bounds compared, those that are more than the plain ones)."""
    rng, checked, better = np.random.default_rng(seed), 0, 0
    for k in range(count):
        instance, objective = random_gangs(rng), SUMS[k % len(SUMS)]
        certificate = built(KIND, instance, objective, ("gang", "gang-nonpreemptive")[k % 2])
        if certificate is None:
            continue
        certificate.verify(instance)
        assert certificate.value <= optimum(instance, objective), instance.to_json()
        if instance.n <= 4 and float(instance.duration.sum()) <= 20:
            assert certificate.value <= preemptive_optimum(instance, objective), instance.to_json()
        checked += 1
        better += certificate.value > osd.bound(instance, objective, "gang").value
    return checked, better


@pytest.mark.parametrize(("seed", "count"), [(0, 20), studied(1, 2000)])
def test_never_above_the_optimum(seed: int, count: int) -> None:
    checked, better = exhaustive(seed, count)
    assert checked > count / 3
    assert better > 0


def test_never_above_a_schedule_on_gpus_of_several_types() -> None:
    rng, checked = np.random.default_rng(1), 0
    for k in range(24):
        instance, objective = typed_cases.typed_instance(rng), SUMS[k % len(SUMS)]
        certificate = built(KIND, instance, objective)
        for _ in range(4 if certificate else 0):
            value = typed_cases.objective_value(instance, objective, typed_cases.random_completions(instance, rng))
            assert certificate.value <= value * (1 + 2**-30), instance.to_json()
            checked += 1
    assert checked > 20


def test_any_prices_are_below_the_optimum() -> None:
    rng = np.random.default_rng(2)
    for k in range(20):
        instance, objective = random_gangs(rng), SUMS[k % len(SUMS)]
        moments = np.cumsum(rng.integers(1, 9, 12) / 4) - 3.0
        proof = proof_of(jobs_of(instance, objective), LogPrices(moments, rng.uniform(0, 1, 11)))
        assert proof is not None
        certificate = Certificate(instance.digest, objective, "gang", KIND, *proof)
        certificate.verify(instance)
        assert certificate.value <= optimum(instance, objective)


def test_the_least_of_a_job_by_all_its_ends() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        moments = np.cumsum(rng.integers(1, 5, 6)).tolist()
        prices = rng.integers(0, 9, 5).tolist()
        release, work, weight, kink, gang = (
            int(rng.integers(*span)) for span in ((0, 12), (0, 7), (0, 4), (0, 25), (1, 4))
        )
        price = [
            prices[np.searchsorted(moments, t, side="right") - 1] if moments[0] <= t < moments[-1] else 0
            for t in range(60)
        ]
        ends = (
            weight * max(end - kink, 0) + gang * sum(sorted(price[release:end])[:work])
            for end in range(release + work, 60)
        )
        assert LogCells(moments, prices).least(LogJob(release, work, weight, kink, gang)) == min(ends)


def test_the_same_as_prices_by_type_on_the_same_cells() -> None:
    instance, rng = queue(40), np.random.default_rng(4)
    moments = np.arange(65.0) * 4
    price = rng.uniform(0, 0.3, 64)
    by_type = priced_certificate(instance, FLOW, "gang", moments, price[:, None])
    proof = proof_of(jobs_of(instance, FLOW), LogPrices(moments, price))
    assert by_type is not None
    assert proof is not None
    assert float(proof[0]) == pytest.approx(float(by_type.value), abs=2e-3)


def test_what_it_is_worth_where_jobs_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    instance = generate("poisson", 5, jobs=600, cluster="2x8", load=1.1, gpus="weights:1=3,2=2,8=1")
    best = osd.simulate(instance, "srtf-gpu").value(FLOW)
    assert osd.bound(instance, FLOW).value < proved(KIND, instance, FLOW).value <= best
    slowdown = least_bounded_slowdown(instance, strong=True)
    assert least_bounded_slowdown(instance) < slowdown <= osd.simulate(instance, "srtf").metrics["mean_bsld"]


def test_tampered(tmp_path: Path) -> None:
    instance = queue(40)
    certificate = proved(KIND, instance, FLOW)
    doc = certificate.to_json()
    data = doc["data"]
    assert verify(json.loads(json.dumps(doc)), instance.to_json()).endswith("by priced-log")
    least = Fraction(data["least_together"])
    more = f"{least.numerator + least.denominator}/{least.denominator}"
    changes = [
        {"least_together": more},
        {"prices": [-1, *data["prices"][1:]]},
        {"prices": data["prices"][1:]},
        {"moments": data["moments"][::-1]},
        {"prices": [2 * price for price in data["prices"]]},
        {"more": 1},
    ]
    for change in changes:
        ours, theirs = refused({**doc, "data": {**data, **change}}, instance, tmp_path)
        assert ours
        assert theirs
    with pytest.raises(CertificateError):
        replace(certificate, value=certificate.value + 1).verify(instance)


def test_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(KIND, Instance([], "1x2"), FLOW) is None
    assert built(KIND, instance_of([(0.0, 1, 1.0)] * 2, 3), FLOW) is None
    monkeypatch.setattr(priced_log, "FEWEST_JOBS", 5)
    assert built(KIND, instance_of([(0.0, 2, 1.0)] * 4, 3), FLOW) is None


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e5])
def test_times_of_any_size(scale: float) -> None:
    instance = queue(30, scale)
    assert proved(KIND, instance, FLOW).value > 0
