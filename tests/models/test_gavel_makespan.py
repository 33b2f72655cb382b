"""Gavel's makespan: the linear program against feasibility by scipy, hand-solved problems, and Gavel's own bisection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from allocation_problems import is_feasible, is_the_smallest, problems, reaches
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.models import gavel_makespan
from optsched.models.gavel_allocation import AllocationProblem, effective_throughput
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session


def two_jobs() -> AllocationProblem:
    """Job 0 alone on the fast GPU and then some: work 40 and 30 at rates (4, 1) and (3, 1) on one GPU of each type."""
    rates = np.array([[4.0, 1.0], [3.0, 1.0]])
    return AllocationProblem(rates, np.array([1, 1]), np.array([1.0, 1.0]), left=np.array([40.0, 30.0]))


def test_by_hand() -> None:
    # x of the fast GPU to job 0, the rest to job 1: (1 + 3 x) / 40 = (3 - 2 x) / 30 at x = 9/17; rate = 11/170
    found = gavel_makespan.allocate(two_jobs())
    assert found.value == pytest.approx(170 / 11, rel=1e-9)
    assert found.X[:, 0] == pytest.approx([9 / 17, 8 / 17], abs=1e-9)
    # more of the fast one: x_0 + x_1 = c, rate = (3 + 2 + 6 c) / 170 (each (1 + 3 x_0) / 40, (1 + 2 x_1) / 30)
    assert found.prices == pytest.approx([-((170 / 11) ** 2) * 6 / 170, 0], rel=1e-7, abs=1e-7)
    program = gavel_makespan.build(two_jobs())
    assert Session(compile(program)).solve().value == pytest.approx(11 / 170, rel=1e-9)


@settings(max_examples=12)
@given(problems())
def test_it_is_where_a_bisection_ends(problem: AllocationProblem) -> None:
    found = gavel_makespan.allocate(problem)
    assert problem.left is not None
    assert is_feasible(problem, found)
    assert (problem.left / effective_throughput(problem.throughputs, found.X)).max() == pytest.approx(
        found.value, rel=1e-7
    )
    assert is_the_smallest(found.value, lambda T: reaches(problem, np.asarray(problem.left) / T))


@settings(max_examples=12)
@given(problems(), st.integers(0, 2), st.sampled_from([-1.0, -0.25, 0.5, 3.0]))
def test_prices_are_slopes_in_the_capacities(problem: AllocationProblem, r: int, change: float) -> None:
    found = gavel_makespan.allocate(problem)
    assert found.prices is not None
    assert problem.left is not None
    assert (found.prices <= 0).all()
    capacity = problem.capacity.copy()
    capacity[r % capacity.size] = max(capacity[r % capacity.size] + change, 0.0)
    # 1 / T is concave in c, so T is convex: never below its tangent
    below = (found.value + float(found.prices @ (capacity - problem.capacity))) * (1 - 1e-6)
    assert below <= 0 or not reaches(problem, problem.left / below, capacity)


@settings(max_examples=6)
@given(problems(), st.sampled_from([1e-6, 1e7]))
def test_units_of_work_and_time_do_not_matter(problem: AllocationProblem, unit: float) -> None:
    T, left = gavel_makespan.allocate(problem).value, np.asarray(problem.left)
    steps = replace(problem, throughputs=problem.throughputs * unit, left=left * unit)
    assert gavel_makespan.allocate(steps).value == pytest.approx(T, rel=1e-7)
    assert gavel_makespan.allocate(replace(problem, left=left * unit)).value == pytest.approx(T * unit, rel=1e-7)


@settings(max_examples=3)
@given(problems(), st.sampled_from([1e2, 1e5]))
def test_gavels_bisection_ends_within_five_per_cent(problem: AllocationProblem, longer: float) -> None:
    problem = replace(problem, left=np.asarray(problem.left) * longer)
    best = gavel_makespan.allocate(problem).value
    found = gavel_makespan.allocate_by_bisection(problem)
    assert found.prices is None
    assert is_feasible(problem, found)
    finish = np.asarray(problem.left) / effective_throughput(problem.throughputs, found.X)
    assert finish.max() <= found.value * (1 + 1e-7)
    assert best * (1 - 1e-7) <= found.value <= max(1.05 * best, 105)


def test_gavels_bisection_at_its_ends() -> None:
    # too short: it never goes below 100 s; too long for 1e6 s: the upper end grows tenfold
    short = gavel_makespan.allocate_by_bisection(two_jobs())
    assert 100 <= short.value <= 105
    long = replace(two_jobs(), left=np.array([40.0, 30.0]) * 1e7)
    best = gavel_makespan.allocate(long).value
    assert best == pytest.approx(170 / 11 * 1e7, rel=1e-9)
    assert best <= gavel_makespan.allocate_by_bisection(long).value <= 1.05 * best


def test_it_needs_the_steps_left() -> None:
    for policy in (gavel_makespan.allocate, gavel_makespan.allocate_by_bisection):
        with pytest.raises(InputError, match="left = None: makespan needs it"):
            policy(replace(two_jobs(), left=None))
