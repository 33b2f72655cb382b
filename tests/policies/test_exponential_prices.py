"""Prices that grow exponentially, and the ratio R_eff that they charge, against formulas written out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError
from optsched.policies.exponential_prices import PriceFunction


def test_small_jobs_make_the_constant_logarithmic() -> None:
    capacities = np.array([[10], [100], [1000], [100_000]])
    found = [PriceFunction(1e-3, 1e3, c, np.array([1])).charged_ratio for c in capacities]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(math.log(1e6), rel=1e-3)


def test_the_formula_of_r_eff_by_hand_and_by_enumeration() -> None:
    capacity, widest = np.array([8, 5, 3]), np.array([2, 4, 3])
    price = PriceFunction(0.1, 50.0, capacity, widest)
    a = math.log(500)
    charged = [
        c / w * (math.exp(a * min(1, w / (c - wide + 1))) - 1)
        for c, wide in zip(capacity.tolist(), widest.tolist(), strict=True)
        for w in range(1, wide + 1)
    ]
    assert price.charged_ratio == pytest.approx(max(charged), rel=1e-12)
    assert price.charged_ratio_above() == pytest.approx(max(charged), rel=1e-12)


@given(st.floats(1e-9, 1e3), st.floats(1.0, 1e9), st.integers(1, 50), st.data())
def test_a_fraction_that_is_above_the_true_ratio(low: float, range_: float, c: int, data: st.DataObject) -> None:
    from decimal import Context, Decimal

    w = data.draw(st.integers(1, c))
    high = low * range_
    price = PriceFunction(low, high, np.array([c]), np.array([w]))
    context = Context(prec=80, Emax=10**8, Emin=-(10**8))
    s = c - w + 1
    v = min(w, s)
    power = context.power(context.divide(Decimal(high), Decimal(low)), context.divide(Decimal(v), Decimal(s)))
    true = max(Fraction(1), Fraction(context.subtract(power, Decimal(1))) * Fraction(c, v))
    assert true <= price.charged_ratio_above() <= true * (1 + Fraction(1, 10**20))


def test_prices_rise_from_low_to_high_and_no_further() -> None:
    capacity, widest = np.array([6]), np.array([2])
    price = PriceFunction(1.0, 100.0, capacity, widest)
    sold = np.arange(7)[:, None]
    assert price(sold)[:, 0].tolist() == pytest.approx([100 ** min(1, z / 5) for z in range(7)])
    assert price(sold).max() <= 100.0
    assert price(np.array([5])) == 100.0  # one device left, two may be asked for: beyond reach


@pytest.mark.parametrize(
    ("low", "high", "capacity", "widest"),
    [(0.0, 1.0, 2, 1), (2.0, 1.0, 2, 1), (1.0, math.inf, 2, 1), (1.0, 2.0, 2, 3), (1.0, 2.0, 2, 0)],
)
def test_illegal_prices_are_refused(low: float, high: float, capacity: int, widest: int) -> None:
    with pytest.raises(InputError):
        PriceFunction(low, high, np.array([capacity]), np.array([widest]))
