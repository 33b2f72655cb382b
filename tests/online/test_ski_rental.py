"""Ski rental: the factors of the theorems, exactly, and each run proved by its own dual."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from optsched.errors import InputError
from optsched.online import (
    OnlineProgram,
    bought_at,
    bought_at_once,
    fractional_factor,
    fractionally_bought,
    purchase_probabilities,
)


@pytest.mark.parametrize("price", [1, 2, 3, 10, 50])
def test_buying_on_day_b_is_two_minus_one_over_b(price: int) -> None:
    ratios = [bought_at_once(price, season).ratio for season in range(2 * price + 2)]
    assert max(ratios) == 2 - Fraction(1, price) == ratios[price]
    assert bought_at_once(price, price).proof().covering_ratio == 2 - Fraction(1, price)


@pytest.mark.parametrize("price", [2, 3, 7])
def test_no_other_day_is_better(price: int) -> None:
    for day in range(1, 3 * price):
        worst = max(bought_at(price, season, day).ratio for season in range(1, 4 * price))
        assert worst > 2 - Fraction(1, price) or day == price


@pytest.mark.parametrize(("price", "printed"), [(10, "1.6275"), (100, "1.5866"), (1000, "1.5824")])
def test_the_fractional_factor(price: int, printed: str) -> None:
    factor = fractional_factor(price)
    assert f"{float(factor):.4f}" == printed
    assert factor == 1 + 1 / ((1 + Fraction(1, price)) ** price - 1)
    assert float(factor) > math.e / (math.e - 1)


@pytest.mark.parametrize("price", [1, 2, 10, 100])
def test_every_season_is_at_the_factor_exactly_and_its_dual_proves_it(price: int) -> None:
    for season in {1, 2, price // 2 + 1, price, price + 1, 3 * price}:
        run = fractionally_bought(price, season)
        assert run.ratio == fractional_factor(price)
        proof = run.proof()
        assert (proof.lower, proof.covering) == (run.optimum, run.cost)
        assert proof.covering_ratio == run.ratio
    assert fractionally_bought(price, price).bought == 1
    assert fractionally_bought(price, 0).ratio == 1


@pytest.mark.parametrize("price", [1, 4, 20])
def test_buying_at_random_pays_less_in_expectation(price: int) -> None:
    chance = purchase_probabilities(price)
    assert sum(chance) == 1
    for season in (1, price, 2 * price):
        expected = sum(p * bought_at(price, season, day).cost for day, p in enumerate(chance, 1))
        run = fractionally_bought(price, season)
        assert expected == run.cost - run.bought


def test_the_general_method_reaches_e_over_e_minus_one() -> None:
    """With 1 + d = e: x = (e^(Y / B) - 1) / (e - 1), so that x is 1 when the dual has earned B."""
    price, worst = 50, Fraction(0)
    online = OnlineProgram([price], math.e - 1)
    for _ in range(2 * price):
        online.arrive({0: 1}, limit=1)
        worst = max(worst, online.proof().covering_ratio)
    assert float(worst) <= math.e / (math.e - 1) + 1e-9
    assert float(worst) > 1.55


def test_what_is_not_legal_is_refused() -> None:
    for price, season, day in ((0, 1, 1), (1, -1, 1), (1, 1, 0)):
        with pytest.raises(InputError):
            bought_at(price, season, day)
