"""Pairs on the same GPUs: by hand, never below the policy without them, and against scipy column by column."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from allocation_problems import problems
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from optsched.errors import InputError
from optsched.models import gavel_max_min, gavel_max_sum, gavel_space_sharing
from optsched.models.gavel_allocation import AllocationProblem, effective_throughput, equal_share
from optsched.models.gavel_space_sharing import Pairs


@st.composite
def shared_problems(draw: st.DrawFn) -> tuple[AllocationProblem, Pairs]:
    """A problem and every pair of jobs of equal scale, at 0 to 100 % of their throughputs alone."""
    problem = draw(problems(most=4))
    of = [(i, k) for i, k in combinations(range(problem.n), 2) if problem.scale[i] == problem.scale[k]]
    R = problem.capacity.size
    share = draw(
        st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.9, 1.0]), min_size=2 * R * len(of), max_size=2 * R * len(of))
    )
    jobs = np.array(of, dtype=int).reshape(-1, 2)
    return problem, Pairs(jobs, problem.throughputs[jobs] * np.array(share).reshape(-1, 2, R))


def by_columns(problem: AllocationProblem, pairs: Pairs, objective: str) -> float:
    """The optimum with one column for each (job or pair, type), written as loops."""
    equal = effective_throughput(problem.throughputs, equal_share(problem.capacity))
    R, n = problem.capacity.size, problem.n
    columns: list[tuple[dict[int, float], int, int]] = []  # steps/s of the jobs in it, type, GPUs
    for m in range(n):
        columns += [({m: problem.throughputs[m, r]}, r, int(problem.scale[m])) for r in range(R)]
    for (i, k), T2 in zip(pairs.jobs.tolist(), pairs.throughputs, strict=True):
        columns += [({i: T2[0, r], k: T2[1, r]}, r, int(problem.scale[i])) for r in range(R)]
    rows, right = np.zeros((2 * n + R, len(columns) + 1)), np.concatenate([np.zeros(n), np.ones(n), problem.capacity])
    gain = np.zeros(len(columns) + 1)
    for c, (rates, r, gpus) in enumerate(columns):
        for m, rate in rates.items():
            rows[m, c] = -rate * problem.scale[m] / problem.w[m] / equal[m]
            rows[n + m, c] = 1
        rows[2 * n + r, c] = gpus
        gain[c] = sum(rates.values())
    rows[:n, -1] = 1
    if objective == "max_min":
        gain = np.append(np.zeros(len(columns)), 1.0)
    found = linprog(-gain, A_ub=rows, b_ub=right, method="highs")
    return -float(found.fun)


@pytest.mark.parametrize("scale", [1, 2])
def test_by_hand(scale: int) -> None:
    # room for one of two jobs; together both run at 80 %
    problem = AllocationProblem(np.ones((2, 1)), np.full(2, scale), np.array([float(scale)]))
    pairs = Pairs(np.array([[0, 1]]), np.full((1, 2, 1), 0.8))
    fair = gavel_space_sharing.allocate(problem, pairs)
    assert fair.value == pytest.approx(0.8 * scale, rel=1e-9)
    np.testing.assert_allclose(fair.Y, np.ones((1, 1)), rtol=0, atol=1e-9)
    np.testing.assert_allclose(fair.X, np.zeros((2, 1)), rtol=0, atol=1e-9)
    assert fair.throughput(problem, pairs) == pytest.approx([0.8, 0.8], rel=1e-9)
    total = gavel_space_sharing.allocate(problem, pairs, "max_sum")
    assert total.value == pytest.approx(1.6, rel=1e-9)
    # with room for one and a half: x alone each and y together, 2 x + y = 3/2, x + y = 1: x = y = 1/2
    more = AllocationProblem(np.ones((2, 1)), np.full(2, scale), np.array([1.5 * scale]))
    found = gavel_space_sharing.allocate(more, pairs)
    assert found.value == pytest.approx(0.9 * scale, rel=1e-9)
    assert found.prices == pytest.approx([0.2], rel=1e-9)  # a GPU more: 1 / scale of x, at 0.2 over y, times scale


@settings(max_examples=12)
@given(shared_problems(), st.sampled_from(gavel_space_sharing.OBJECTIVES))
def test_it_is_scipys_optimum(case: tuple[AllocationProblem, Pairs], objective: str) -> None:
    problem, pairs = case
    found = gavel_space_sharing.allocate(problem, pairs, objective)
    assert found.value == pytest.approx(by_columns(problem, pairs, objective), rel=1e-7, abs=1e-9)
    plain = gavel_max_min.allocate(problem) if objective == "max_min" else gavel_max_sum.allocate(without_cost(problem))
    assert found.value >= plain.value * (1 - 1e-7)
    # feasible, and worth what it says
    time = found.X.sum(axis=1)
    np.add.at(time, pairs.jobs, found.Y.sum(axis=1)[:, None])
    used = problem.scale @ found.X + problem.scale[pairs.jobs[:, 0]] @ found.Y
    assert found.Y.shape == (len(pairs.jobs), problem.capacity.size)
    assert (time <= 1 + 1e-7).all()
    assert (used <= problem.capacity + 1e-7).all()
    thr = found.throughput(problem, pairs)
    equal = effective_throughput(problem.throughputs, equal_share(problem.capacity))
    worth = (problem.scale * thr / equal / problem.w).min() if objective == "max_min" else thr.sum()
    assert worth == pytest.approx(found.value, rel=1e-6, abs=1e-6)


@settings(max_examples=6)
@given(shared_problems(), st.sampled_from(gavel_space_sharing.OBJECTIVES))
def test_pairs_no_faster_than_taking_turns_change_nothing(
    case: tuple[AllocationProblem, Pairs], objective: str
) -> None:
    problem, pairs = case
    turns = Pairs(pairs.jobs, problem.throughputs[pairs.jobs] * np.array([0.3, 0.7])[None, :, None])
    plain = gavel_max_min.allocate(problem) if objective == "max_min" else gavel_max_sum.allocate(without_cost(problem))
    assert gavel_space_sharing.allocate(problem, turns, objective).value == pytest.approx(plain.value, rel=1e-7)


def without_cost(problem: AllocationProblem) -> AllocationProblem:
    return AllocationProblem(problem.throughputs, problem.scale, problem.capacity)


def test_refusals() -> None:
    problem = AllocationProblem(np.ones((3, 1)), np.array([1, 1, 2]), np.array([2.0]))
    half = np.full((1, 2, 1), 0.5)
    with pytest.raises(InputError, match=r"pair \(0, 2\) has gangs of \(1, 2\) GPUs"):
        gavel_space_sharing.allocate(problem, Pairs(np.array([[0, 2]]), half))
    for jobs in ((1, 1), (0, 3), (-1, 0)):
        with pytest.raises(InputError, match=r"not a pair of jobs \(expected: two of 0..2\)"):
            gavel_space_sharing.allocate(problem, Pairs(np.array([jobs]), half))
    with pytest.raises(InputError, match=r"wrong shape.*1 GPU types"):
        gavel_space_sharing.allocate(problem, Pairs(np.array([[0, 1]]), np.full((1, 2, 2), 0.5)))
    with pytest.raises(InputError, match=r"throughputs = -0.5: invalid \(expected: steps/s >= 0\)"):
        Pairs(np.array([[0, 1]]), -half)
    with pytest.raises(InputError, match="wrong shape"):
        Pairs(np.array([[0, 1]]), half[:, 0])
    with pytest.raises(InputError, match=r"objective = 'min': invalid \(expected: max_min, max_sum\)"):
        gavel_space_sharing.allocate(problem, Pairs(np.array([[0, 1]]), half), "min")
