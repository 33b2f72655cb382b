"""The fast machine in integers: effective widths of gangs, the grid, SRPT and mean busy times, exact sums."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from srpt import mean_busy_times, srpt

from bounds.cases import busy_pieces
from optsched.bounds.exact_dot import exact_dot, exact_products, exact_sum, exact_total
from optsched.bounds.fast_machine import srpt_completions, wide_product
from optsched.bounds.gang_machine import FILL_LIMIT, GangMachine, gang_machine, machines_to_try
from optsched.bounds.integer_grid import BITS, GridJobs, due_ticks
from optsched.bounds.mean_busy_time import EXACT, HELD_UP_BITS, densest_first, least_busy_time_sum
from optsched.bounds.one_machine import due_dates
from optsched.bounds.relaxation import FastMachine
from optsched.bounds.sum_costs import ends_after, two_sum
from optsched.problem.arrays import Floats, Ints
from optsched.verifier import mean_busy_time_proof
from optsched.verifier.tick_machine import fill, srpt_ends

# --- effective widths are dual feasible, the capacity is what gangs can fill, and no set of gangs has more ---------------


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
def test_two_roads_to_the_largest_fill(case: tuple[int, list[int]]) -> None:
    total, gpus = case
    for some in (gpus, [g for g in gpus if g < total]):  # those of all GPUs are wide
        brute = max(sum(some[j] for j in chosen) for chosen in fitting(some, total))
        assert fill(some, total) == brute
    assert gang_machine(np.array(gpus), total, 1).capacity == max(brute, 1)


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


# --- the integer grid: exact where 61 bits suffice, rounded down elsewhere, never an overflow ----------------------------


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


# --- the compiled machine against a machine in fractions, and against its plain Python twin ------------------------------


small = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=7)
large = st.lists(
    st.tuples(st.integers(0, 2**60), st.integers(1, 2**57), st.integers(1, 2**52 - 1)), min_size=1, max_size=7
)


def columns(jobs: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    release, work, multiplier = np.array(jobs, dtype=np.int64).T
    return np.ascontiguousarray(release), np.ascontiguousarray(work), np.ascontiguousarray(multiplier)


@given(small)
@example([(0, 3, 1), (1, 1, 1), (1, 1, 1)])
def test_srpt_is_that_of_fractions(jobs: list[tuple[int, int, int]]) -> None:
    release, work, _ = columns(jobs)
    expected = sorted(srpt([job[:2] for job in jobs]))
    assert srpt_completions(release, work).tolist() == expected
    assert srpt_ends(release.tolist(), work.tolist()) == expected


@given(small)
@example([(0, 3, 1), (1, 1, 1)])
def test_mean_busy_times_are_those_of_fractions(jobs: list[tuple[int, int, int]]) -> None:
    expected = mean_busy_times([job[:2] for job in jobs], [(Fraction(p, u), r) for r, p, u in jobs])
    value = sum(u * m for (_, _, u), m in zip(jobs, expected, strict=True))
    assert least_busy_time_sum(*columns(jobs)) == (value, None)
    moments = [Fraction(moment, 2 * work) for (_, work, _), (_, moment) in zip(jobs, busy_pieces(jobs), strict=True)]
    assert moments == expected


@given(large)
def test_words_of_61_bits_do_not_overflow(jobs: list[tuple[int, int, int]]) -> None:
    release, work, multiplier = columns(jobs)
    done = srpt_ends(release.tolist(), work.tolist())
    assert srpt_completions(release, work).tolist() == done
    assert exact_total(srpt_completions(release, work)) == sum(done)
    expected = sum(Fraction(u * moment, 2 * p) for (_, p, u), (_, moment) in zip(jobs, busy_pieces(jobs), strict=True))
    assert least_busy_time_sum(release, work, multiplier) == (expected, None)


@pytest.mark.compiled
def test_the_sum_of_a_million_late_completions_is_exact() -> None:
    n, latest = 1_000_000, 2**60
    release = np.full(n, latest, dtype=np.int64)
    done = srpt_completions(release, np.ones(n, dtype=np.int64))
    assert exact_total(done) == n * latest + n * (n + 1) // 2 > 2**63


def test_many_interrupted_jobs_are_rounded_up_a_little() -> None:
    # nested interruptions: every job but the last is held up
    count = 4 * EXACT
    jobs = [(3 * k, 7 * (count - k) + 3, 1 + k % 3) for k in range(count)]
    value, bits = least_busy_time_sum(*columns(jobs))
    pieces = busy_pieces(jobs)
    exact = sum(Fraction(u * moment, 2 * p) for (_, p, u), (_, moment) in zip(jobs, pieces, strict=True))
    assert bits == HELD_UP_BITS
    assert exact - Fraction(3 * count, 2**HELD_UP_BITS) < value < exact


def both_orders(multiplier: Ints, work: Ints) -> list[list[int]]:
    """Return the jobs by density as the finder of bounds orders them, and as the verifier does."""
    verified = mean_busy_time_proof.densest_first(work.tolist(), multiplier.tolist(), [0] * work.size)
    return [densest_first(multiplier, work).tolist(), verified]


@given(large)
@example([(0, 2**55 + 1, 2**51), (0, 2**55, 2**51), (0, 2**55 + 1, 2**51), (0, 2**55 - 1, 2**51 - 1)])
def test_densities_are_compared_without_rounding(jobs: list[tuple[int, int, int]]) -> None:
    _, work, multiplier = columns(jobs)
    expected = sorted(range(len(jobs)), key=lambda j: (Fraction(-jobs[j][2], jobs[j][1]), j))
    assert both_orders(multiplier, work) == [expected] * 2


def test_equal_densities_that_floats_tell_apart() -> None:
    # work / multiplier is the same fraction twice, but rounds to two floats, the first to the larger
    work, multiplier = 61734409029156341, 645465549588
    assert float(work) / float(multiplier) > float(9 * work) / float(9 * multiplier)
    first, second = np.array([multiplier, 9 * multiplier]), np.array([work, 9 * work])
    assert both_orders(first, second) == [[0, 1]] * 2
    assert both_orders(first[::-1].copy(), second[::-1].copy()) == [[0, 1]] * 2


def test_densities_that_floats_cannot_tell_apart() -> None:
    # weight = work up to the last bit, in random order: floats see one density
    rng = np.random.default_rng(1)
    work = rng.permutation(np.arange(2**52, 2**52 + 3_000, dtype=np.int64))
    multiplier = work - rng.integers(0, 2, work.size)
    expected = sorted(range(work.size), key=lambda j: (-Fraction(int(multiplier[j]), int(work[j])), j))
    assert both_orders(multiplier, work) == [expected] * 2


# --- exact sums, of columns and of two floats, against sums of fractions and of Python integers --------------------------


floats = st.floats(allow_nan=False, allow_infinity=False)
integers = st.integers(-(2**63), 2**63 - 1)
finite = st.floats(-1e300, 1e300) | st.sampled_from([1e16, 1.0, 1.5, 2.0, -1e16, 0.1])
words = st.integers(0, 2**64 - 1) | st.integers(0, 64).map(lambda k: (1 << k) - 1)


@given(st.lists(floats, max_size=30))
@example([5e-324, -0.0, 1.7976931348623157e308, -1.7976931348623157e308])
@example([1e16, 1.0, -1e16])
def test_sum(values: list[float]) -> None:
    assert exact_sum(np.array(values, dtype=np.float64)) == sum(map(Fraction, values), Fraction(0))


@given(st.lists(st.tuples(floats, floats), max_size=30))
@example([(5e-324, 5e-324), (1.7976931348623157e308, -1.7976931348623157e308), (-0.0, 3.0)])
@example([(0.1, 0.3), (0.1, -5e-324), (0.1, 7.0)])
def test_dot(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    assert exact_dot(a, b) == sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0))


def test_a_long_sum_keeps_the_last_bit() -> None:
    values = np.full(100_001, 0.1)
    assert exact_sum(values) == 100_001 * Fraction(0.1)
    values[0] = 0.2
    assert exact_dot(values, values) == 100_000 * Fraction(0.1) ** 2 + Fraction(0.2) ** 2


@given(st.lists(st.tuples(integers, integers), max_size=20))
@example([(2**63 - 1, 2**63 - 1)] * 20)
@example([(-(2**63), 2**63 - 1)] * 20)
def test_integers_do_not_overflow(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert exact_total(a) == sum(a.tolist())
    assert exact_products(a, b) == sum(x * y for x, y in pairs)


@given(words, words)
@example(2**64 - 1, 2**64 - 1)
def test_the_product_of_two_words(a: int, b: int) -> None:
    high, low = wide_product(np.uint64(a), np.uint64(b))
    assert (int(high) << 64) + int(low) == a * b


@given(finite, finite)
@example(1e16, 1.0)
def test_two_sum_is_exact(a: float, b: float) -> None:
    total, error = two_sum(np.array([a]), np.array([b]))
    assert Fraction(float(total[0])) + Fraction(float(error[0])) == Fraction(a) + Fraction(b)


@given(finite, finite, finite)
@example(1e16, 1.0, 1e16)
@example(1e16, 1.0, 1e16 + 2)
def test_ends_after_decides_without_rounding(release: float, duration: float, moment: float) -> None:
    late = ends_after(np.array([release]), np.array([duration]), np.array([moment]))
    assert bool(late[0]) == (Fraction(release) + Fraction(duration) > Fraction(moment))
