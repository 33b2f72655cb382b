"""Rates and closed forms of contended transfers, exactly, against a fluid simulation that knows only the pace."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation.transfer_reference import played as simulated

from optsched.errors import InputError
from optsched.problem.contention import Contention
from optsched.speeds.link_contention import (
    ETHERNET_1G,
    ETHERNET_10G,
    LinkCost,
    aggregate_rate,
    drain,
    myopic_gain,
    pace,
    transfer_seconds,
)

MB = 1_000_000

positive = st.fractions(Fraction(1, 20), 20, max_denominator=40)
penalties = st.fractions(0, 3, max_denominator=20)
some_sizes = st.lists(positive, min_size=1, max_size=4)


# --- rates ------------------------------------------------------------------------------------------------------------


@given(positive, penalties, st.integers(1, 9), positive)
def test_k_transfers_that_start_together(b: Fraction, eta: Fraction, k: int, size: Fraction) -> None:
    link = LinkCost(b, eta, Fraction(3))
    alone = transfer_seconds(link, 1, size)
    assert alone == 3 + b * size
    assert transfer_seconds(link, k, size) == 3 + simulated([0] * k, [size] * k, b, eta)[0]
    assert aggregate_rate(link, k) <= 1 / b
    assert (aggregate_rate(link, k) == 1 / b) == (k == 1 or eta == 0)


def test_the_constants_of_the_published_code() -> None:
    assert transfer_seconds(ETHERNET_10G, 1, 100 * MB) == pytest.approx(0.0856)
    assert transfer_seconds(ETHERNET_10G, 3, 100 * MB) == pytest.approx(0.3 * 0.856 + 0.2 * 0.235)
    assert pace(ETHERNET_1G, 2) == pytest.approx((2 * 7.8125 + 0.7) * 1e-9)
    assert aggregate_rate(ETHERNET_10G, 2) == pytest.approx(2 / 1.947e-9)
    assert pace(Contention(1.0, -0.5), 4) == 2.5  # measured fits may be below zero


@settings(max_examples=examples(40))
@given(some_sizes, positive, penalties)
def test_drain_is_the_simulation(sizes: list[Fraction], b: Fraction, eta: Fraction) -> None:
    ends = drain(sizes, b, eta)
    assert ends == simulated([0] * len(sizes), sizes, b, eta)
    assert max(ends) >= b * sum(sizes)  # contention never shortens the makespan
    assert (max(ends) == b * sum(sizes)) == (eta == 0 or len(sizes) == 1)


def test_drain_keeps_the_order_and_ties() -> None:
    assert drain([5, 2, 2, 9], 1, 1) == [23, 14, 14, 27]  # 2 * 7; 3 * 3; 4 * 1
    assert drain([], 1) == []
    assert drain(np.array([2.0, 1.0]), 1.0) == [3.0, 2.0]


# --- start now, or at the next completion? ----------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(st.lists(positive, min_size=1, max_size=4), positive, positive, penalties)
def test_the_myopic_gain_is_the_difference_of_two_simulations(
    running: list[Fraction], new: Fraction, b: Fraction, eta: Fraction
) -> None:
    first = min(simulated([0] * len(running), running, b, eta))
    sums = [sum(simulated([0] * len(running) + [start], [*running, new], b, eta)) for start in (Fraction(0), first)]
    assert myopic_gain(running, new, b, eta) == sums[1] - sums[0]


def test_the_myopic_gain_after_a_tie() -> None:
    assert myopic_gain([2, 2], 1, 1, 0) == (4 + 4 + 5) - (3 + 5 + 5)
    assert myopic_gain([2, 2, 9], 1, 1, 0) == (6 + 6 + 8 + 14) - (4 + 7 + 7 + 14)


@given(st.integers(1, 5), positive, positive, penalties, st.fractions(0, 1, max_denominator=60))
def test_the_k_way_threshold(k: int, x: Fraction, b: Fraction, eta: Fraction, part: Fraction) -> None:
    """3.4 of the sheet: for m <= x_1 and m <= x_2 - x_1 the rule is m / x_1 < (k b + (k - 1) eta) / (2 (b + eta))."""
    limit = (k * b + (k - 1) * eta) / (2 * (b + eta))
    running = [x] + [2 * x + extra for extra in range(k - 1)]
    for m in {part * x, min(limit, Fraction(1)) * x} - {0}:
        gain = myopic_gain(running, m, b, eta)
        assert (gain > 0) == (m / x < limit)
        assert (gain == 0) == (m / x == limit)


# --- what is invalid ------------------------------------------------------------------------------------------------

TABLE = Contention(1.0, kinds=("a",), ratios=((0.5,),))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: pace(ETHERNET_10G, 0), r"k = 0.*>= 1"),
        (lambda: pace(ETHERNET_10G, 1.5), r"k = 1.5"),
        (lambda: pace(ETHERNET_10G, True), r"k = True"),
        (lambda: pace(TABLE, 2), "not measured ratios"),
        (lambda: transfer_seconds(ETHERNET_10G, 2, 0), r"size = 0: a transfer of 0 bytes transfers nothing"),
        (lambda: transfer_seconds(ETHERNET_10G, 2, float("nan")), "size = nan"),
        (lambda: drain([1, -2], 1, 0), r"sizes\[1\] = -2: a transfer of -2 bytes"),
        (lambda: drain([1], 0, 0), "seconds_per_byte = 0"),
        (lambda: drain([1, 2], 1, -1), "penalty = -1"),
        (lambda: myopic_gain([], 1, 1), "no transfer runs"),
        (lambda: myopic_gain([0], 1, 1), r"sizes\[0\] = 0: a transfer of 0 bytes"),
        (lambda: LinkCost(1, 0, -1), "latency = -1"),
    ],
)
def test_what_is_not_legal(call, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_numbers_of_any_size() -> None:
    assert drain([10**400, 1], 1, 0) == [10**400 + 1, 2]  # more than a float holds
    assert pace(ETHERNET_10G, np.int64(2)) == pace(ETHERNET_10G, 2)
