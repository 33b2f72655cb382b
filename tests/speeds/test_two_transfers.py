"""The two-transfer theorem against a fluid simulation of one link, AdaDUAL's threshold and exact ratio."""

from __future__ import annotations

from fractions import Fraction

import pytest
from events import contended, played
from hypothesis import given, strategies as st

from optsched.errors import InputError
from optsched.problem.contention import ETHERNET_10G, Contention
from optsched.speeds.sharing_pair import adadual_ratio, share_threshold, sharing_pair, two_transfers

PENALTIES = [Fraction(0), Fraction(1, 10), Fraction(235, 856), Fraction(1, 2), Fraction(1), Fraction(40)]

positive = st.fractions(Fraction(1, 20), 20, max_denominator=40)
penalties = st.fractions(0, 3, max_denominator=20)


def ends_on_a_link(tau: Fraction, old: Fraction, new: Fraction, b: Fraction, eta: Fraction) -> list[Fraction]:
    """Both ends, the new one started after ``tau``."""
    return played([Fraction(0), tau], [old, new], [{0}, {0}], contended(b, eta))


@given(positive, positive, positive, penalties, st.fractions(0, Fraction(3, 2), max_denominator=50))
def test_completions_after_a_delay_are_the_simulation(
    old: Fraction, new: Fraction, b: Fraction, eta: Fraction, part: Fraction
) -> None:
    tau, xi = part * b * old, (2 * b + eta) / b
    ends = ends_on_a_link(tau, old, new, b, eta)
    assert list(sharing_pair(b * old, b * new, xi, xi).completions(tau)) == ends  # the theorem, exactly
    found = two_transfers(Contention(float(b), float(eta)), float(old), float(new))
    assert found.completions(float(tau)) == pytest.approx([float(end) for end in ends])


@given(positive, positive, positive, penalties)
def test_no_delay_beats_both_ends(old: Fraction, new: Fraction, b: Fraction, eta: Fraction) -> None:
    xi = (2 * b + eta) / b
    pair, theta = sharing_pair(b * old, b * new, xi, xi), b / (2 * (b + eta))
    sums = [sum(ends_on_a_link(b * old * Fraction(step, 12), old, new, b, eta)) for step in range(14)]
    assert pair.optimal_sum == min(sums)
    assert share_threshold(xi, xi) == theta == pytest.approx(Contention(float(b), float(eta)).theta)
    assert pair.start_now == (sums[0] < sums[12]) == (new / old < theta)


@pytest.mark.parametrize("eta", PENALTIES)
def test_the_exact_ratio_of_two(eta: Fraction) -> None:
    """AdaDUAL against the better of both orders, the second released just after the first; worst at M_2 / M_1 = theta."""
    xi, theta = 2 + eta, 1 / (2 * (1 + eta))
    ratio = adadual_ratio(theta)
    for m in [theta, *(Fraction(step, 100) for step in range(1, 131))]:
        pair = sharing_pair(Fraction(1), m, xi, xi)
        value = pair.delayed_sum(pair.best_delay)
        optimum = min(value, sharing_pair(m, Fraction(1), xi, xi).optimal_sum)
        assert optimum >= min(1 + 2 * m, 2 + m)  # shortest first, alone
        assert value / optimum == ratio if m == theta else value / optimum < ratio


def test_printed_figures() -> None:
    assert ETHERNET_10G.theta == pytest.approx(0.39230, abs=5e-6)
    assert 1 / ETHERNET_10G.theta == pytest.approx(2.5491, abs=5e-5)
    assert adadual_ratio(ETHERNET_10G.theta) == pytest.approx(1.3405, abs=5e-5)
    assert adadual_ratio(Fraction(1, 2)) == Fraction(5, 4)
    assert adadual_ratio(Fraction(1, 4)) == Fraction(3, 2)  # eta = b
    assert adadual_ratio(Fraction(1, 10**9)) == pytest.approx(2)


# --- what is invalid ------------------------------------------------------------------------------------------------

TABLE = Contention(1.0, kinds=("a",), ratios=((0.5,),))
BELOW = Contention(1.0, -0.1)


@pytest.mark.parametrize(
    ("call", "told"),
    [
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
def test_what_is_not_legal(call, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)
