"""Intervals of means: by hand, within what numbers can be, none where there is nothing to make one of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.intervals import Estimate, estimate

POSITIVE = st.lists(st.floats(1.0, 1e6), min_size=1, max_size=12)


def test_an_interval_by_hand() -> None:
    # mean 3, variance (4 + 1 + 0 + 1 + 4) / 4 = 2.5, t_{0.975, 4} = 2.776445: 3 exp(-+2.776445 sqrt(2.5 / 5) / 3)
    found = estimate([1, 2, 3, 4, 5])
    factor = math.exp(2.776445 * math.sqrt(0.5) / 3)
    assert (found.mean, found.n, found.equal) == (3.0, 5, False)
    assert (found.low, found.high) == pytest.approx((3 / factor, 3 * factor), rel=1e-6)


def test_ratios_of_a_wild_policy_are_never_below_one() -> None:
    # symmetric: 4.2 -+ 13.1, which is below zero
    found = estimate([1.1, 1.2, 10.3], least=1)
    assert found.low == 1.0
    assert found.high == pytest.approx(95.56, rel=1e-3)


def test_too_few_and_equal_values_have_no_interval() -> None:
    assert estimate([7]) == Estimate(7.0, None, None, 1, False)
    assert estimate([10, 12]) == Estimate(11.0, None, None, 2, False)
    assert estimate([3, 3, 3, 3]) == Estimate(3.0, None, None, 4, True)
    assert estimate([0, 0]) == Estimate(0.0, None, None, 2, True)


def test_what_can_be_negative_has_a_symmetric_interval() -> None:
    found = estimate([-1, 0, 1])  # t_{0.975, 2} = 4.302653, s = 1
    assert (found.low, found.high) == pytest.approx((-4.302653 / 3**0.5, 4.302653 / 3**0.5))


@given(POSITIVE)
def test_ends_are_possible_finite_and_on_both_sides(values: list[float]) -> None:
    found = estimate(values, least=1, most=2e6)
    if found.low is None or found.high is None:
        assert len(values) < 3 or found.equal
    else:
        assert 1 <= found.low <= found.mean <= found.high <= 2e6 or found.mean == pytest.approx(found.low)
        assert found.low < found.high


@given(st.lists(st.floats(0.0, 1e100), min_size=3, max_size=8))
def test_no_time_is_below_zero_and_nothing_is_infinite(values: list[float]) -> None:
    found = estimate(np.array(values))
    assert found.low is None or 0 <= found.low <= found.mean <= found.high < math.inf


def test_it_holds_the_mean_as_often_as_its_docstring_says() -> None:
    draw = np.random.default_rng(1)
    for seeds, least in ((3, 0.86), (5, 0.86), (20, 0.90)):
        found = [estimate(row, least=1) for row in 1 + draw.exponential(0.3, (600, seeds))]
        assert np.mean([each.low <= 1.3 <= each.high for each in found]) > least
