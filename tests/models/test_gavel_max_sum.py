"""Max-sum-throughput and min-cost, with and without deadlines, against scipy and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from allocation_problems import is_feasible, most, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.models import gavel_max_sum
from optsched.models.gavel_allocation import AllocationProblem, effective_throughput
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session


def two_gangs(**more: object) -> AllocationProblem:
    """Two GPUs of one type; a single job at 3 steps/s and a gang of 2 at 5, so 3 and 2.5 a GPU."""
    return AllocationProblem(np.array([[3.0], [5.0]]), np.array([1, 2]), np.array([2.0]), **more)  # type: ignore[arg-type]


def test_by_hand() -> None:
    found = gavel_max_sum.allocate(two_gangs())
    assert found.value == pytest.approx(5.5, rel=1e-9)
    assert found.X[:, 0] == pytest.approx([1, 0.5], abs=1e-9)
    assert found.prices == pytest.approx([2.5], rel=1e-9)
    assert Session(compile(gavel_max_sum.build(two_gangs()))).solve().value == pytest.approx(5.5, rel=1e-9)
    dear = gavel_max_sum.allocate(two_gangs(cost=np.array([4.0])))
    assert (dear.value, dear.prices) == (pytest.approx(5.5 / 4), pytest.approx([2.5 / 4]))


def test_a_price_decides_between_types() -> None:
    rates, one = np.array([[4.0, 3.0]]), np.array([1])
    fast = AllocationProblem(rates, one, np.array([1.0, 1.0]))
    np.testing.assert_allclose(gavel_max_sum.allocate(fast).X, np.array([[1.0, 0.0]]), rtol=0, atol=1e-9)
    cheap = gavel_max_sum.allocate(replace(fast, cost=np.array([2.0, 1.0])))
    np.testing.assert_allclose(cheap.X, np.array([[0.0, 1.0]]), rtol=0, atol=1e-9)
    assert cheap.value == pytest.approx(3, rel=1e-9)


def test_deadlines_bind_and_are_dropped_together() -> None:
    # the gang needs 4 steps/s: X_1 = 4/5, which leaves 2 - 8/5 GPUs for the other
    soon = two_gangs(left=np.array([10.0, 40.0]), time_left=np.array([np.inf, 10.0]))
    found = gavel_max_sum.allocate(soon)
    assert found.status == "optimal"
    assert found.X[:, 0] == pytest.approx([0.4, 0.8], abs=1e-9)
    assert found.value == pytest.approx(0.4 * 3 + 4, rel=1e-9)
    assert found.prices == pytest.approx([3], rel=1e-9)
    # 6 steps/s cannot be: then nobody has a deadline, not even the job whose own could be met
    never = two_gangs(left=np.array([10.0, 60.0]), time_left=np.array([1000.0, 10.0]))
    dropped = gavel_max_sum.allocate(never)
    assert dropped.status == gavel_max_sum.WITHOUT_DEADLINES
    assert dropped.value == pytest.approx(5.5, rel=1e-9)
    # a deadline that has passed is none
    late = replace(never, time_left=np.array([1000.0, -1.0]))
    assert gavel_max_sum.allocate(late).status == "optimal"
    assert gavel_max_sum.allocate(replace(late, time_left=np.array([np.inf, 0.0]))).value == pytest.approx(
        5.5, rel=1e-9
    )
    with pytest.raises(InputError, match="left = None: a deadline needs it"):
        gavel_max_sum.allocate(replace(never, left=None))


@settings(max_examples=12)
@given(problems(), st.booleans(), st.sampled_from([1e-6, 1.0, 1e6]))
def test_it_is_scipys_optimum(problem: AllocationProblem, priced: bool, unit: float) -> None:
    problem = replace(problem, cost=np.asarray(problem.cost) * unit if priced else None)
    gain = problem.throughputs / np.asarray(problem.cost) if priced else problem.throughputs
    found = gavel_max_sum.allocate(problem)
    assert is_feasible(problem, found)
    assert float((gain * found.X).sum()) == pytest.approx(found.value, rel=1e-7)
    assert found.value == pytest.approx(most(problem, gain * unit) / unit, rel=1e-7)


@settings(max_examples=12)
@given(problems(), st.lists(st.sampled_from([np.inf, 5.0, 400.0, 2000.0, 9000.0, -3.0]), min_size=5, max_size=5))
def test_deadlines_are_met_or_cannot_be(problem: AllocationProblem, seconds: list[float]) -> None:
    time_left = np.array(seconds[: problem.n])
    problem = replace(problem, time_left=time_left)
    gain, left = problem.throughputs / np.asarray(problem.cost), np.asarray(problem.left)
    needed = np.where(time_left > 0, left / np.abs(time_left), 0.0)
    best, found = most(problem, gain, needed), gavel_max_sum.allocate(problem)
    if best == -np.inf:
        assert found.status == gavel_max_sum.WITHOUT_DEADLINES
        assert found.value == pytest.approx(most(problem, gain), rel=1e-7)
    else:
        assert found.status == "optimal"
        assert found.value == pytest.approx(best, rel=1e-6)
        assert (effective_throughput(problem.throughputs, found.X) >= needed * (1 - 1e-7) - 1e-7).all()


@settings(max_examples=6)
@given(problems(), st.integers(0, 2), st.sampled_from([-1.0, -0.25, 0.5, 3.0]))
def test_prices_are_slopes_in_the_capacities(problem: AllocationProblem, r: int, change: float) -> None:
    found = gavel_max_sum.allocate(replace(problem, cost=None))
    assert found.prices is not None
    assert (found.prices >= 0).all()
    capacity = problem.capacity.copy()
    capacity[r % capacity.size] += max(change, -capacity[r % capacity.size])
    if not ((problem.throughputs > 0) & (problem.scale[:, None] <= capacity)).any(axis=1).all():
        return  # no allocation problem any more
    other = most(replace(problem, capacity=capacity), problem.throughputs)
    assert other <= found.value + float(found.prices @ (capacity - problem.capacity)) + 1e-6 * (1 + found.value)
