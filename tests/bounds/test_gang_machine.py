"""Effective widths are dual feasible, the capacity is what gangs can fill, and no set of gangs has more."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from optsched.bounds.gang_machine import FILL_LIMIT, gang_machine, machines_to_try
from optsched.check.verify_case import fill

gangs = st.integers(1, 12).flatmap(
    lambda total: st.tuples(st.just(total), st.lists(st.integers(1, total), min_size=1, max_size=6))
)


def fitting(gpus: list[int], total: int) -> list[tuple[int, ...]]:
    """All sets of jobs that fit on the cluster together."""
    jobs = range(len(gpus))
    subsets = [chosen for k in range(len(gpus) + 1) for chosen in combinations(jobs, k)]
    return [chosen for chosen in subsets if sum(gpus[j] for j in chosen) <= total]


@given(gangs)
@example((8, [5, 5, 4, 4, 3]))
@example((7, [4, 4, 3, 3]))
def test_gangs_that_fit_never_have_more_than_the_capacity(case: tuple[int, list[int]]) -> None:
    total, gpus = case
    for threshold in range(1, (total + 1) // 2 + 1):
        machine = gang_machine(np.array(gpus), total, threshold)
        assert np.all(machine.width >= 0)
        assert max(sum(machine.width[j] for j in chosen) for chosen in fitting(gpus, total)) <= machine.capacity


@given(gangs)
def test_the_capacity_is_filled_by_some_set(case: tuple[int, list[int]]) -> None:
    total, gpus = case
    machine = gang_machine(np.array(gpus), total, 1)
    least = gang_machine(np.array([g for g in gpus if g < total] or [1]), total, 1).capacity
    filled = {sum(gpus[j] for j in chosen) for chosen in fitting(gpus, total)}
    assert machine.capacity in filled | {1}
    assert least == machine.capacity


@given(gangs)
def test_two_roads_to_the_largest_fill(case: tuple[int, list[int]]) -> None:
    total, gpus = case
    brute = max(sum(gpus[j] for j in chosen) for chosen in fitting(gpus, total))
    assert fill(gpus, total) == brute
    if all(g < total for g in gpus):
        assert gang_machine(np.array(gpus), total, 1).capacity == brute


def test_gangs_of_more_than_half_run_one_by_one() -> None:
    machine = gang_machine(np.array([5, 6, 2, 4]), 8, 4)
    assert machine.capacity == 4
    assert machine.width.tolist() == [4, 4, 0, 4]


def test_clusters_too_large_to_look_at_keep_all_their_gpus() -> None:
    total = FILL_LIMIT + 1
    assert gang_machine(np.array([3, 3]), total, 1).capacity == total
    assert fill([3, 3], total) == total
    assert gang_machine(np.array([3, 3]), FILL_LIMIT, 1).capacity == 6


@pytest.mark.parametrize("total", [1, 2, 9, 100, FILL_LIMIT + 5])
def test_the_plain_machine_is_tried_first_and_no_threshold_twice(total: int) -> None:
    rng = np.random.default_rng(total)
    gpus = rng.integers(1, total + 1, 50)
    machines = machines_to_try(gpus, rng.random(50), total)
    thresholds = [machine.threshold for machine in machines]
    assert thresholds[0] == 1
    assert len(set(thresholds)) == len(thresholds) <= 6
    assert all(1 <= e <= (total + 1) // 2 for e in thresholds)


def test_where_no_gang_is_wide_and_all_gpus_can_be_filled_there_is_one_machine() -> None:
    gpus = np.array([1, 2, 4, 8] * 30)
    assert [m.threshold for m in machines_to_try(gpus, np.ones(120), 64)] == [1]
