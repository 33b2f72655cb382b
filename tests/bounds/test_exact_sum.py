"""Compiled exact sums against sums of fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from optsched.bounds.exact_dot import exact_dot, exact_sum

floats = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(floats, max_size=30))
@example([5e-324, -0.0, 1.7976931348623157e308, -1.7976931348623157e308])
@example([1e16, 1.0, -1e16])
def test_sum(values: list[float]) -> None:
    assert exact_sum(np.array(values, dtype=np.float64)) == sum(map(Fraction, values), Fraction(0))


@given(st.lists(st.tuples(floats, floats), max_size=30))
@example([(5e-324, 5e-324), (1.7976931348623157e308, -1.7976931348623157e308), (-0.0, 3.0)])
def test_dot(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    assert exact_dot(a, b) == sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0))


def test_a_long_sum_keeps_the_last_bit() -> None:
    values = np.full(100_001, 0.1)
    assert exact_sum(values) == 100_001 * Fraction(0.1)
    assert exact_dot(values, values) == 100_001 * Fraction(0.1) ** 2
