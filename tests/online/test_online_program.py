"""Programs whose constraints arrive: solutions feasible in fractions, the ratio of the theorem, the optimum in between."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from optsched.errors import InputError
from optsched.online import OnlineProgram, prove

Arrival = tuple[dict[int, int], int, int | None]  # row, demand, limit


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[int], list[Arrival]]:
    """Costs, and rows with coefficients of 1..4 times a demand of 1 or 2, some with limits."""
    cost = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    arrivals = []
    for _ in range(draw(st.integers(1, 8))):
        demand, used = draw(st.sampled_from((1, 2))), draw(st.sets(st.integers(0, len(cost) - 1), min_size=1))
        row = {i: demand * draw(st.integers(1, 4)) for i in sorted(used)}
        arrivals.append((row, demand, draw(st.none() | st.integers(1, 3))))
    return cost, arrivals


def played(cost: list[int], arrivals: list[Arrival]) -> OnlineProgram:
    online = OnlineProgram(cost, len(cost), low=1, high=4)
    before = list(online.x)
    for row, demand, limit in arrivals:
        online.arrive(row, demand, limit=limit)
        assert all(now >= then for now, then in zip(online.x, before, strict=True))  # nothing is ever taken back
        before = list(online.x)
    return online


def optimum(cost: list[int], arrivals: list[Arrival]) -> float:
    """Of the packing program, by a solver."""
    a = np.zeros((len(cost), len(arrivals)))
    for j, (row, _, _) in enumerate(arrivals):
        for i, amount in row.items():
            a[i, j] = amount
    bounds = [(0, limit) for _, _, limit in arrivals]
    found = linprog([-demand for _, demand, _ in arrivals], A_ub=a, b_ub=cost, bounds=bounds, method="highs")
    return -float(found.fun)


@given(streams())
@settings(max_examples=examples(50))
def test_feasible_in_fractions_within_the_guarantee_and_around_the_optimum(
    stream: tuple[list[int], list[Arrival]],
) -> None:
    online = played(*stream)
    proof, best = online.proof(), optimum(*stream)  # the proof looks at every constraint, in fractions
    assert proof.covering <= proof.packing * Fraction(online.guarantee) * (1 + Fraction(1, 10**9))
    assert float(proof.lower) <= best * (1 + 1e-7)
    assert float(proof.upper) >= best * (1 - 1e-7)
    assert 1 <= proof.covering_ratio <= proof.covering / proof.packing
    assert 1 <= proof.packing_ratio <= proof.covering / proof.packing
    assert proof.stretch >= 1 >= proof.shrink


def test_nested_sets_force_a_logarithm() -> None:
    """d sets of cost 1, and elements that one set fewer holds each time: the optimum is 1, any online covering pays H_d."""
    d = 64
    online, kept = OnlineProgram([1] * d, d), list(range(d))
    while kept:
        online.arrive(dict.fromkeys(kept, 1))
        kept.remove(max(kept, key=online.x.__getitem__))  # of k sets that cover it has 1 / k at least
    proof = online.proof()
    assert proof.upper >= 1  # the set that is in all of them is a covering
    assert proof.covering >= sum(Fraction(1, k) for k in range(1, d + 1))
    assert proof.covering <= Fraction(online.guarantee) * (1 + Fraction(1, 10**9))


def test_what_is_not_legal_is_refused() -> None:
    online = OnlineProgram([1, 2], 2, low=1, high=3)
    for row, demand, limit in (
        ({0: 4}, 1, None),
        ({0: 0.5}, 1, None),
        ({2: 1}, 1, None),
        ({}, 1, None),
        ({0: 1}, 0, None),
        ({0: 1}, math.inf, None),
        ({0: 1}, 1, 0),
    ):
        with pytest.raises(InputError):
            online.arrive(row, demand, limit=limit)
    for cost, width, low in (([0], 1, 1.0), ([1], 0, 1.0), ([1], 1, 0.0), ([math.nan], 1, 1.0)):
        with pytest.raises(InputError):
            OnlineProgram(cost, width, low=low)
    assert online.arrive({}, 1, limit=2) == 2  # nothing but z_j covers it
    assert online.proof().covering == 2


def test_a_program_without_arrivals() -> None:
    assert OnlineProgram([1] * 12, 4).guarantee == pytest.approx(2 * math.log(5), rel=1e-9)
    proof = OnlineProgram([1], 1).proof()
    assert (proof.covering, proof.packing, proof.covering_ratio, proof.packing_ratio) == (0, 0, 1, 1)


def test_solutions_that_are_none_prove_nothing() -> None:
    one, row = Fraction(1), ({0: Fraction(1)}, Fraction(1))
    assert prove([one], [row], [one], [one]).covering_ratio == 1
    for x, y in (([one / 2], [one]), ([one], [2 * one]), ([one], [-one]), ([], [one]), ([one], [])):
        with pytest.raises(InputError):
            prove([one], [row], x, y)
