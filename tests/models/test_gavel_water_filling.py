"""Water filling: what defines max-min fairness, by scipy; symmetry, and hand-solved problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from allocation_problems import is_feasible, most, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.models import gavel_max_min, gavel_water_filling
from optsched.models.gavel_allocation import AllocationProblem, effective_throughput, fill_levels


def nobody_can_rise(problem: AllocationProblem, X: np.ndarray) -> bool:
    """What makes X max-min fair: the most that job m can have, while no job on its weighted level or below loses, it has."""
    levels = fill_levels(problem, X) / problem.w
    thr = effective_throughput(problem.throughputs, X)
    for m in range(problem.n):  # 1e-9 off the others may well be 1e-5 on m: exchanges between types multiply
        gain = np.zeros_like(problem.throughputs)
        gain[m] = problem.throughputs[m]
        poorer = levels <= levels[m] * (1 + 1e-7) + 1e-7
        if most(problem, gain, np.where(poorer, thr * (1 - 1e-9), 0.0)) > thr[m] * (1 + 1e-4):
            return False
    return True


def test_by_hand() -> None:
    # two GPUs of one type, weights 1, 1, 4: the third is done at 1 (all of its time), the others share what is left
    problem = AllocationProblem(np.ones((3, 1)), np.array([1, 1, 1]), np.array([2.0]), np.array([1.0, 1.0, 4.0]))
    found = gavel_water_filling.fill(problem, lambda unfixed: np.where(unfixed, problem.w, 0))
    assert found.levels == pytest.approx([1 / 2, 1 / 2, 1], abs=1e-8)
    assert found.X[:, 0] == pytest.approx([1 / 2, 1 / 2, 1], abs=1e-8)
    assert found.rounds.tolist() in ([1, 1, 0], [1, 2, 0], [2, 1, 0])
    allocation = gavel_water_filling.allocate(problem)
    assert allocation.value == pytest.approx(1 / 4, rel=1e-8)
    assert allocation.prices is None
    # plain max-min stops at 1/4 and says nothing about the others
    assert gavel_max_min.allocate(problem).value == pytest.approx(1 / 4, rel=1e-9)


@settings(max_examples=12)
@given(problems())
def test_nobody_can_rise_without_a_poorer_one_falling(problem: AllocationProblem) -> None:
    found = gavel_water_filling.allocate(problem)
    assert is_feasible(problem, found)
    assert nobody_can_rise(problem, found.X)
    assert found.value == pytest.approx(gavel_max_min.allocate(problem).value, rel=1e-7)


@settings(max_examples=8)
@given(problems(most=4), st.integers(1, 3))
def test_equal_jobs_get_equal_throughputs(problem: AllocationProblem, copies: int) -> None:
    of = np.append(np.arange(problem.n), np.zeros(copies, dtype=int))
    more = AllocationProblem(problem.throughputs[of], problem.scale[of], problem.capacity, weights=problem.w[of])
    thr = effective_throughput(more.throughputs, gavel_water_filling.allocate(more).X)
    assert thr[problem.n :] == pytest.approx(np.full(copies, thr[0]), rel=1e-6)


@settings(max_examples=8)
@given(problems(), st.sampled_from([1e-9, 1e9]), st.lists(st.sampled_from([1e-6, 2.0, 1e5]), min_size=5, max_size=5))
def test_units_and_the_order_of_jobs_do_not_matter(problem: AllocationProblem, unit: float, rates: list[float]) -> None:
    order = np.arange(problem.n)[::-1]
    other = replace(
        problem,
        throughputs=(problem.throughputs * np.array(rates[: problem.n])[:, None])[order],
        scale=problem.scale[order],
        weights=problem.w[order] * unit,
        elapsed=None,
        left=None,
        iso_so_far=None,
    )
    levels = fill_levels(problem, gavel_water_filling.allocate(problem).X)
    turned = fill_levels(other, gavel_water_filling.allocate(other).X)
    assert turned[order] == pytest.approx(levels, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_many_jobs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    problem = AllocationProblem(
        rng.uniform(1, 50, (n, 3)), rng.choice([1, 2, 4], n), np.array([4.0, 6, 8]), rng.choice([1.0, 5.0], n)
    )
    found = gavel_water_filling.fill(problem, lambda unfixed: np.where(unfixed, problem.w, 0))
    assert (found.rounds >= 0).all()
    assert found.rounds.max() >= 1  # somebody goes on after the first bottleneck
    assert fill_levels(problem, found.X) == pytest.approx(found.levels, rel=1e-7)
    assert nobody_can_rise(problem, found.X)
    # plain max-min stops before that
    assert not nobody_can_rise(problem, gavel_max_min.allocate(problem).X)
