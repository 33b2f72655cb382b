"""The packing LP of Hadar: primal = dual in both languages, proved in fractions; what its data refuse."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from random_packings import plain_packing, round_packing
from scipy.optimize import linprog

from optsched.bounds.certificate import CertificateError
from optsched.errors import InputError
from optsched.models import hadar_dual, hadar_primal
from optsched.models.hadar_packing import JobSchedule, Packing
from optsched.models.packing_certificate import price_certificate, share_certificate
from optsched.solvers.compile_model import compile
from optsched.solvers.packing import PackingBound, packing_bound, packing_optimum
from optsched.solvers.session import Session

Solve = Callable[[Any], float]
DUALITY = 1e-9  # relative, between two solves of HiGHS; measured: below 2e-14
TWO = Packing((2,), ((JobSchedule(3.0, ((0, 2),)),), (JobSchedule(2.0, ((0, 1),)),), (JobSchedule(2.0, ((0, 1),)),)))


def optimum(model: Any) -> float:
    """Through compile and Session."""
    outcome = Session(compile(model)).solve()
    assert outcome.status == "optimal"
    assert outcome.value is not None
    return outcome.value


def assert_proved(packing: Packing, bound: PackingBound) -> None:
    """Both certificates, re-proved here by loops of their own, and an interval closed to 1e-9."""
    price, payoff = bound.prices.price, bound.prices.payoff
    assert min((*price, *payoff), default=Fraction(0)) >= 0
    for j, of_job in enumerate(packing.schedules):
        for one in of_job:
            assert payoff[j] + sum(price[q] * w for q, w in one.demand) >= Fraction(one.utility)
    assert bound.prices.value == sum(payoff) + sum(k * c for k, c in zip(price, packing.capacity, strict=True))
    load, worth = [Fraction(0)] * packing.resources, Fraction(0)
    for of_job, share in zip(packing.schedules, bound.shares.share, strict=True):
        assert 0 <= sum(share) <= 1
        for one, x in zip(of_job, share, strict=True):
            assert x >= 0
            worth += x * Fraction(one.utility)
            for q, w in one.demand:
                load[q] += w * x
    assert all(held <= c for held, c in zip(load, packing.capacity, strict=True))
    assert bound.shares.value == worth
    assert bound.prices.value - worth <= Fraction(1, 10**9) * bound.prices.value


def check(packing: Packing) -> None:
    """Strong duality and both certificates."""
    bound = packing_bound(packing)
    assert_proved(packing, bound)
    assert bound.value == pytest.approx(float(bound.prices.value), rel=DUALITY)
    if packing.flat:
        assert optimum(hadar_dual.build(packing)) == pytest.approx(bound.value, rel=DUALITY)


def test_two_ways_to_fill_two_devices() -> None:
    # 3 for both devices, or 2 + 2: one price of 2, and what is left of 3 after paying 4 is nothing
    bound = packing_bound(TWO)
    assert bound.prices.value == bound.shares.value == 4
    assert bound.width == 0
    assert bound.shares.integral
    assert packing_optimum(TWO) == (4.0, (None, 0, 0))


def test_a_third_comes_out_as_a_third() -> None:
    # three jobs of 2 devices on 3, each worth 1: the LP takes half of every job, the best choice is one of them
    packing = Packing((3,), tuple((JobSchedule(1.0, ((0, 2),)),) for _ in range(3)))
    bound = packing_bound(packing)
    assert bound.prices.value == bound.shares.value == Fraction(3, 2)
    assert not bound.shares.integral
    assert packing_optimum(packing)[0] == 1.0
    shared = share_certificate(Packing((1,), ((JobSchedule(1.0, ((0, 1),)),),) * 3), [1 / 3] * 3)
    assert shared.value == 1


@pytest.mark.parametrize("seed", range(2))
def test_primal_and_dual_agree_and_are_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(45):
        check(plain_packing(rng))


def test_primal_and_dual_agree_in_rounds() -> None:
    rng = np.random.default_rng(10)
    for _ in range(8):
        check(round_packing(rng, jobs=int(rng.integers(2, 6)), most_devices=3))


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2))
def test_250_instances_in_rounds(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    for _ in range(250):
        check(round_packing(rng, jobs=int(rng.integers(3, 13)), most_devices=4))


def test_primal_and_dual_have_one_optimum_by_other_solvers_too(solve: Solve) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        packing = plain_packing(rng)
        models = hadar_primal.build(packing), hadar_dual.build(packing)
        values = [optimum(model) for model in models] + [solve(model) for model in models]
        assert values == pytest.approx([values[0]] * 4, rel=1e-9)
        assert optimum(hadar_primal.build(packing, integer=True)) == pytest.approx(
            packing_optimum(packing)[0], rel=DUALITY
        )


def test_no_choice_is_above_the_prices() -> None:
    rng = np.random.default_rng(6)
    for _ in range(12):
        packing = plain_packing(rng)
        value, chosen = packing_optimum(packing)
        every = [range(-1, len(of_job)) for of_job in packing.schedules[:4]]
        head = Packing(packing.capacity, packing.schedules[:4])
        best = max(_value(head, choice) for choice in itertools.product(*every))
        assert packing_optimum(head)[0] == pytest.approx(best, rel=1e-12)
        assert value == packing.value(chosen)
        assert Fraction(value) <= packing_bound(packing).prices.value * (1 + Fraction(1, 10**12))


def _value(packing: Packing, choice: tuple[int, ...]) -> float:
    try:
        return packing.value([None if s < 0 else s for s in choice])
    except InputError:
        return 0.0


def test_against_arrays_built_from_the_schedules() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        packing = plain_packing(rng)
        rows = np.zeros((packing.resources + packing.jobs, len(packing.flat)))
        column = 0
        for j, of_job in enumerate(packing.schedules):
            for one in of_job:
                rows[packing.resources + j, column] = 1
                for q, w in one.demand:
                    rows[q, column] = w
                column += 1
        limits = [*packing.capacity, *([1] * packing.jobs)]
        other = linprog([-one.utility for one in packing.flat], A_ub=rows, b_ub=limits, method="highs-ds")
        assert packing_bound(packing).value == pytest.approx(-other.fun, rel=DUALITY)


def test_row_duals_are_dual_solutions() -> None:
    rng = np.random.default_rng(3)
    for _ in range(15):
        packing = plain_packing(rng)
        model = hadar_primal.build(packing)
        program = compile(model)
        session = Session(program)
        found = session.solve()
        assert found.x is not None
        program.load(found.x, session.duals())
        k, mu = hadar_primal.row_duals(model, packing)
        assert min(k.min(), mu.min()) >= -1e-9
        left = packing.utility - packing.demand.T @ k - packing.of_job.T @ mu
        assert left.max() <= 1e-9 * packing.utility.max()
        assert mu.sum() + np.dot(packing.capacity, k) == pytest.approx(found.value, rel=DUALITY)


def test_prices_of_the_dual_prove_what_it_says() -> None:
    rng = np.random.default_rng(4)
    for _ in range(15):
        packing = plain_packing(rng)
        model = hadar_dual.build(packing)
        program = compile(model)
        outcome = Session(program).solve()
        assert outcome.x is not None
        program.load(outcome.x)
        proof = price_certificate(packing, hadar_dual.prices(model).tolist())
        proof.verify(packing)
        assert float(proof.value) == pytest.approx(outcome.value, rel=DUALITY)


def test_any_prices_and_shares_are_repaired() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        packing = plain_packing(rng)
        best = packing_bound(packing)
        above = price_certificate(packing, rng.normal(1, 3, packing.resources).tolist())
        below = share_certificate(packing, rng.normal(0.3, 1, len(packing.flat)).tolist())
        above.verify(packing)
        below.verify(packing)
        assert below.value <= best.prices.value
        assert above.value >= best.shares.value


def test_false_certificates_are_refused() -> None:
    bound = packing_bound(TWO)
    prices, shares = bound.prices, bound.shares
    tiny, none = Fraction(1, 10**30), (Fraction(0),)
    for wrong, rule in (
        (replace(prices, value=prices.value - tiny), "value"),
        (replace(prices, price=(prices.price[0] - tiny,)), "dual-feasibility"),
        (replace(prices, price=(Fraction(-1),)), "dual-feasibility"),
        (replace(prices, payoff=prices.payoff[:2]), "dual-feasibility"),
        (replace(shares, value=shares.value + tiny), "value"),
        (replace(shares, share=((tiny,), *shares.share[1:])), "value"),
        (replace(shares, share=((-tiny,), *shares.share[1:])), "value"),
        (replace(shares, share=(none, (1 + tiny,), none), value=Fraction(1)), "value"),
        (replace(shares, share=shares.share[:2]), "value"),
    ):
        with pytest.raises(CertificateError) as refusal:
            wrong.verify(TWO)
        assert refusal.value.rule == rule
    prices.verify(TWO)
    shares.verify(TWO)


def test_nothing_to_pack() -> None:
    nobody = Packing((3,), ((), ()))
    assert packing_bound(nobody).prices.value == packing_bound(nobody).shares.value == 0
    assert packing_optimum(nobody) == (0.0, (None, None))
    for build in (hadar_primal.build, hadar_dual.build):
        with pytest.raises(InputError, match="no job has a schedule"):
            build(nobody)


@pytest.mark.parametrize(
    ("capacity", "one", "word"),
    [
        ((1,), JobSchedule(-1.0, ((0, 1),)), "utility = -1"),
        ((1,), JobSchedule(float("nan"), ((0, 1),)), "utility = nan"),
        ((1,), JobSchedule(1.0, ((0, 2),)), "demand = 2"),
        ((1,), JobSchedule(1.0, ((0, 0),)), "demand = 0"),
        ((1,), JobSchedule(1.0, ((1, 1),)), "increasing"),
        ((1, 1), JobSchedule(1.0, ((1, 1), (0, 1))), "increasing"),
        ((-1,), JobSchedule(1.0, ()), "capacity = -1"),
    ],
)
def test_data_that_are_not_legal(capacity: tuple[int, ...], one: JobSchedule, word: str) -> None:
    with pytest.raises(InputError, match=word) as refusal:
        Packing(capacity, ((one,),))
    assert "\n" not in str(refusal.value)


def test_a_choice_beyond_the_capacity_is_refused() -> None:
    with pytest.raises(InputError, match="capacity"):
        TWO.value([0, 0, None])
