"""Prices on time: exact minima against a naive search in fractions, the theorem against exhaustion, tampering."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, preemptive_optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from bounds.cases import SUMS
from optsched.bounds import proof
from optsched.bounds.certificate import Certificate, CertificateError
from optsched.bounds.lp_dual import PriceRow, Prices, knapsack_capacity, price_certificate
from optsched.errors import InputError
from optsched.problem.instance import Cluster, Instance, Job
from optsched.problem.objectives import get_objective
from optsched.verifier.certified_case import Case

BOTH = ("gang", "gang-nonpreemptive")


@st.composite
def cases(draw: st.DrawFn, most: int = 4, scales: tuple[int, ...] = (1, 2, 3)) -> tuple[Instance, Prices]:
    """An instance and any prices on any grid: finer, coarser or not fitting its times at all."""
    total, scale = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from(scales))
    jobs = [
        Job(
            f"j{j}",
            arrival=draw(st.integers(0, 6)) / scale,
            gpus=draw(st.integers(1, total)),
            duration=draw(st.integers(1, 5)) / scale,
            weight=draw(st.integers(0, 3)),
            due=draw(st.none() | st.integers(0, 9).map(lambda d, s=scale: d / s)),
        )
        for j in range(draw(st.integers(1, most)))
    ]
    instance = Instance(jobs, Cluster.parse(f"1x{total}"))
    rows = []
    for _ in range(draw(st.integers(1, 2))):
        width = draw(st.just(instance.gpus) | st.lists(st.integers(0, 2), min_size=len(jobs), max_size=len(jobs)))
        price = draw(st.lists(st.integers(0, 8), max_size=12))
        rows.append(PriceRow(np.array(width, dtype=np.int64), np.array(price, dtype=np.int64)))
    origin = Fraction(float(instance.arrival.min())) - draw(st.sampled_from((0, Fraction(1, 3), 1)))
    unit = draw(st.sampled_from((Fraction(1), Fraction(1, 2), Fraction(2, 3), Fraction(2))))
    each = st.tuples(
        st.integers(0, 6), st.lists(st.integers(0, 9), max_size=8).map(lambda p: np.array(p, dtype=np.int64))
    )
    own = draw(st.just([]) | st.lists(each, min_size=len(jobs), max_size=len(jobs)))
    return instance, Prices("any", origin, unit, draw(st.integers(1, 4)), tuple(rows), tuple(own))


def rate(instance: Instance, prices: Prices, j: int) -> list[Fraction]:
    """What job j pays for whole cells."""
    paid = [Fraction(0)] * prices.cells
    for row in prices.rows:
        for k, price in enumerate(row.price.tolist()):
            paid[k] += Fraction(int(row.width[j]) * price, prices.denominator)
    for first, own in prices.own[j : j + 1]:
        for k, price in enumerate(own.tolist(), start=first):
            paid[k] += Fraction(price, prices.denominator)
    return paid


def paid_between(cells: list[Fraction], prices: Prices, start: Fraction, end: Fraction) -> Fraction:
    total = Fraction(0)
    for k, price in enumerate(cells):
        low, high = prices.origin + k * prices.unit, prices.origin + (k + 1) * prices.unit
        total += price * max(Fraction(0), min(end, high) - max(start, low)) / prices.unit
    return total


def sampled_minimum(instance: Instance, objective: str, prices: Prices, j: int) -> Fraction:
    """The least of cost and price over many starts: never below the true minimum of a non-preemptive run."""
    goal = get_objective(objective)
    cells = rate(instance, prices, j)
    release, length = Fraction(float(instance.arrival[j])), Fraction(float(instance.duration[j]))
    last = prices.origin + (prices.cells + 1) * prices.unit + length
    values, start = [], release
    while start <= max(last, release):
        cost = goal.exact([start + length], *(a[j : j + 1] for a in (instance.arrival, instance.weight, instance.due)))
        values.append(cost + paid_between(cells, prices, start, start + length))
        start += Fraction(1, 12)  # divides every unit, release and duration of these cases
    return min(values)


@given(cases(), st.sampled_from(SUMS))
@settings(max_examples=examples(40))
def test_a_jobs_minimum_is_never_above_what_a_run_costs(case: tuple[Instance, Prices], objective: str) -> None:
    instance, prices = case
    certificate = price_certificate(instance, objective, "gang-nonpreemptive", prices)
    for j in range(instance.n):
        least = Fraction(certificate.data["jobs"][j])
        naive = sampled_minimum(instance, objective, prices, j)
        assert least <= naive
        length = Fraction(float(instance.duration[j]))
        fits = all((x % prices.unit) == 0 for x in (length, Fraction(float(instance.arrival[j])) - prices.origin))
        if fits:
            assert least == naive


@given(cases(), st.sampled_from(SUMS))
def test_the_bound_is_below_the_optimum(case: tuple[Instance, Prices], objective: str) -> None:
    instance, prices = case
    certificate = price_certificate(instance, objective, "gang-nonpreemptive", prices)
    certificate.verify(instance)
    assert certificate.value <= optimum(instance, objective)


@given(cases(most=3, scales=(1,)), st.sampled_from(SUMS))
@settings(max_examples=examples(30))
def test_the_bound_of_the_larger_class_is_below_the_preemptive_optimum(
    case: tuple[Instance, Prices], objective: str
) -> None:
    instance, prices = case
    certificate = price_certificate(instance, objective, "gang", prices)
    certificate.verify(instance)
    assert certificate.value <= preemptive_optimum(instance, objective, Fraction(1, 2))
    smaller = price_certificate(instance, objective, "gang-nonpreemptive", prices)
    assert [Fraction(a) <= Fraction(b) for a, b in zip(certificate.data["jobs"], smaller.data["jobs"], strict=True)]


def two_jobs() -> tuple[Instance, Prices]:
    """(p, w) = (2, 1), (1, 1) on one GPU: the optimum 4 is also the LP's, with prices 1, 0, 0 on seconds."""
    instance = Instance([Job("a", duration=2), Job("b", duration=1)], Cluster.machines(1))
    return instance, Prices("time-indexed", Fraction(0), Fraction(1), 1, (PriceRow(instance.gpus, np.array([1])),))


