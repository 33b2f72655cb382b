"""First in, first out: the strict order against scipy job by job, Gavel's weighted program, and whole types."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from allocation_problems import is_feasible, most, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.models import gavel_fifo
from optsched.models.gavel_allocation import AllocationProblem, effective_throughput


def gang_first() -> AllocationProblem:
    """One type with 3 GPUs: a gang of 3, then three jobs of 1."""
    return AllocationProblem(np.array([[6.0], [1.0], [2.0], [3.0]]), np.array([3, 1, 1, 1]), np.array([3.0]))


def test_late_jobs_outweigh_an_early_gang_but_not_in_the_strict_order() -> None:
    weighted = gavel_fifo.allocate_by_importance(gang_first())
    assert weighted.value == pytest.approx(4 / 3 + 3 + 2, rel=1e-9)
    assert weighted.X[:, 0] == pytest.approx([1 / 3, 1, 1, 0], abs=1e-9)
    strict = gavel_fifo.allocate(gang_first())
    assert strict.value == pytest.approx(4, rel=1e-9)
    assert strict.X[:, 0] == pytest.approx([1, 0, 0, 0], abs=1e-8)
    assert gavel_fifo.whole_types(gang_first()).X[:, 0].tolist() == [1, 0, 0, 0]


def test_the_price_of_the_weighted_program() -> None:
    # two GPUs, three jobs of 1: a third GPU would serve the last of importance 1
    problem = AllocationProblem(np.array([[5.0], [7.0], [9.0]]), np.array([1, 1, 1]), np.array([2.0]))
    found = gavel_fifo.allocate_by_importance(problem)
    assert found.value == pytest.approx(5, rel=1e-9)
    assert found.prices == pytest.approx([1], rel=1e-9)


@settings(max_examples=12)
@given(problems())
def test_each_job_gets_the_most_that_earlier_ones_leave(problem: AllocationProblem) -> None:
    found = gavel_fifo.allocate(problem)
    assert is_feasible(problem, found)
    floors = np.zeros(problem.n)
    for m in range(problem.n):
        only_m = np.zeros_like(problem.throughputs)
        only_m[m] = problem.throughputs[m]
        floors[m] = max(most(problem, only_m, floors), 0.0)
    assert effective_throughput(problem.throughputs, found.X) == pytest.approx(floors, rel=1e-6, abs=1e-6)
    weighted = gavel_fifo.allocate_by_importance(problem)
    assert is_feasible(problem, weighted)
    fast = problem.throughputs.max(axis=1, keepdims=True)
    importance = problem.n - np.arange(problem.n)[:, None]
    assert weighted.value == pytest.approx(most(problem, importance * problem.throughputs / fast), rel=1e-7)
    assert found.value <= weighted.value * (1 + 1e-7)


@settings(max_examples=12)
@given(problems(most=8), st.none() | st.integers(0, 1000))
def test_whole_types_are_a_queue(problem: AllocationProblem, seed: int | None) -> None:
    rng = None if seed is None else np.random.default_rng(seed)
    found = gavel_fifo.whole_types(problem, rng=rng)
    assert is_feasible(problem, found)
    assert set(np.unique(found.X)) <= {0.0, 1.0}
    runs = found.X.sum(axis=1) > 0
    assert (np.diff(runs.astype(int)) <= 0).all()  # nobody overtakes
    assert (problem.throughputs[found.X > 0] > 0).all()
    free = problem.capacity - problem.scale @ found.X
    for m in np.flatnonzero(~runs)[:1]:  # the head of those who wait has room nowhere
        assert not ((free >= problem.scale[m]) & (problem.throughputs[m] > 0)).any()
    if rng is None:  # the first has its fastest among the types that hold it
        fits = problem.throughputs[0] * (problem.capacity >= problem.scale[0])
        assert (found.X[0] * problem.throughputs[0]).sum() == fits.max()


def test_running_jobs_keep_their_types_and_the_head_inherits_what_gets_free() -> None:
    rates = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 1.0], [1.0, 5.0]])
    problem = AllocationProblem(rates, np.array([1, 1, 2, 1]), np.array([2.0, 1.0]))
    # job 0 holds the slow type: job 1 takes the fast, the gang of 2 blocks, job 3 waits behind it
    X = gavel_fifo.whole_types(problem, held=np.array([0, -1, -1, -1])).X
    assert X.tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    assert gavel_fifo.whole_types(problem, held=np.array([1, -1, -1, -1])).X.tolist() == [
        [0, 1],
        [1, 0],
        [0, 0],
        [0, 0],
    ]


def test_a_random_type_is_drawn_evenly_among_those_with_room_on_which_the_job_runs() -> None:
    problem = AllocationProblem(np.array([[1.0, 9.0, 0.0, 2.0, 5.0]]), np.array([2]), np.array([2.0, 4, 4, 1, 2]))
    rng = np.random.default_rng(0)
    drawn = Counter(int(gavel_fifo.whole_types(problem, rng=rng).X[0].argmax()) for _ in range(3000))
    assert set(drawn) == {0, 1, 4}
    assert all(count == pytest.approx(1000, abs=120) for count in drawn.values())  # 4.6 standard deviations
