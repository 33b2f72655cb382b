"""Entities that share by weight: hand-solved, and where they are another policy under another name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from allocation_problems import is_feasible, problems
from hypothesis import given, settings

from optsched.errors import InputError
from optsched.models import gavel_fifo, gavel_hierarchical, gavel_water_filling
from optsched.models.gavel_allocation import AllocationProblem, effective_throughput, fill_levels
from optsched.models.gavel_hierarchical import Entity, round_weights


def three_jobs(gpus: float) -> AllocationProblem:
    """Jobs 0 and 1 of one entity, job 2 of another, on GPUs of one type, all alike."""
    return AllocationProblem(np.ones((3, 1)), np.array([1, 1, 1]), np.array([gpus]))


OWNER = np.array([0, 0, 1])


@pytest.mark.parametrize(
    ("rule", "gpus", "levels"),
    [
        ("fairness", 1, [1 / 6, 1 / 6, 2 / 3]),
        ("fairness", 2, [1 / 2, 1 / 2, 1]),  # job 2 has all of its time, the rest is the other entity's
        ("fifo", 1, [1 / 3, 0, 2 / 3]),
        ("fifo", 2, [1, 0, 1]),
        ("fifo", 2.5, [1, 1 / 2, 1]),
    ],
)
def test_by_hand(rule: str, gpus: float, levels: list[float]) -> None:
    found = gavel_hierarchical.allocate(three_jobs(gpus), [Entity(1, rule), Entity(2)], OWNER)
    assert found.X[:, 0] == pytest.approx(levels, abs=1e-8)
    assert found.value == pytest.approx(min(levels[0] + levels[1], levels[2] / 2), abs=1e-8)
    assert found.prices is None


def test_the_weights_of_a_round() -> None:
    problem = AllocationProblem(np.ones((5, 1)), np.ones(5), np.array([1.0]), np.array([1.0, 3.0, 2.0, 7.0, 7.0]))
    entities, of = [Entity(6), Entity(5, "fifo")], np.array([0, 0, 0, 1, 1])
    unfixed = np.ones(5, dtype=bool)
    assert round_weights(problem, entities, of, unfixed).tolist() == [1, 3, 2, 5, 0]
    unfixed[[1, 3]] = False
    assert round_weights(problem, entities, of, unfixed).tolist() == [2, 0, 4, 0, 5]


@settings(max_examples=12)
@given(problems())
def test_entities_of_one_job_are_water_filling(problem: AllocationProblem) -> None:
    found = gavel_hierarchical.allocate(
        replace(problem, weights=None), [Entity(float(w)) for w in problem.w], np.arange(problem.n)
    )
    assert is_feasible(problem, found)
    plain = gavel_water_filling.allocate(problem)
    assert fill_levels(problem, found.X) == pytest.approx(fill_levels(problem, plain.X), rel=1e-6, abs=1e-7)
    assert found.value == pytest.approx(plain.value, rel=1e-6)


@settings(max_examples=12)
@given(problems())
def test_one_entity_that_queues_is_the_strict_order(problem: AllocationProblem) -> None:
    found = gavel_hierarchical.allocate(problem, [Entity(3, "fifo")], np.zeros(problem.n, dtype=int))
    strict = gavel_fifo.allocate(problem)
    T = problem.throughputs
    assert effective_throughput(T, found.X) == pytest.approx(effective_throughput(T, strict.X), rel=1e-6, abs=1e-6)


@settings(max_examples=12)
@given(problems())
def test_one_fair_entity_is_water_filling(problem: AllocationProblem) -> None:
    # weights w_m / (sum over the unfixed) are all w_m times the same number in each round
    found = gavel_hierarchical.allocate(problem, [Entity()], np.zeros(problem.n, dtype=int))
    plain = gavel_water_filling.allocate(problem)
    assert fill_levels(problem, found.X) == pytest.approx(fill_levels(problem, plain.X), rel=1e-6, abs=1e-7)


def test_refusals() -> None:
    with pytest.raises(InputError, match=r"weight = 0: invalid \(expected: a number > 0\)"):
        Entity(0)
    with pytest.raises(InputError, match=r"rule = 'lifo': invalid \(expected: fairness, fifo\)"):
        Entity(1, "lifo")
    for of in ([0, 1], [0, 1, 2], [0, -1, 0]):
        with pytest.raises(InputError, match=r"of = .*not an entity for each job \(expected: 3 numbers from 0 to 1\)"):
            gavel_hierarchical.allocate(three_jobs(1), [Entity(), Entity()], np.array(of))
