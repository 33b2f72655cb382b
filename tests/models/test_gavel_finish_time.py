"""Finish-time fairness by linear programs against feasibility by scipy, the convex program, and a closed form."""

from __future__ import annotations

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from allocation_problems import is_feasible, is_the_smallest, problems, reaches
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.models import gavel_finish_time
from optsched.models.gavel_allocation import AllocationProblem, effective_throughput, isolated


def wanted(problem: AllocationProblem, rho: float) -> np.ndarray:
    """The throughputs at which every job just keeps rho; inf where it has waited too long for it."""
    alone = effective_throughput(problem.throughputs, isolated(problem.n, problem.scale, problem.capacity))
    left, elapsed = np.asarray(problem.left), np.asarray(problem.elapsed)
    seconds = rho * (np.asarray(problem.iso_so_far) + left / alone) - elapsed
    return np.where(seconds > 0, left / np.where(seconds > 0, seconds, 1.0), np.inf)


def can_keep(problem: AllocationProblem, rho: float, capacity: np.ndarray | None = None) -> bool:
    rates = wanted(problem, rho)
    return bool(np.isfinite(rates).all()) and reaches(problem, rates, capacity)


def test_by_hand() -> None:
    # one GPU, isolated shares of 1/2: D = (20, 5 + 40); (10/x) / 20 = (10 + 20/(1-x)) / 45, so x^2 - 5.25 x + 2.25 = 0
    problem = AllocationProblem(
        np.ones((2, 1)),
        np.array([1, 1]),
        np.array([1.0]),
        elapsed=np.array([0.0, 10.0]),
        left=np.array([10.0, 20.0]),
        iso_so_far=np.array([0.0, 5.0]),
    )
    x = (5.25 - math.sqrt(5.25**2 - 9)) / 2
    found = gavel_finish_time.allocate(problem)
    assert gavel_finish_time.isolated_finish(problem).tolist() == [20, 45]
    assert found.value == pytest.approx(0.5 / x, rel=1e-8)
    assert found.X[:, 0] == pytest.approx([x, 1 - x], abs=1e-7)
    # x_0 = 1 / (2 rho), x_1 = 20 / (45 rho - 10), x_0 + x_1 = c: d rho / d c = -1 / (1 / (2 rho^2) + 900 / (45 rho - 10)^2)
    rho = found.value
    assert found.prices == pytest.approx([-1 / (1 / (2 * rho**2) + 900 / (45 * rho - 10) ** 2)], rel=1e-6)


def test_jobs_that_start_alike_get_a_share_as_good_as_their_own() -> None:
    # nothing done yet, one type: everybody's isolated share is optimal, rho = 1
    problem = AllocationProblem(
        np.array([[3.0], [5.0], [1.0]]),
        np.array([1, 1, 1]),
        np.array([2.0]),
        elapsed=np.zeros(3),
        left=np.array([10.0, 20.0, 30.0]),
        iso_so_far=np.zeros(3),
    )
    found = gavel_finish_time.allocate(problem)
    assert found.value == pytest.approx(1, rel=1e-8)
    np.testing.assert_allclose(found.X, np.full((3, 1), 2 / 3), rtol=1e-7)


@settings(max_examples=12)
@given(problems())
def test_it_is_where_a_bisection_ends(problem: AllocationProblem) -> None:
    found = gavel_finish_time.allocate(problem)
    assert is_feasible(problem, found)
    assert gavel_finish_time.ratios(problem, found.X).max() == pytest.approx(found.value, rel=1e-12)
    assert is_the_smallest(found.value, lambda rho: can_keep(problem, rho))


@settings(max_examples=12)
@given(problems())
def test_the_convex_program_has_the_same_optimum(problem: AllocationProblem) -> None:
    program = gavel_finish_time.build(problem)
    program.solve(solver=cp.CLARABEL)
    assert program.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    # an interior point is exact to an absolute 1e-5 or so here (ratios are of the order of 1); the test before is sharp
    assert gavel_finish_time.allocate(problem).value == pytest.approx(program.value, rel=1e-5, abs=2e-5)


@settings(max_examples=12)
@given(problems(), st.integers(0, 2), st.sampled_from([-1.0, -0.25, 0.5, 3.0]))
def test_prices_are_slopes_in_the_capacities(problem: AllocationProblem, r: int, change: float) -> None:
    found = gavel_finish_time.allocate(problem)
    assert found.prices is not None
    assert (found.prices <= 0).all()
    capacity = problem.capacity.copy()
    capacity[r % capacity.size] = max(capacity[r % capacity.size] + change, 0.0)
    # the least maximum of convex functions is convex in the right-hand sides: never below its tangent
    below = found.value + float(found.prices @ (capacity - problem.capacity))
    assert not can_keep(problem, below * (1 - 1e-6) - 1e-6, capacity)


@settings(max_examples=6)
@given(problems(), st.sampled_from([1e-6, 1e6]))
def test_units_of_work_and_time_do_not_matter(problem: AllocationProblem, unit: float) -> None:
    rho, left = gavel_finish_time.allocate(problem).value, np.asarray(problem.left)
    steps = replace(problem, throughputs=problem.throughputs * unit, left=left * unit)
    assert gavel_finish_time.allocate(steps).value == pytest.approx(rho, rel=1e-7)
    seconds = replace(
        problem,
        throughputs=problem.throughputs / unit,
        elapsed=np.asarray(problem.elapsed) * unit,
        iso_so_far=np.asarray(problem.iso_so_far) * unit,
    )
    assert gavel_finish_time.allocate(seconds).value == pytest.approx(rho, rel=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_many_jobs_with_numbers_as_measured(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 40
    problem = AllocationProblem(
        10 ** rng.uniform(-1, 2.5, (n, 3)),
        rng.choice([1, 2, 4], n),
        np.array([8.0, 16.0, 24.0]),
        elapsed=rng.uniform(0, 1e5, n),
        left=10 ** rng.uniform(2, 7, n),
        iso_so_far=rng.uniform(0, 1e5, n),
    )
    found = gavel_finish_time.allocate(problem)
    program = gavel_finish_time.build(problem)
    program.solve(solver=cp.CLARABEL)
    assert found.value == pytest.approx(program.value, rel=1e-6)
    assert is_the_smallest(found.value, lambda rho: can_keep(problem, rho))


@pytest.mark.parametrize("field", ["elapsed", "left", "iso_so_far"])
def test_it_needs_the_history(field: str) -> None:
    one = np.ones(1)
    full = AllocationProblem(np.ones((1, 1)), np.array([1]), one, elapsed=one, left=one, iso_so_far=one)
    with pytest.raises(InputError, match=f"{field} = None: finish-time fairness needs it"):
        gavel_finish_time.allocate(replace(full, **{field: None}))