def test_a_tight_example_by_hand() -> None:
    instance, prices = two_jobs()
    certificate = price_certificate(instance, "total_completion_time", "gang-nonpreemptive", prices)
    # a: start 0 costs 2 + 1, start 1 costs 3; b: 1 + 1 or 2; 3 + 2 - 1 = 4
    assert certificate.data["jobs"] == ["3", "2"]
    assert certificate.value == 4
    assert certificate.kind == "lp-dual"


def test_jobs_that_do_not_fit_together_pay_once() -> None:
    instance, _ = two_jobs()
    own = ((0, np.array([1, 0])), (0, np.array([1])))
    certificate = price_certificate(
        instance, "total_completion_time", "gang-nonpreemptive", Prices("x", Fraction(0), Fraction(1), 1, (), own)
    )
    assert (certificate.data["jobs"], certificate.value) == (["3", "2"], 4)
    beside = instance.replace(cluster="1x2")
    loose = price_certificate(
        beside, "total_completion_time", "gang-nonpreemptive", Prices("x", Fraction(0), Fraction(1), 1, (), own)
    )
    assert loose.value == 3


def test_preemption_pays_only_for_the_cheapest_seconds() -> None:
    instance = Instance([Job("a", duration=2, weight=1)], Cluster.machines(1))
    prices = Prices("x", Fraction(0), Fraction(1), 1, (PriceRow(instance.gpus, np.array([1, 9, 1])),))
    gang = price_certificate(instance, "total_completion_time", "gang", prices)
    piece = price_certificate(instance, "total_completion_time", "gang-nonpreemptive", prices)
    # in pieces: seconds 0 and 2, done at 3, 3 + 2; in one piece: start at 3, done at 5, nothing to pay
    assert (gang.data["jobs"], piece.data["jobs"]) == (["5"], ["5"])
    dearer = Prices("x", Fraction(0), Fraction(1), 1, (PriceRow(instance.gpus, np.array([1, 9, 1, 9, 9])),))
    gang = price_certificate(instance, "total_completion_time", "gang", dearer)
    piece = price_certificate(instance, "total_completion_time", "gang-nonpreemptive", dearer)
    assert (gang.data["jobs"], piece.data["jobs"]) == (["5"], ["7"])


def test_integer_instances_may_round_up_but_only_without_preemption() -> None:
    instance, _ = two_jobs()
    half = Prices("x", Fraction(0), Fraction(1), 2, (PriceRow(instance.gpus, np.array([1])),))
    assert price_certificate(instance, "total_completion_time", "gang-nonpreemptive", half).value == 4  # 7/2
    assert price_certificate(instance, "total_completion_time", "gang", half).value == Fraction(7, 2)
    broken = instance.replace(jobs=[Job("a", duration=2.25), Job("b", duration=1)])
    loose = price_certificate(broken, "total_completion_time", "gang-nonpreemptive", half)
    assert (loose.value, loose.data["rounded"]) == (Fraction(15, 4), False)


def test_rows_of_other_widths_use_the_largest_width_that_fits() -> None:
    gpus = np.array([8, 4, 4, 1])
    assert knapsack_capacity(np.array([2, 1, 1, 1]), gpus, 8) == 2
    assert knapsack_capacity(np.array([1, 0, 0, 1]), gpus, 8) == 1
    assert knapsack_capacity(gpus, gpus, 8) == 8
    assert knapsack_capacity(np.array([0, 0, 0, 0]), gpus, 8) == 0
    assert knapsack_capacity(np.array([5, 3, 3, 1]), np.array([3, 2, 2, 2]), 4) == 6


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), max_size=7), st.integers(1, 9))
def test_knapsack_against_all_subsets(items: list[tuple[int, int]], total: int) -> None:
    gpus, width = (np.array([item[i] for item in items], dtype=np.int64) for i in (0, 1))
    gpus = np.minimum(gpus, total)
    sets = range(1 << len(items))
    chosen = [[j for j in range(len(items)) if bits >> j & 1] for bits in sets]
    best = max(int(width[c].sum()) for c in chosen if gpus[c].sum() <= total)
    assert knapsack_capacity(width, gpus, total) == best


