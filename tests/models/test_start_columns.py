"""The grid of time; columns of start-time models: in process at a slot, crowded slots, what they cost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from hypothesis import given, strategies as st
from tiny_instances import tiny_instances

from optsched.errors import InfeasibleError, InputError
from optsched.models import rigid_time_indexed
from optsched.models.start_model import StartBlocks, StartColumns, least_maximum
from optsched.models.time_grid import TimeGrid, on_common_unit, time_grid
from optsched.problem.instance import Cluster, Instance, Job
from optsched.problem.objectives import get_objective

# --- the grid of time: the coarsest unit, exactly, or a refusal ----------------------------------------------------------


def one_machine(*times: tuple[float, float]) -> Instance:
    """Jobs (arrival, duration) on one machine."""
    return Instance([Job(f"j{j}", r, 1, p) for j, (r, p) in enumerate(times)], Cluster.machines(1))


def test_minutes_in_seconds_are_minutes() -> None:
    grid = time_grid(one_machine((3600, 120), (3660, 300)))
    assert grid.unit == 60
    assert (grid.origin, grid.release.tolist(), grid.duration.tolist()) == (3600.0, [0, 1], [2, 5])
    assert grid.seconds(np.array([0, 7])).tolist() == [3600.0, 4020.0]


def test_binary_fractions_are_exact_and_decimal_ones_are_refused() -> None:
    assert time_grid(one_machine((0.5, 1.75), (1, 0.25))).unit == Fraction(1, 4)
    with pytest.raises(InputError, match="unit") as error:
        time_grid(one_machine((0, 0.1), (0, 0.3)))
    assert "\n" not in str(error.value)
    # a single duration is a multiple of itself, whatever it is
    assert time_grid(one_machine((7, 0.1))).duration.tolist() == [1]


def test_times_an_ulp_early_are_on_their_boundary() -> None:
    grid = time_grid(one_machine((1e9, 0.25), (1e9 + 0.75, 0.5)))
    boundary = grid.seconds(np.array([3]))
    assert grid.slots(boundary).tolist() == [3]
    assert grid.slots(np.nextafter(boundary, 0)).tolist() == [3]
    assert grid.slots(boundary - 0.01).tolist() == [2]


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)), min_size=1, max_size=6), st.integers(-3, 3))
def test_the_unit_divides_all_times_and_nothing_larger_does(times: list[tuple[int, int]], power: int) -> None:
    scale = Fraction(2) ** power
    grid = time_grid(one_machine(*((float(r * scale), float(p * scale)) for r, p in times)))
    first = min(r for r, _ in times)
    assert [grid.unit * k for k in grid.release.tolist()] == [(r - first) * scale for r, _ in times]
    assert [grid.unit * k for k in grid.duration.tolist()] == [p * scale for _, p in times]
    assert np.gcd.reduce(np.concatenate([grid.release, grid.duration])) == 1


def test_thirds() -> None:
    unit, release, duration = on_common_unit([Fraction(0), Fraction(1)], [Fraction(2, 3), Fraction(1, 2)])
    assert (unit, release.tolist(), duration.tolist()) == (Fraction(1, 6), [0, 6], [4, 3])


# --- columns of start-time models: which are in process at a slot, which slots are crowded, what they cost ---------------


@st.composite
def columns_of(draw: st.DrawFn) -> tuple[Instance, StartColumns]:
    """Blocks with random windows, one or two a job."""
    instance = draw(tiny_instances("1x3", most=4, widest=3))
    grid = time_grid(instance)
    count = draw(st.lists(st.integers(1, 2), min_size=instance.n, max_size=instance.n))
    job = np.repeat(np.arange(instance.n), count)
    first = grid.release[job]
    last = first + np.array(draw(st.lists(st.integers(0, 9), min_size=job.size, max_size=job.size)))
    return instance, StartColumns(grid, job, first, last)


@given(columns_of())
def test_ranges_against_the_definition(case: tuple[Instance, StartColumns]) -> None:
    _, columns = case
    keys = list(zip(columns.block.tolist(), columns.slot.tolist(), strict=True))
    expected = [(b, t) for b in range(columns.job.size) for t in range(columns.first[b], columns.last[b] + 1)]
    assert keys == expected
    for slot in range(int(columns.end.max()) + 2):
        running = [(b, t) for b, t in keys if t <= slot < t + columns.duration[b]]
        assert columns.in_process(keys, slot) == running
        odd = np.flatnonzero(np.arange(columns.job.size) % 2)
        assert columns.in_process(keys, slot, odd) == [(b, t) for b, t in running if b % 2]
    for j in range(columns.grid.release.size):
        assert list(columns.of_job(keys, j)) == [(b, t) for b, t in keys if columns.job[b] == j]
    block, slot = columns.block, columns.slot
    assert columns.column_of(block, slot).tolist() == list(range(len(keys)))
    assert (
        columns.column_of(np.array([0, 0]), np.array([columns.first[0] - 1, columns.last[0] + 1])).tolist() == [-1] * 2
    )


@given(columns_of(), st.integers(0, 4))
def test_a_slot_is_crowded_when_the_jobs_that_can_run_exceed_the_capacity(
    case: tuple[Instance, StartColumns], capacity: int
) -> None:
    _, columns = case
    held = np.arange(columns.job.size) % 3
    crowded = set(columns.crowded(held, capacity))
    for slot in range(int(columns.end.max()) + 1):
        # a job counts once, with the most GPUs of its modes, from its first start to its last end
        here = 0
        for j in range(columns.grid.release.size):
            own = np.flatnonzero(columns.job == j)
            if columns.first[own].min() <= slot < (columns.last + columns.duration)[own].max():
                here += held[own].max()
        assert (slot in crowded) == (here > capacity)


@given(columns_of(), st.sampled_from(["total_flow_time", "total_weighted_completion_time", "total_weighted_tardiness"]))
def test_costs_and_constant_add_up_to_the_objective(case: tuple[Instance, StartColumns], objective: str) -> None:
    instance, columns = case
    costs, constant = columns.costs(instance, objective)
    goal, columns_of_jobs = get_objective(objective), (instance.arrival, instance.weight, instance.due)

    def cost(j: int, end: Any) -> Fraction:
        return goal.exact([end], *(each[j : j + 1] for each in columns_of_jobs))

    alone = instance.arrival + instance.duration
    least = [cost(j, end) for j, end in enumerate(alone.tolist())]
    assert constant == sum(least)
    for column, (block, slot) in enumerate(zip(columns.block.tolist(), columns.slot.tolist(), strict=True)):
        j = columns.job[block]
        end = int(instance.arrival.min()) + slot * columns.grid.unit + int(instance.duration[j])
        assert costs[column] == cost(j, end) - least[j]


@given(tiny_instances("1x3", most=4, widest=3))
def test_the_volume_bounds_are_no_more_than_the_maxima(instance: Instance) -> None:
    grid = time_grid(instance)
    for name, origin in (("makespan", grid.origin), ("max_flow_time", 0)):
        least = least_maximum(get_objective(name), grid, instance.gpus, 3)
        assert origin + least * grid.unit <= optimum(instance, name)


def test_the_volume_bounds_are_the_maxima_of_one_machine() -> None:
    grid = time_grid(Instance([Job("a", 0, 1, 2), Job("b", 10, 1, 3), Job("c", 11, 1, 3)], "1x1"))
    assert least_maximum(get_objective("makespan"), grid, np.ones(3, dtype=np.int64), 1) == 16
    assert least_maximum(get_objective("max_flow_time"), grid, np.ones(3, dtype=np.int64), 1) == 5


def test_windows_end_with_the_list_schedule_for_the_makespan_and_with_the_horizon() -> None:
    instance = Instance([Job("a", 0, 1, 4), Job("b", 0, 1, 4), Job("c", 0, 1, 4)], "1x2")
    blocks = rigid_time_indexed.blocks(instance)

    def last(horizon: float | np.ndarray | None) -> list[int]:
        return blocks.columns(instance, "makespan", horizon)[0].last.tolist()

    # unit 4 s: three jobs on two machines end at 2 units
    assert last(None) == [1, 1, 1]
    assert last(np.array([4.0, 9.0, np.inf])) == [0, 1, 1]
    later = Instance([Job("a", 0, 1, 4), Job("b", 8, 1, 4), Job("c", 8, 1, 4), Job("d", 8, 1, 4)], "1x2")
    # nobody pays more than 2 units, whenever it comes
    assert rigid_time_indexed.blocks(later).columns(later, "max_flow_time", None)[0].last.tolist() == [1, 3, 3, 3]
    with pytest.raises(InfeasibleError, match="'a'"):
        last(3.5)


def test_the_list_schedule_takes_the_fastest_ways_in_turn_and_ways_that_end_too_late_are_left_out() -> None:
    # two jobs on two nodes of one GPU: 1 slot on either node, 3 on both
    grid = TimeGrid(0.0, Fraction(1), np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64))
    held = np.array([[1, 0], [0, 1], [1, 1]] * 2)
    blocks = StartBlocks(grid, np.repeat([0, 1], 3), np.array([1, 1, 3] * 2), held, np.array([1, 1]))
    instance = Instance([Job("a", duration=1), Job("b", duration=1)], "2x1")
    columns, kept = blocks.columns(instance, "makespan", None)
    assert kept.tolist() == [0, 1, 3, 4]  # side by side they end at 1
    assert columns.last.tolist() == [0, 0, 0, 0]
    assert blocks.columns(instance, "total_flow_time", None)[1].tolist() == [0, 1, 2, 3, 4, 5]
