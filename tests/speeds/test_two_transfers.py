"""The two-transfer theorem: exactly, and by search over start times in a fluid simulation."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation.transfer_reference import played as simulated

from optsched.errors import InputError
from optsched.problem.contention import Contention
from optsched.speeds.link_contention import ETHERNET_10G, LinkCost, myopic_gain
from optsched.speeds.two_transfers import adadual_ratio, threshold, two_transfers

MB = 1_000_000
PENALTIES = [Fraction(0), Fraction(1, 10), Fraction(235, 856), Fraction(1, 2), Fraction(1), Fraction(40)]

positive = st.fractions(Fraction(1, 20), 20, max_denominator=40)
penalties = st.fractions(0, 3, max_denominator=20)


@given(positive, positive, positive, penalties, st.fractions(0, Fraction(3, 2), max_denominator=50))
def test_completions_after_a_delay_are_the_simulation(
    old: Fraction, new: Fraction, b: Fraction, eta: Fraction, part: Fraction
) -> None:
    pair = two_transfers(LinkCost(b, eta), old, new)
    tau = part * b * old
    assert list(pair.completions(tau)) == simulated([0, tau], [old, new], b, eta)


@given(positive, positive, positive, penalties)
def test_no_delay_beats_both_ends(old: Fraction, new: Fraction, b: Fraction, eta: Fraction) -> None:
    pair = two_transfers(LinkCost(b, eta), old, new)
    delays = [pair.wait * Fraction(step, 12) for step in range(14)]
    sums = [sum(simulated([0, tau], [old, new], b, eta)) for tau in delays]
    assert pair.optimal_sum == min(sums)
    assert pair.start_now == (sums[0] < sums[12]) == (new / old < threshold(LinkCost(b, eta)))
    assert pair.start_now == (myopic_gain([old], new, b, eta) > 0)  # k = 1 of the k-way rule, for every size


@pytest.mark.parametrize("eta", PENALTIES)
def test_the_threshold_flips_exactly_at_theta(eta: Fraction) -> None:
    link, old, little = LinkCost(Fraction(1), eta), Fraction(7), Fraction(1, 10**30)
    theta = threshold(link)
    below, at, above = (two_transfers(link, old, theta * old + shift) for shift in (-little, 0, little))
    assert below.start_now
    assert below.delayed_sum(0) < below.delayed_sum(below.wait)
    assert not at.start_now
    assert at.delayed_sum(0) == at.delayed_sum(at.wait)
    assert at.best_delay == 7
    assert not above.start_now
    assert above.delayed_sum(0) > above.delayed_sum(above.wait)


@pytest.mark.parametrize("eta", PENALTIES)
def test_the_exact_ratio_of_two(eta: Fraction) -> None:
    """AdaDUAL against the better of both orders, the second released just after the first; worst at M_2 / M_1 = theta."""
    link = LinkCost(Fraction(1), eta)
    theta = threshold(link)
    ratio = adadual_ratio(theta)
    worst = Fraction(0)
    for m in [theta, *(Fraction(step, 100) for step in range(1, 131))]:
        pair = two_transfers(link, Fraction(1), m)
        value = pair.delayed_sum(pair.best_delay)
        optimum = min(value, two_transfers(link, m, Fraction(1)).optimal_sum)
        assert optimum >= min(1 + 2 * m, 2 + m)  # shortest first, alone
        worst = max(worst, value / optimum)
        assert value / optimum == ratio if m == theta else value / optimum < ratio
    assert worst == ratio


def test_printed_figures() -> None:
    assert threshold(ETHERNET_10G) == pytest.approx(0.39230, abs=5e-6) == ETHERNET_10G.theta
    assert 1 / threshold(ETHERNET_10G) == pytest.approx(2.5491, abs=5e-5)
    assert adadual_ratio(threshold(ETHERNET_10G)) == pytest.approx(1.3405, abs=5e-5)
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
        (lambda: threshold(TABLE), "not measured ratios"),
        (lambda: two_transfers(BELOW, 1, 1), r"penalty = -0.1: .* needs a penalty eta >= 0"),
        (lambda: two_transfers(LinkCost(1, Fraction(-1, 10)), 1, 1), "needs a penalty eta >= 0"),
        (lambda: two_transfers(Contention(1.0, 0.0, 0.5), 1, 1), "latency = 0.5"),
        (lambda: two_transfers(ETHERNET_10G, 1, 0), "new_size = 0: a transfer of 0 bytes"),
        (lambda: two_transfers(ETHERNET_10G, "1", 1), "old_left = '1'"),
        (lambda: two_transfers(ETHERNET_10G, 1, 1).completions(-1), "tau = -1"),
        (lambda: threshold(BELOW), "needs a penalty eta >= 0"),
        (lambda: adadual_ratio(Fraction(51, 100)), r"theta = .*\(0, 1/2\]"),
        (lambda: adadual_ratio(0), "theta = 0"),
    ],
)
def test_what_is_not_legal(call, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)
