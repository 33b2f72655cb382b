"""The two-transfer theorem against a fluid simulation of one link, AdaDUAL's threshold and exact ratio."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError
from optsched.problem.contention import ETHERNET_10G, Contention
from optsched.speeds.sharing_pair import adadual_ratio, share_threshold, sharing_pair, two_transfers

MB = 1_000_000
PENALTIES = [Fraction(0), Fraction(1, 10), Fraction(235, 856), Fraction(1, 2), Fraction(1), Fraction(40)]

positive = st.fractions(Fraction(1, 20), 20, max_denominator=40)
penalties = st.fractions(0, 3, max_denominator=20)


def simulated(tau: Fraction, old: Fraction, new: Fraction, b: Fraction, eta: Fraction) -> list[Fraction]:
    """When both end, the new one started after ``tau``: step from event to event, k at once at 1 / (k b + (k - 1) eta)."""
    left, starts, ends, clock = [old, new], [Fraction(0), tau], [Fraction(-1)] * 2, Fraction(0)
    while any(left):
        active = [i for i in (0, 1) if left[i] > 0 and starts[i] <= clock]
        each = len(active) * b + (len(active) - 1) * eta
        events = [tau] * (left[1] > 0 and tau > clock) + [clock + left[i] * each for i in active]
        step = min(events) - clock
        clock += step
        for i in active:
            left[i] -= step / each
            ends[i] = clock
    return ends


@given(positive, positive, positive, penalties, st.fractions(0, Fraction(3, 2), max_denominator=50))
def test_completions_after_a_delay_are_the_simulation(
    old: Fraction, new: Fraction, b: Fraction, eta: Fraction, part: Fraction
) -> None:
    tau, xi = part * b * old, (2 * b + eta) / b
    ends = simulated(tau, old, new, b, eta)
    assert list(sharing_pair(b * old, b * new, xi, xi).completions(tau)) == ends  # the theorem, exactly
    found = two_transfers(Contention(float(b), float(eta)), float(old), float(new))
    assert found.completions(float(tau)) == pytest.approx([float(end) for end in ends])


@given(positive, positive, positive, penalties)
def test_no_delay_beats_both_ends(old: Fraction, new: Fraction, b: Fraction, eta: Fraction) -> None:
    xi = (2 * b + eta) / b
    pair, theta = sharing_pair(b * old, b * new, xi, xi), b / (2 * (b + eta))
    sums = [sum(simulated(b * old * Fraction(step, 12), old, new, b, eta)) for step in range(14)]
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


def test_the_messages_of_the_four_models() -> None:
    """ResNet-50 into a fresh LSTM is just refused, and let in without a penalty; what is left counts, not the size."""
    resnet, inception, lstm, vgg = 99.2 * MB, 103.0 * MB, 251.8 * MB, 526.4 * MB

    def starts(left: float, new: float, link: Contention = ETHERNET_10G) -> bool:
        return two_transfers(link, left, new).start_now

    assert not starts(lstm, resnet)
    assert starts(lstm, resnet, Contention(0.856e-9))
    assert starts(vgg, resnet)
    assert starts(vgg, inception)
    assert not starts(vgg, lstm)
    assert starts(253 * MB, resnet)
    assert not starts(252 * MB, resnet)
    assert starts(263 * MB, inception)
    assert not starts(262 * MB, inception)


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
