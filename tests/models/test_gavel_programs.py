"""Gavel's programs: by hand, where a bisection over scipy ends, in exact fractions; their prices as slopes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from policies.gavel_problems import is_feasible, is_the_largest, most, optimum, problem_of, problems, reaches

from optsched.models import (
    gavel_fifo,
    gavel_finish_time,
    gavel_makespan,
    gavel_max_min,
    gavel_max_sum,
    gavel_proportional,
)
from optsched.models.gavel_allocation import AllocationProblem, equal_share, isolated_share, prices


def solved(model: Any, problem: AllocationProblem) -> tuple[float, np.ndarray, np.ndarray]:
    """(optimum, X f64[n, R], prices f64[R])."""
    program = model.build(problem)
    value = optimum(program)
    return value, program.var_dict["X"].value, prices(program)


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_max_min() -> None:
    # X^equal = (1/3, 2/3): levels (1 + 3 x) / 2 and (2 - x) 3/4 with x of the one fast GPU; equal at x = 4/9
    value, X, price = solved(gavel_max_min, problem_of([[4, 1], [2, 1]], [1, 1], [1, 2]))
    assert value == pytest.approx(7 / 6, rel=1e-9)
    np.testing.assert_allclose(X, np.array([[4 / 9, 5 / 9], [5 / 9, 4 / 9]]), rtol=0, atol=1e-9)
    assert price == pytest.approx([1 / 2, 0], abs=1e-9)  # with X^equal held, t = (c_1 + 4/3) / 2


def test_max_sum() -> None:
    # two GPUs of one type; a single job at 3 steps/s and a gang of 2 at 5, so 3 and 2.5 a GPU
    value, X, price = solved(gavel_max_sum, problem_of([[3], [5]], [1, 2], [2]))
    assert (value, X[:, 0], price) == (pytest.approx(5.5), pytest.approx([1, 0.5]), pytest.approx([2.5]))


def test_fifo_where_late_jobs_outweigh_an_early_gang() -> None:
    value, X, _ = solved(gavel_fifo, problem_of([[6], [1], [2], [3]], [3, 1, 1, 1], [3]))
    assert value == pytest.approx(4 / 3 + 3 + 2, rel=1e-9)
    assert X[:, 0] == pytest.approx([1 / 3, 1, 1, 0], abs=1e-9)
    # two GPUs, three jobs of 1: a third GPU would serve the last, of importance 1
    assert solved(gavel_fifo, problem_of([[5], [7], [9]], [1, 1, 1], [2]))[2] == pytest.approx([1], rel=1e-9)


def test_makespan() -> None:
    # x of the fast GPU to job 0, the rest to job 1: (1 + 3 x) / 40 = (3 - 2 x) / 30 at x = 9/17; rate = 11/170
    value, X, price = solved(gavel_makespan, problem_of([[4, 1], [3, 1]], [1, 1], [1, 1], left=[40, 30]))
    assert value == pytest.approx(11 / 170, rel=1e-9)
    assert X[:, 0] == pytest.approx([9 / 17, 8 / 17], abs=1e-9)
    assert price == pytest.approx([6 / 170, 0], rel=1e-7, abs=1e-9)  # x_0 + x_1 = c, rate = (3 + 2 + 6 c) / 170


def test_finish_time() -> None:
    # one GPU, isolated shares of 1/2: D = (20, 5 + 40); (10/x) / 20 = (10 + 20/(1-x)) / 45, so x^2 - 5.25 x + 2.25 = 0
    problem = problem_of([[1], [1]], [1, 1], [1], elapsed=[0, 10], left=[10, 20])
    problem = replace(problem, isolated_so_far=np.array([0.0, 5.0]))
    x = (5.25 - math.sqrt(5.25**2 - 9)) / 2
    value, X, price = solved(gavel_finish_time, problem)
    assert gavel_finish_time.isolated_finish(problem).tolist() == [20, 45]
    assert value == pytest.approx(0.5 / x, rel=1e-6)
    assert X[:, 0] == pytest.approx([x, 1 - x], abs=1e-5)
    # x_0 = 1 / (2 rho), x_1 = 20 / (45 rho - 10), x_0 + x_1 = c
    assert price == pytest.approx([-1 / (1 / (2 * value**2) + 900 / (45 * value - 10) ** 2)], rel=1e-3)


def test_proportional() -> None:
    # one GPU, weights 1 and 3: shares 1/4 and 3/4, whatever the throughputs; a GPU more is worth sum w / c
    value, X, price = solved(gavel_proportional, problem_of([[8], [2]], [1, 1], [1], weight=[1, 3]))
    assert X[:, 0] == pytest.approx([1 / 4, 3 / 4], rel=1e-4)
    assert value == pytest.approx(math.log(2) + 3 * math.log(1.5), rel=1e-6)
    assert price == pytest.approx([4], rel=1e-4)
    # one GPU of each; x of the first to job 0: (1 + x)(3 - 2 x) is largest at x = 1/4
    _, X, _ = solved(gavel_proportional, problem_of([[2, 1], [3, 1]], [1, 1], [1, 1]))
    np.testing.assert_allclose(X, np.array([[1 / 4, 3 / 4], [3 / 4, 1 / 4]]), rtol=0, atol=1e-4)


def test_equal_and_isolated_shares() -> None:
    capacity = np.array([8.0, 16.0, 24.0])
    assert equal_share(capacity) == pytest.approx([1 / 6, 1 / 3, 1 / 2], rel=1e-15)
    # 12 jobs: 4 GPUs each; a gang of 8 gets 1/2 of its time, smaller ones are rescaled to all of theirs
    rows = isolated_share(np.array([8, 4, 1] + [1] * 9), capacity)
    whole = np.array([1, 2, 3]) / 6
    assert rows[:3] == pytest.approx(np.array([whole / 2, whole, whole]), rel=1e-15)


# --- random problems -------------------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(problems())
def test_levels_are_where_a_bisection_ends(problem: AllocationProblem) -> None:
    jobs = problem.jobs
    level = solved(gavel_max_min, problem)[0]
    equal = jobs.rate @ (problem.capacity / problem.capacity.sum())
    wanted = jobs.weight * equal / jobs.gang
    assert is_the_largest(level, lambda t: reaches(problem, t * wanted))
    assert is_the_largest(solved(gavel_makespan, problem)[0], lambda rate: reaches(problem, rate * jobs.left))


@settings(max_examples=12)
@given(problems())
def test_finish_time_is_where_a_bisection_ends(problem: AllocationProblem) -> None:
    jobs, D = problem.jobs, gavel_finish_time.isolated_finish(problem)

    def can_keep(inverse: float) -> bool:
        seconds = D / inverse - jobs.elapsed
        return bool((seconds > 0).all()) and reaches(problem, jobs.left / np.maximum(seconds, 1e-300))

    # an interior point is exact to 1e-5 or so here
    assert is_the_largest(1 / solved(gavel_finish_time, problem)[0], can_keep, 5e-5)


@settings(max_examples=12)
@given(problems())
def test_sums_are_scipys(problem: AllocationProblem) -> None:
    jobs = problem.jobs
    importance = np.arange(len(jobs.rate), 0, -1.0)[:, None] / jobs.rate.max(axis=1, keepdims=True)
    assert solved(gavel_fifo, problem)[0] == pytest.approx(most(problem, importance * jobs.rate), rel=1e-7)
    assert solved(gavel_max_sum, problem)[0] == pytest.approx(most(problem, jobs.rate), rel=1e-7)


@settings(max_examples=8)
@given(problems())
def test_no_allocation_has_a_larger_sum_of_relative_changes_than_the_proportional_one(
    problem: AllocationProblem,
) -> None:
    problem = replace(problem, capacity=np.maximum(problem.capacity, 1.0))  # an interior point needs an interior
    value, X, _ = solved(gavel_proportional, problem)
    jobs = problem.jobs
    thr = (jobs.rate * X).sum(axis=1)
    assert float(jobs.weight @ np.log(thr)) == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert most(problem, jobs.rate * (jobs.weight / thr)[:, None]) <= jobs.weight.sum() * (1 + 1e-3)


@settings(max_examples=6)
@given(problems(), st.integers(0, 2), st.sampled_from([-0.25, 0.5, 3.0]))
def test_optima_are_feasible_and_prices_are_slopes_in_the_capacities(
    problem: AllocationProblem, r: int, change: float
) -> None:
    problem = replace(problem, capacity=np.maximum(problem.capacity, 1.0))
    more = problem.capacity + change * (np.arange(problem.capacity.size) == r % problem.capacity.size)
    for model in (gavel_fifo, gavel_makespan, gavel_max_sum, gavel_proportional):
        value, X, price = solved(model, problem)
        assert is_feasible(problem, X)
        assert (price >= -1e-7 * (1 + abs(value))).all()
        # concave in c: above no capacity does it reach more than the price says
        other = solved(model, replace(problem, capacity=more))[0]
        assert other <= value + float(price @ (more - problem.capacity)) + 1e-4 * (1 + abs(value)), model.__name__


@settings(max_examples=3)
@given(problems(), st.sampled_from([1e-3, 1e3]))
def test_the_unit_of_work_changes_values_as_it_should(problem: AllocationProblem, unit: float) -> None:
    jobs = problem.jobs
    scaled = replace(problem, jobs=replace(jobs, rate=jobs.rate * unit, left=jobs.left * unit))
    for model, factor in ((gavel_fifo, 1.0), (gavel_makespan, 1.0), (gavel_max_min, 1.0), (gavel_max_sum, unit)):
        value = solved(model, problem)[0]
        assert solved(model, scaled)[0] == pytest.approx(value * factor, rel=1e-6), model.__name__
