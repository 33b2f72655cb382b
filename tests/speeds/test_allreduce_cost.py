"""The table of all-reduce algorithms: exact figures for eight workers, and a count of the ring's messages."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optsched.errors import InputError
from optsched.speeds.allreduce_cost import ALGORITHMS, binary_tree, halving_doubling, recursive_doubling, ring
from optsched.speeds.link_contention import LinkCost

ALPHA, BETA, GAMMA = Fraction(5), Fraction(1, 3), Fraction(1, 7)


def test_eight_workers() -> None:
    b = Fraction(7, 8) * (2 * BETA + GAMMA)
    assert ring(8, ALPHA, BETA, GAMMA) == LinkCost(b, 0, 70)
    assert binary_tree(8, ALPHA, BETA, GAMMA) == LinkCost(3 * (2 * BETA + GAMMA), 0, 30)
    assert recursive_doubling(8, ALPHA, BETA, GAMMA) == LinkCost(3 * (BETA + GAMMA), 0, 15)
    assert halving_doubling(8, ALPHA, BETA, GAMMA) == LinkCost(b, 0, 30)


@pytest.mark.parametrize("N", [2, 3, 5, 8])
def test_the_ring_step_by_step(N: int) -> None:
    """N - 1 rounds send and add up a part of M / N, N - 1 more send the sums on."""
    seconds = sum(ALPHA + BETA / N + GAMMA / N for _ in range(N - 1)) + sum(ALPHA + BETA / N for _ in range(N - 1))
    cost = ring(N, ALPHA, BETA, GAMMA)
    assert cost.latency + cost.seconds_per_byte == seconds


@pytest.mark.parametrize("N", [4, 16])
def test_doubling_step_by_step(N: int) -> None:
    """Doubling exchanges all of M in every round; halving M / 2, M / 4, ... with sums, then the same back without."""
    rounds = N.bit_length() - 1
    whole = recursive_doubling(N, ALPHA, BETA, GAMMA)
    assert whole.latency + whole.seconds_per_byte == sum(ALPHA + BETA + GAMMA for _ in range(rounds))
    parts = [Fraction(1, 2**step) for step in range(1, rounds + 1)]
    seconds = sum(ALPHA + part * (BETA + GAMMA) for part in parts) + sum(ALPHA + part * BETA for part in parts)
    halved = halving_doubling(N, ALPHA, BETA, GAMMA)
    assert halved.latency + halved.seconds_per_byte == seconds


@pytest.mark.parametrize("algorithm", ALGORITHMS.values())
def test_what_is_not_legal(algorithm) -> None:
    assert algorithm(6, 1e-5, 1e-9).seconds_per_byte > 0  # not a power of two
    for N, alpha, told in (
        (1, 1.0, "N = 1"),
        (2.0, 1.0, "N = 2.0"),
        (4, -1.0, "alpha = -1"),
        (4, float("nan"), "alpha"),
    ):
        with pytest.raises(InputError, match=told):
            algorithm(N, alpha, 1e-9)
