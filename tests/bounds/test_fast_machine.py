"""The compiled machine against a machine in fractions, and against its plain Python twin."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from srpt import mean_busy_times, srpt

from bounds.cases import busy_pieces
from optsched.bounds.exact_dot import exact_total
from optsched.bounds.fast_machine import srpt_completions
from optsched.bounds.mean_busy_time import EXACT, HELD_UP_BITS, densest_first, least_busy_time_sum
from optsched.check.verify_certificate import srpt_ends

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
    assert srpt_ends((r, p) for r, p, _ in jobs) == expected


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
    done = srpt_ends((r, p) for r, p, _ in jobs)
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


@given(large)
@example([(0, 2**55 + 1, 2**51), (0, 2**55, 2**51), (0, 2**55 + 1, 2**51), (0, 2**55 - 1, 2**51 - 1)])
def test_densities_are_compared_without_rounding(jobs: list[tuple[int, int, int]]) -> None:
    _, work, multiplier = columns(jobs)
    expected = sorted(range(len(jobs)), key=lambda j: (Fraction(-jobs[j][2], jobs[j][1]), j))
    assert densest_first(multiplier, work).tolist() == expected


def test_equal_densities_that_floats_tell_apart() -> None:
    # work / multiplier is the same fraction twice, but rounds to two floats, the first to the larger
    work, multiplier = 61734409029156341, 645465549588
    assert float(work) / float(multiplier) > float(9 * work) / float(9 * multiplier)
    first, second = np.array([multiplier, 9 * multiplier]), np.array([work, 9 * work])
    assert densest_first(first, second).tolist() == [0, 1]
    assert densest_first(first[::-1].copy(), second[::-1].copy()).tolist() == [0, 1]


def test_densities_that_floats_cannot_tell_apart() -> None:
    # weight = work up to the last bit, in random order: floats see one density
    rng = np.random.default_rng(1)
    work = rng.permutation(np.arange(2**52, 2**52 + 3_000, dtype=np.int64))
    multiplier = work - rng.integers(0, 2, work.size)
    order = densest_first(multiplier, work)
    expected = sorted(range(work.size), key=lambda j: (-Fraction(int(multiplier[j]), int(work[j])), j))
    assert order.tolist() == expected
