"""The packing LP of Hadar: primal = dual in both languages, proved in fractions; what its data refuse."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from loaded_optimum import loaded_optimum
from packing_value import packing_value
from round_brute_force import tiny_problems

from optsched.errors import InputError
from optsched.models import hadar_dual, hadar_primal
from optsched.models.hadar_rounds import JobSchedule, Packing, RoundProblem
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session

Solve = Callable[[Any], float]
DUALITY = 1e-9  # relative, between two solves of HiGHS; measured: below 2e-14
TWO = Packing((2,), ((JobSchedule(3.0, ((0, 2),)),), (JobSchedule(2.0, ((0, 1),)),), (JobSchedule(2.0, ((0, 1),)),)))


def plain_packing(rng: np.random.Generator) -> Packing:
    """2 to 9 jobs with 0 to 5 schedules over 1 to 6 resources of 1 to 6 devices; utilities over four decades."""
    resources = int(rng.integers(1, 7))
    capacity = rng.integers(1, 7, resources)
    schedules = []
    for _ in range(int(rng.integers(2, 10))):
        of_job = []
        for _ in range(int(rng.integers(0, 6))):
            used = np.flatnonzero(rng.random(resources) < 0.5).tolist()
            demand = tuple((q, int(rng.integers(1, capacity[q] + 1))) for q in used)
            of_job.append(JobSchedule(float(10 ** rng.uniform(-2, 2)), demand))
        schedules.append(tuple(of_job))
    return Packing(tuple(capacity.tolist()), tuple(schedules))


def proved(packing: Packing, prices: Any) -> Fraction:
    """What prices of resources prove, in fractions: no choice of schedules, in shares or whole, is worth more."""
    price = [max(Fraction(0), Fraction(float(k))) for k in prices]
    payoffs = (
        max((Fraction(one.utility) - sum(price[q] * w for q, w in one.demand) for one in of_job), default=Fraction(0))
        for of_job in packing.schedules
    )
    sold = sum((k * c for k, c in zip(price, packing.capacity, strict=True)), Fraction(0))
    return sum((max(payoff, Fraction(0)) for payoff in payoffs), sold)


def check(packing: Packing) -> None:
    """Strong duality, and prices that prove the value."""
    if not packing.flat:
        return
    model = hadar_dual.build(packing)
    value = packing_value(packing)
    assert loaded_optimum(model) == pytest.approx(value, rel=DUALITY)
    assert float(proved(packing, hadar_dual.prices(model))) == pytest.approx(value, rel=DUALITY)


def test_two_ways_to_fill_two_devices() -> None:
    # 3 for both devices, or 2 + 2: one price of 2, and what is left of 3 after paying 4 is nothing
    assert proved(TWO, [2.0]) == 4
    assert packing_value(TWO) == packing_value(TWO, integer=True) == 4


def test_the_lp_may_take_halves() -> None:
    # three jobs of 2 devices on 3, each worth 1: the LP takes half of every job, the best choice is one of them
    packing = Packing((3,), tuple((JobSchedule(1.0, ((0, 2),)),) for _ in range(3)))
    assert proved(packing, [0.5]) == Fraction(3, 2)
    assert packing_value(packing) == pytest.approx(1.5)
    assert packing_value(packing, integer=True) == 1


@pytest.mark.parametrize("seed", range(2))
def test_primal_and_dual_agree_and_are_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(45):
        check(plain_packing(rng))


@settings(max_examples=examples(250))
@given(problem=tiny_problems())
def test_primal_and_dual_agree_in_rounds(problem: RoundProblem) -> None:
    check(problem.packing())


def test_primal_and_dual_have_one_optimum_by_other_solvers_too(solve: Solve) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        packing = plain_packing(rng)
        models = hadar_primal.build(packing), hadar_dual.build(packing)
        values = [loaded_optimum(model) for model in models] + [solve(model) for model in models]
        assert values == pytest.approx([values[0]] * 4, rel=1e-9)


def test_no_choice_is_above_the_prices() -> None:
    rng = np.random.default_rng(6)
    for _ in range(12):
        packing = plain_packing(rng)
        every = [range(-1, len(of_job)) for of_job in packing.schedules[:4]]
        head = Packing(packing.capacity, packing.schedules[:4])
        best = max(_value(head, choice) for choice in itertools.product(*every))
        assert packing_value(head, integer=True) == pytest.approx(best, rel=1e-12)
        assert Fraction(best) <= proved(head, rng.normal(1, 3, packing.resources))


def _value(packing: Packing, choice: tuple[int, ...]) -> float:
    """Of the schedule ``choice[j]`` of every job, -1: none; 0 where a resource is held beyond its capacity."""
    taken = [of_job[s] for of_job, s in zip(packing.schedules, choice, strict=True) if s >= 0]
    held = np.zeros(packing.resources, dtype=np.int64)
    for one in taken:
        for q, w in one.demand:
            held[q] += w
    return sum(one.utility for one in taken) if (held <= packing.capacity).all() else 0.0


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


def test_nothing_to_pack() -> None:
    nobody = Packing((3,), ((), ()))
    for build in (hadar_primal.build, hadar_dual.build):
        with pytest.raises(InputError, match="no job has a schedule"):
            build(nobody)
