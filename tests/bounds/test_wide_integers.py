"""128-bit words against Python integers."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from optsched.bounds.wide_integers import LIMBS, add_wide, sum_words, total, wide_divide, wide_product

words = st.integers(0, 2**64 - 1) | st.integers(0, 64).map(lambda k: (1 << k) - 1)


@given(words, words)
@example(2**64 - 1, 2**64 - 1)
def test_product(a: int, b: int) -> None:
    high, low = wide_product(np.uint64(a), np.uint64(b))
    assert (int(high) << 64) + int(low) == a * b


@given(st.integers(1, 2**63 - 1), st.data())
def test_division(divisor: int, data: st.DataObject) -> None:
    dividend = data.draw(st.integers(0, divisor * 2**64 - 1))
    high, low = np.uint64(dividend >> 64), np.uint64(dividend % 2**64)
    quotient, remainder = wide_divide(high, low, np.uint64(divisor))
    assert (int(quotient), int(remainder)) == divmod(dividend, divisor)


@given(st.lists(st.integers(0, 2**63 - 1), max_size=20))
@example([2**63 - 1] * 20)
def test_sum_of_words_does_not_overflow(values: list[int]) -> None:
    assert total(sum_words(np.array(values, dtype=np.int64))) == sum(values)


@given(st.lists(st.tuples(words, words), max_size=20))
@example([(2**64 - 1, 2**64 - 1)] * 20)
def test_sum_of_wide_numbers_does_not_overflow(values: list[tuple[int, int]]) -> None:
    limbs = np.zeros(LIMBS, dtype=np.uint64)
    for high, low in values:
        add_wide(limbs, np.uint64(high), np.uint64(low))
    assert total(limbs) == sum((high << 64) + low for high, low in values)
