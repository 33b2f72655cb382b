"""The integer grid: exact where 61 bits suffice, rounded down elsewhere, never an overflow."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from optsched.bounds.gang_machine import GangMachine, gang_machine
from optsched.bounds.grid import BITS, GridJobs, due_ticks
from optsched.bounds.one_machine import due_dates
from optsched.bounds.relaxation import FastMachine
from optsched.problem.arrays import Floats, Ints

times = st.floats(0.0, 1e300) | st.sampled_from([0.0, 5e-324, 0.1, 1e-9, 1e9 + 0.3, 3.0, 0.125])


def machine(gpus: list[int], total: int) -> GangMachine:
    return gang_machine(np.array(gpus, dtype=np.int64), total, 1)


def fast(release: Floats, duration: Floats, gangs: GangMachine) -> FastMachine:
    return FastMachine(release, duration, gangs.width, gangs.capacity, dict, duration)


def on_grid(release: Floats, duration: Floats, gangs: GangMachine) -> GridJobs:
    return fast(release, duration, gangs).grid()


def on_grid_with_dues(release: Floats, duration: Floats, due: Floats, gangs: GangMachine) -> tuple[GridJobs, Ints]:
    one = fast(release, duration, gangs)
    moved = due_dates(due, one)
    jobs = one.grid(moved)
    return jobs, due_ticks(moved, jobs)


def test_integers_stay_on_the_grid_of_seconds() -> None:
    jobs = on_grid(np.array([7.0, 9.0]), np.array([3.0, 5.0]), machine([1, 2], 4))
    assert (jobs.exponent, jobs.capacity, jobs.origin, jobs.tick) == (0, 3, 21, Fraction(1, 3))
    assert jobs.release.tolist() == [0, 6]
    assert jobs.work.tolist() == [3, 10]


@pytest.mark.parametrize(("step", "exponent"), [(0.5, 1), (0.125, 3), (2.0**-30, 30), (4.0, 0)])
def test_dyadic_times_take_the_coarsest_exact_grid(step: float, exponent: int) -> None:
    jobs = on_grid(np.array([step, 3 * step]), np.array([5 * step, step]), machine([1, 1], 1))
    assert jobs.exponent == exponent
    assert [jobs.tick * w for w in jobs.work.tolist()] == [5 * Fraction(step), Fraction(step)]


@given(st.lists(st.tuples(times, times, st.integers(1, 8)), min_size=1, max_size=6))
@example([(0.0, 1e-300, 8)])
@example([(1.7e308, 1.7e308, 8), (0.0, 5e-324, 1)])
@example([(0.0, 1.0, 1), (0.0, 5.0, 8)])
def test_rounded_down_by_less_than_a_tick_and_within_the_bits(rows: list[tuple[float, float, int]]) -> None:
    release, duration = np.array([r for r, _, _ in rows]), np.array([max(d, 5e-324) for _, d, _ in rows])
    one = machine([g for _, _, g in rows], 8)
    jobs = on_grid(release, duration, one)
    step = Fraction(1) / Fraction(2) ** jobs.exponent
    for j in range(release.size):
        moment = (int(jobs.release[j]) + jobs.origin) * jobs.tick
        assert moment <= Fraction(release[j]) < moment + step
        if one.width[j]:
            seconds = Fraction(int(jobs.work[j]), int(one.width[j])) * step
            assert seconds <= Fraction(duration[j]) < seconds + step
    assert max(jobs.release.tolist()) + sum(jobs.work.tolist()) < 2**BITS


def test_the_grid_is_as_fine_as_fits() -> None:
    jobs = on_grid(np.array([0.0, 0.1]), np.array([1 / 3, 1e9]), machine([1, 1], 2))
    assert 2 ** (BITS - 4) < max(jobs.release.tolist()) + sum(jobs.work.tolist()) < 2**BITS


@given(st.lists(st.tuples(times, times, st.floats(-1e12, 1e12)), min_size=1, max_size=6))
@example([(0.0, 1.0, 1e12)])
def test_due_dates_are_rounded_up_or_moved_to_a_horizon(rows: list[tuple[float, float, float]]) -> None:
    release, due = np.array([r for r, _, _ in rows]), np.array([d for _, _, d in rows])
    duration = np.array([max(p, 1e-12) for _, p, _ in rows])
    jobs, ticks = on_grid_with_dues(release, duration, due, machine([1] * len(rows), 2))
    step = Fraction(1) / Fraction(2) ** jobs.exponent
    end = max(map(Fraction, release.tolist())) + sum(map(Fraction, duration.tolist())) / jobs.capacity
    for moment, date in zip(ticks.tolist(), due.tolist(), strict=True):
        placed = (moment + jobs.origin) * jobs.tick
        assert placed >= min(Fraction(date), end)
        assert placed < Fraction(date) + step


def test_far_due_dates_do_not_coarsen_the_grid() -> None:
    release, duration = np.array([0.0, 0.25]), np.array([1.5, 1.0])
    jobs, _ = on_grid_with_dues(release, duration, np.array([1e300, 2.0]), machine([1, 1], 1))
    assert jobs.exponent == 2


def test_no_jobs() -> None:
    jobs, due = on_grid_with_dues(np.zeros(0), np.zeros(0), np.zeros(0), machine([], 3))
    assert jobs.release.size == due.size == 0
    assert math.isfinite(jobs.tick)