def test_huge_prices_do_not_overflow() -> None:
    instance, _ = two_jobs()
    large = 1 << 58
    scaled = Prices("x", Fraction(0), Fraction(1), large, (PriceRow(instance.gpus, np.array([large])),))
    certificate = price_certificate(instance, "total_completion_time", "gang-nonpreemptive", scaled)
    assert certificate.value == 4
    certificate.verify(instance)


def test_times_that_float64_does_not_hold_are_taken_as_the_fractions_they_are() -> None:
    jobs = [Job("a", arrival=0.1, duration=0.2), Job("b", arrival=0.3, duration=0.7, weight=0.1)]
    instance = Instance(jobs, Cluster.machines(1))
    row = PriceRow(instance.gpus, np.array([3, 1, 0, 2]))
    prices = Prices("x", Fraction(0.1), Fraction(1, 5), 7, (row,))
    for schedule_class in BOTH:
        certificate = price_certificate(instance, "total_weighted_completion_time", schedule_class, prices)
        certificate.verify(instance)
        assert certificate.value <= optimum(instance, "total_weighted_completion_time")


def tampered(change: dict[str, Any], **fields: Any) -> tuple[Certificate, Instance]:
    instance, prices = two_jobs()
    certificate = price_certificate(instance, "total_completion_time", "gang-nonpreemptive", prices)
    data = {**json.loads(json.dumps(certificate.data)), **change}
    return dataclasses.replace(certificate, data=data, **fields), instance


@pytest.mark.parametrize(
    ("change", "fields", "rule"),
    [
        ({"jobs": ["4", "2"]}, {"value": Fraction(5)}, "dual-feasibility"),
        ({}, {"value": Fraction(5)}, "value"),
        ({"rows": [{"width": "gpus", "price": [-1]}]}, {}, "dual-feasibility"),
        ({"rows": [{"width": "gpus", "price": [0]}]}, {}, "dual-feasibility"),
        ({"rows": [{"width": [1], "price": [1]}]}, {}, "dual-feasibility"),
        ({"rows": [{"width": [1, 1], "price": [0.5]}]}, {}, "dual-feasibility"),
        ({"rows": [{"width": [1, 1], "price": [True]}]}, {}, "dual-feasibility"),
        ({"rows": "none"}, {}, "dual-feasibility"),
        ({"rows": ["none"]}, {}, "dual-feasibility"),
        ({"own": [[0, [1]]]}, {}, "dual-feasibility"),
        ({"own": [[0, [1]], [0, [-1]]]}, {}, "dual-feasibility"),
        ({"own": [[-1, [1]], [0, [1]]]}, {}, "dual-feasibility"),
        ({"own": [[0, [2]], [0, [2]]]}, {}, "value"),  # 4 + 0: the two do not fit together, and pay no more for it
        ({"own": [[1 << 60, []], [0, [1]]]}, {}, "value"),
        ({"denominator": 0}, {}, "dual-feasibility"),
        ({"unit": "0"}, {}, "dual-feasibility"),
        ({"unit": "a"}, {}, "value"),
        ({"origin": "1"}, {}, "dual-feasibility"),
        ({"jobs": ["3"]}, {}, "dual-feasibility"),
        ({"jobs": ["3", "x"]}, {}, "value"),
        ({"rounded": True}, {"value": Fraction(4), "schedule_class": "gang"}, "value"),
        ({}, {"objective": "makespan"}, "kind"),
        ({}, {"schedule_class": "gpu-sharing"}, "kind"),
        ({}, {"instance": "0" * 64}, "instance"),
    ],
)
def test_what_does_not_hold_is_refused_with_its_rule(change: dict[str, Any], fields: dict[str, Any], rule: str) -> None:
    certificate, instance = tampered(change, **fields)
    with pytest.raises(CertificateError) as caught:
        certificate.verify(instance)
    assert caught.value.rule == rule


def test_lower_claims_hold_too() -> None:
    certificate, instance = tampered({"jobs": ["2", "2"]}, value=Fraction(3))
    certificate.verify(instance)


def test_the_makespan_has_no_prices() -> None:
    instance, prices = two_jobs()
    with pytest.raises(InputError, match="makespan"):
        price_certificate(instance, "makespan", "gang", prices)


def test_what_this_program_finds_may_be_larger_than_what_strangers_send(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance([Job("a", duration=2), Job("b", duration=3)], "1x1")
    row = PriceRow(instance.gpus, np.array([1, 1, 0], dtype=np.int64))
    found = price_certificate(
        instance, "total_completion_time", "gang", Prices("any", Fraction(0), Fraction(1), 1, (row,))
    )
    monkeypatch.setattr(Case, "most_steps", 1)
    proof._last.clear()
    found.verify(instance)
    monkeypatch.setattr(proof, "MOST_STEPS", 1)
    proof._last.clear()
    with pytest.raises(CertificateError, match="more than 1 steps"):
        found.verify(instance)
    proof._last.clear()
