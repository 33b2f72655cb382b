"""Gavel's max-min fairness against a bisection over scipy, exact fractions and hand-solved problems."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from allocation_problems import is_feasible, is_the_largest, problems, reaches
from exact_max_min import best_level
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.models import gavel_max_min
from optsched.models.gavel_allocation import AllocationProblem, effective_throughput, equal_share, fill_levels
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session


def wanted(problem: AllocationProblem, t: float) -> np.ndarray:
    """The throughputs of level t."""
    equal = effective_throughput(problem.throughputs, equal_share(problem.capacity))
    return np.asarray(t * problem.w * equal / problem.scale)


def test_by_hand() -> None:
    # X^equal = (1/3, 2/3): levels (1 + 3 x) / 2 and (2 - x) 3/4 with x of the one fast GPU; equal at x = 4/9
    problem = AllocationProblem(np.array([[4.0, 1.0], [2.0, 1.0]]), np.array([1, 1]), np.array([1.0, 2.0]))
    found = gavel_max_min.allocate(problem)
    assert found.value == pytest.approx(7 / 6, rel=1e-9)
    np.testing.assert_allclose(found.X, np.array([[4 / 9, 5 / 9], [5 / 9, 4 / 9]]), rtol=0, atol=1e-9)
    assert found.prices == pytest.approx([1 / 2, 0], abs=1e-9)  # with X^equal held, t = (c_1 + 4/3) / 2
    heavier = gavel_max_min.allocate(replace(problem, weights=np.array([1e9, 1e9])))
    assert heavier.value == pytest.approx(7 / 6 * 1e-9, rel=1e-9)
    assert heavier.prices == pytest.approx([1e-9 / 2, 0], abs=1e-18)
    # knowing no types both share all alike
    assert gavel_max_min.allocate(problem.agnostic()).value == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_exact_optimum_of_two_jobs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates, scale = rng.integers(1, 9, (2, 2)), rng.integers(1, 4, 2)
    capacity, weights = rng.integers(1, 4, 2), rng.integers(1, 4, 2)
    capacity[0] = 3
    exact = best_level(rates.tolist(), scale.tolist(), capacity.tolist(), weights.tolist())
    problem = AllocationProblem(rates.astype(float), scale, capacity.astype(float), weights.astype(float))
    assert gavel_max_min.allocate(problem).value == pytest.approx(float(exact), rel=1e-9)


@settings(max_examples=12)
@given(problems())
def test_it_is_where_a_bisection_ends(problem: AllocationProblem) -> None:
    found = gavel_max_min.allocate(problem)
    assert is_feasible(problem, found)
    assert (fill_levels(problem, found.X) / problem.w).min() == pytest.approx(found.value, rel=1e-7)
    assert is_the_largest(found.value, lambda t: reaches(problem, wanted(problem, t)))


@settings(max_examples=8)
@given(problems(), st.integers(0, 2), st.sampled_from([-1.0, -0.25, 0.5, 3.0]))
def test_prices_are_slopes_in_the_capacities(problem: AllocationProblem, r: int, change: float) -> None:
    found = gavel_max_min.allocate(problem)
    assert found.prices is not None
    assert (found.prices >= 0).all()
    capacity = problem.capacity.copy()
    capacity[r % capacity.size] = max(capacity[r % capacity.size] + change, 0.0)
    # t is concave in c (X^equal held): above no capacity does it reach more than the price says
    beyond = found.value + float(found.prices @ (capacity - problem.capacity))
    assert not reaches(problem, wanted(problem, beyond * (1 + 1e-6) + 1e-6), capacity)


@settings(max_examples=8)
@given(
    problems(),
    st.lists(st.sampled_from([1e-6, 0.5, 3.0, 1e5]), min_size=5, max_size=5),
    st.sampled_from([1e-9, 7.0, 1e9]),
)
def test_units_do_not_matter(problem: AllocationProblem, units: list[float], weight: float) -> None:
    found = gavel_max_min.allocate(problem)
    scaled = replace(problem, throughputs=problem.throughputs * np.array(units[: problem.n])[:, None])
    assert gavel_max_min.allocate(scaled).value == pytest.approx(found.value, rel=1e-7)
    heavier = gavel_max_min.allocate(replace(problem, weights=problem.w * weight))
    assert heavier.value * weight == pytest.approx(found.value, rel=1e-7)


def test_the_house_compiles_the_program_to_the_same_optimum() -> None:
    problem = AllocationProblem(np.array([[4.0, 1.0], [2.0, 1.0]]), np.array([1, 1]), np.array([1.0, 2.0]))
    program = gavel_max_min.build(problem)
    assert isinstance(program, cp.Problem)
    assert Session(compile(program)).solve().value == pytest.approx(7 / 6, rel=1e-9)
