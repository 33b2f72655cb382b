"""Exact sums, of columns and of two floats, against sums of fractions and of Python integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given, strategies as st

from optsched.bounds.exact_dot import exact_dot, exact_products, exact_sum, exact_total
from optsched.bounds.fast_machine import wide_product
from optsched.bounds.sum_costs import ends_after, two_sum

floats = st.floats(allow_nan=False, allow_infinity=False)
integers = st.integers(-(2**63), 2**63 - 1)
finite = st.floats(-1e300, 1e300) | st.sampled_from([1e16, 1.0, 1.5, 2.0, -1e16, 0.1])
words = st.integers(0, 2**64 - 1) | st.integers(0, 64).map(lambda k: (1 << k) - 1)


@given(st.lists(floats, max_size=30))
@example([5e-324, -0.0, 1.7976931348623157e308, -1.7976931348623157e308])
@example([1e16, 1.0, -1e16])
def test_sum(values: list[float]) -> None:
    assert exact_sum(np.array(values, dtype=np.float64)) == sum(map(Fraction, values), Fraction(0))


@given(st.lists(st.tuples(floats, floats), max_size=30))
@example([(5e-324, 5e-324), (1.7976931348623157e308, -1.7976931348623157e308), (-0.0, 3.0)])
@example([(0.1, 0.3), (0.1, -5e-324), (0.1, 7.0)])
def test_dot(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    assert exact_dot(a, b) == sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0))


def test_a_long_sum_keeps_the_last_bit() -> None:
    values = np.full(100_001, 0.1)
    assert exact_sum(values) == 100_001 * Fraction(0.1)
    values[0] = 0.2
    assert exact_dot(values, values) == 100_000 * Fraction(0.1) ** 2 + Fraction(0.2) ** 2


@given(st.lists(st.tuples(integers, integers), max_size=20))
@example([(2**63 - 1, 2**63 - 1)] * 20)
@example([(-(2**63), 2**63 - 1)] * 20)
def test_integers_do_not_overflow(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert exact_total(a) == sum(a.tolist())
    assert exact_products(a, b) == sum(x * y for x, y in pairs)


@given(words, words)
@example(2**64 - 1, 2**64 - 1)
def test_the_product_of_two_words(a: int, b: int) -> None:
    high, low = wide_product(np.uint64(a), np.uint64(b))
    assert (int(high) << 64) + int(low) == a * b


@given(finite, finite)
@example(1e16, 1.0)
def test_two_sum_is_exact(a: float, b: float) -> None:
    total, error = two_sum(np.array([a]), np.array([b]))
    assert Fraction(float(total[0])) + Fraction(float(error[0])) == Fraction(a) + Fraction(b)


@given(finite, finite, finite)
@example(1e16, 1.0, 1e16)
@example(1e16, 1.0, 1e16 + 2)
def test_ends_after_decides_without_rounding(release: float, duration: float, moment: float) -> None:
    late = ends_after(np.array([release]), np.array([duration]), np.array([moment]))
    assert bool(late[0]) == (Fraction(release) + Fraction(duration) > Fraction(moment))
