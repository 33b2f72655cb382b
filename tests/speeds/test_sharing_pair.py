"""The pair theorem of sharing, and of two transfers on a link: over insertion points, exactly, and as linear programs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from events import contended, played, shared
from examples import examples
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from optsched.errors import InputError
from optsched.problem.contention import ETHERNET_10G, Contention
from optsched.speeds.sharing_pair import (
    SharingPair,
    adadual_ratio,
    ends_first,
    ends_last,
    share_threshold,
    sharing_pair,
    two_transfers,
)

# -- two transfers --------------------------------------------------------------------------------------------------------


positive = st.fractions(Fraction(1, 20), 20, max_denominator=40)
penalties = st.fractions(0, 3, max_denominator=20)


def ends_on_a_link(tau: Fraction, old: Fraction, new: Fraction, b: Fraction, eta: Fraction) -> list[Fraction]:
    """Both ends, the new one started after ``tau``."""
    return played([Fraction(0), tau], [old, new], [{0}, {0}], contended(b, eta))


@given(positive, positive, positive, penalties, st.fractions(0, Fraction(3, 2), max_denominator=50))
def test_completions_on_a_link_are_the_simulation(
    old: Fraction, new: Fraction, b: Fraction, eta: Fraction, part: Fraction
) -> None:
    tau, xi = part * b * old, (2 * b + eta) / b
    ends = ends_on_a_link(tau, old, new, b, eta)
    pair, theta = sharing_pair(b * old, b * new, xi, xi), b / (2 * (b + eta))
    assert list(pair.completions(tau)) == ends  # the theorem, exactly
    assert share_threshold(xi, xi) == theta == pytest.approx(Contention(float(b), float(eta)).theta)
    assert pair.start_now == (new / old < theta)
    found = two_transfers(Contention(float(b), float(eta)), float(old), float(new))
    assert found.completions(float(tau)) == pytest.approx([float(end) for end in ends])


def test_printed_figures() -> None:
    assert ETHERNET_10G.theta == pytest.approx(0.39230, abs=5e-6)
    assert 1 / ETHERNET_10G.theta == pytest.approx(2.5491, abs=5e-5)
    assert adadual_ratio(ETHERNET_10G.theta) == pytest.approx(1.3405, abs=5e-5)
    assert adadual_ratio(Fraction(1, 2)) == Fraction(5, 4)
    assert adadual_ratio(Fraction(1, 4)) == Fraction(3, 2)  # eta = b
    assert adadual_ratio(Fraction(1, 10**9)) == pytest.approx(2)


TABLE = Contention(1.0, kinds=("a",), ratios=((0.5,),))
BELOW = Contention(1.0, -0.1)


# -- two jobs -------------------------------------------------------------------------------------------------------------


lengths = st.fractions(Fraction(1, 20), 20, max_denominator=40)
slowdowns = st.fractions(1, 4, max_denominator=30)
LITTLE = Fraction(1, 10**30)


def simulated(pair: SharingPair, delay: Any) -> list[Any]:
    """Both ends by the event simulation."""
    xi = (pair.old, pair.new)
    return played([0, delay], [pair.left, pair.alone], [{0}, {0}], shared(lambda j, other: xi[j]))


# --- exactly ------------------------------------------------------------------------------------------------------------


@given(lengths, lengths, slowdowns, slowdowns, st.fractions(0, Fraction(3, 2), max_denominator=50))
def test_completions_after_a_delay_are_the_simulation(
    left: Fraction, alone: Fraction, old: Fraction, new: Fraction, part: Fraction
) -> None:
    pair = sharing_pair(left, alone, old, new)
    assert list(pair.completions(part * left)) == simulated(pair, part * left)


@settings(max_examples=examples(300))
@given(lengths, lengths, slowdowns, slowdowns)
def test_no_delay_beats_both_ends(left: Fraction, alone: Fraction, old: Fraction, new: Fraction) -> None:
    pair = sharing_pair(left, alone, old, new)
    sums = [sum(simulated(pair, left * Fraction(step, 12))) for step in range(14)]
    assert pair.optimal_sum == min(sums)
    assert (2 * pair.together, 2 * pair.in_turn) == (sums[0], sums[12])
    assert pair.start_now == (sums[0] < sums[12]) == (alone / left < share_threshold(new, old))
    weighted = [7 * old + new / 5 for old, new in (simulated(pair, left * Fraction(step, 12)) for step in range(13))]
    assert min(weighted) == min(weighted[0], weighted[-1])  # weights change slopes, not their number


@given(slowdowns, slowdowns)
def test_the_two_costs_of_a_second_hang_together(xi: Fraction, other: Fraction) -> None:
    k, K = ends_first(xi, other), ends_last(xi, other)
    assert (k - 1) * other == (K - 1) * xi == 2 * xi * other - xi - other
    assert (k - 1) * (K - 1) >= 1 or min(k, K) < 2


@pytest.mark.parametrize("old", [Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(7)])
@pytest.mark.parametrize("new", [Fraction(1), Fraction(4, 3), Fraction(3, 2), Fraction(3)])
def test_the_answer_flips_exactly_at_the_threshold(old: Fraction, new: Fraction) -> None:
    edge = share_threshold(new, old)
    if edge == math.inf:
        assert all(sharing_pair(Fraction(7), Fraction(7) * y, old, new).start_now for y in (LITTLE, 1, 1 / LITTLE))
        return
    below, at, above = (sharing_pair(Fraction(7), edge * 7 + shift, old, new) for shift in (-LITTLE, 0, LITTLE))
    assert below.start_now
    assert below.together < below.in_turn
    assert not at.start_now  # equally good: the strict test lets it wait
    assert at.together == at.in_turn
    assert at.best_delay == 7
    assert not above.start_now
    if ends_last(new, old) == 2 and edge * new >= old:  # A ends last from here on: equally good at any length
        assert above.together == above.in_turn
    else:
        assert above.together > above.in_turn


@given(slowdowns, slowdowns, lengths, lengths)
def test_when_sharing_never_pays(one: Fraction, other: Fraction, a: Fraction, b: Fraction) -> None:
    """Against the better of both orders, which is the preemptive optimum without sharing."""
    pair, orders = sharing_pair(b, a, other, one), min(2 * b + a, 2 * a + b)
    assert pair.preemptive_sum == min(2 * pair.together, orders)
    k, K = ends_first(one, other), ends_last(one, other)
    never = (K >= 2 and (k - 1) * a >= b) or (k >= 2 and (K - 1) * b >= a)
    assert (2 * pair.together >= orders) == never
    if k >= 2 and K >= 2:  # whatever the lengths
        assert never
    else:  # some length shows it: a very short or a very long job
        tried = [sharing_pair(Fraction(1), y, other, one) for y in (Fraction(1, 10**6), Fraction(10**6))]
        tried += [sharing_pair(Fraction(1), (K - 1 + 1 / (k - 1)) / 2, other, one)] if k > 1 and K > 1 else []
        assert any(2 * each.together < min(2 + each.alone, 1 + 2 * each.alone) for each in tried)


# --- linear programs ----------------------------------------------------------------------------------------------------


def test_the_preemptive_optimum_is_a_linear_program_over_states() -> None:
    """While both are there: seconds alone, alone and together; then the one that is left, alone."""
    rng = np.random.default_rng(4)
    for _ in range(25):
        left, alone = np.exp(rng.uniform(-2, 2, 2)).tolist()
        old, new = (1 + rng.exponential(0.6, 2)).tolist()
        least = math.inf
        for mine, others, xi, partner in ((alone, left, new, old), (left, alone, old, new)):
            # mine ends first: a alone, b the other alone, c both; the sum is 2 (a + b + c) + others - b - c / partner
            found = linprog(
                [2, 1, 2 - 1 / partner],
                A_eq=[[1, 0, 1 / xi]],
                b_eq=[mine],
                A_ub=[[0, 1, 1 / partner]],
                b_ub=[others],
                method="highs",
            )
            least = min(least, found.fun + others)
        assert sharing_pair(left, alone, old, new).preemptive_sum == pytest.approx(least, rel=1e-9)


# --- what is invalid --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: sharing_pair(0, 1, 2, 2), "left = 0: .*seconds > 0"),
        (lambda: sharing_pair(1, math.inf, 2, 2), "alone = inf"),
        (lambda: sharing_pair(1, 1, 0.99, 2), "old: slow-down = 0.99: .*>= 1"),
        (lambda: sharing_pair(1, 1, 2, math.nan), "new: slow-down = nan"),
        (lambda: sharing_pair(1, 1, True, 2), "old: slow-down = True"),
        (lambda: sharing_pair(1, 1, 2, 2).completions(-1), "delay = -1"),
        (lambda: share_threshold(Fraction(1, 2), 1), "new: slow-down"),
        (lambda: two_transfers(TABLE, 1, 1), "not measured ratios"),
        (lambda: two_transfers(BELOW, 1, 1), r"penalty = -0.1: .* needs a penalty eta >= 0"),
        (lambda: two_transfers(Contention(1.0, 0.0, 0.5), 1, 1), "latency = 0.5"),
        (lambda: two_transfers(ETHERNET_10G, 1, 0), "new_size = 0"),
        (lambda: two_transfers(ETHERNET_10G, "1", 1), "old_left = '1'"),  # type: ignore[arg-type]
        (lambda: two_transfers(ETHERNET_10G, 1, 1).completions(-1), "delay = -1"),
        (lambda: adadual_ratio(Fraction(51, 100)), r"theta = .*\(0, 1/2\]"),
        (lambda: adadual_ratio(0), "theta = 0"),
    ],
)
def test_what_is_not_legal(call: Any, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)
