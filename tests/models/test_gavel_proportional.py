"""Proportional fairness: by hand, by its certificate, and by the linearised program of scipy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from allocation_problems import is_feasible, most, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.models import gavel_proportional
from optsched.models.gavel_allocation import AllocationProblem, TimeShares, effective_throughput


def test_by_hand() -> None:
    # one GPU, weights 1 and 3: shares 1/4 and 3/4, whatever the throughputs; a GPU more is worth sum w / c
    problem = AllocationProblem(np.array([[8.0], [2.0]]), np.array([1, 1]), np.array([1.0]), np.array([1.0, 3.0]))
    found = gavel_proportional.allocate(problem)
    assert found.X[:, 0] == pytest.approx([1 / 4, 3 / 4], rel=1e-6)
    assert found.value == pytest.approx(math.log(2) + 3 * math.log(1.5), rel=1e-7)
    assert found.prices == pytest.approx([4], rel=1e-6)


def test_by_hand_on_two_types() -> None:
    # one GPU of each; x of the first to job 0: (1 + x)(3 - 2 x) is largest at x = 1/4
    problem = AllocationProblem(np.array([[2.0, 1.0], [3.0, 1.0]]), np.array([1, 1]), np.array([1.0, 1.0]))
    found = gavel_proportional.allocate(problem)
    np.testing.assert_allclose(found.X, np.array([[1 / 4, 3 / 4], [3 / 4, 1 / 4]]), rtol=0, atol=1e-7)
    assert found.value == pytest.approx(math.log(5 / 4) + math.log(5 / 2), rel=1e-7)


@settings(max_examples=8)
@given(problems())
def test_no_allocation_has_a_larger_sum_of_relative_changes(problem: AllocationProblem) -> None:
    found = gavel_proportional.allocate(problem)
    assert is_feasible(problem, found)
    thr = effective_throughput(problem.throughputs, found.X)
    assert float(problem.w @ np.log(thr)) == pytest.approx(found.value, rel=1e-12, abs=1e-12)
    total = float(problem.w.sum())
    assert most(problem, problem.throughputs * (problem.w / thr)[:, None]) <= total * (1 + 2e-8)
    assert -1e-9 * total <= gavel_proportional.optimality_gap(problem, found) <= 1e-8 * total


@settings(max_examples=6)
@given(problems(), st.lists(st.sampled_from([1e-4, 3.0, 1e4]), min_size=5, max_size=5))
def test_units_move_the_value_by_a_constant(problem: AllocationProblem, units: list[float]) -> None:
    unit = np.array(units[: problem.n])
    value = gavel_proportional.allocate(problem).value + float(problem.w @ np.log(unit))
    scaled = replace(problem, throughputs=problem.throughputs * unit[:, None])
    assert gavel_proportional.allocate(scaled).value == pytest.approx(value, abs=1e-7 * problem.w.sum())


@settings(max_examples=6)
@given(problems(most=4))
def test_equal_jobs_get_equal_throughputs(problem: AllocationProblem) -> None:
    twins = np.append(np.arange(problem.n), 0)
    doubled = AllocationProblem(
        problem.throughputs[twins], problem.scale[twins], problem.capacity, weights=problem.w[twins]
    )
    thr = effective_throughput(doubled.throughputs, gavel_proportional.allocate(doubled).X)
    assert thr[-1] == pytest.approx(thr[0], rel=5e-4)  # a gap of 1e-8 allows relative changes of about its root


def test_a_worse_allocation_has_a_gap() -> None:
    problem = AllocationProblem(np.array([[1.0], [1.0]]), np.array([1, 1]), np.array([1.0]))
    best = gavel_proportional.allocate(problem)
    worse = TimeShares(np.array([[0.4], [0.6]]), 2 * math.log(0.24**0.5), best.prices)
    gap = gavel_proportional.optimality_gap(problem, worse)
    assert gap >= best.value - worse.value > 0.01
