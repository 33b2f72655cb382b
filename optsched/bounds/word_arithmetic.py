"""Exact arithmetic of columns in machine words: sums of floats and of products, products of ticks and their quotients.

numpy on whole columns, for the verifiers of very many jobs (`optsched.bounds.word_verifier`); nothing is shared with
`optsched.bounds.exact_dot`, which the bounds use. What does not fit raises `Overflow`.

* **Sums of floats**: a column is cut into parts, each of integers of few bits times one power of two, so that no sum of a
  block of them, in whatever order, needs more than the 53 bits of a float. Cutting is ``(x + s) - s`` with a power of two
  and a half, s, beside which x loses all bits below the unit of the part.
* **Sums of products**: the same with parts of both columns, whose products are whole numbers of the product of the units.
* **Numbers beyond 63 bits**: three words of 31 bits, the highest of which has more.

Reference: Rump, Ogita, Oishi, Accurate floating-point summation, part I: faithful rounding, SIAM J. Scientific Computing 31
(2008), 189-224 (section 3: extraction of the leading bits without error).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.problem.arrays import Floats, Ints

Words = tuple[Ints, Ints, Ints]  # of 31 bits, highest first

BLOCK_BITS = 16  # of the numbers in a block: it stays in the cache
BLOCK = 1 << BLOCK_BITS
MANTISSA = 53
_FEW = 8  # bits of a part of the first factor: weights have few
_MANY = MANTISSA - BLOCK_BITS - _FEW  # and of the second
_LARGEST = 2.0**480  # so that neither a product of two nor what cuts them is too large for a float
_LEAST = -1074  # exponent of the least float
WORD = 31
LOW = (1 << WORD) - 1


class Overflow(ArithmeticError):
    """A number does not fit: Python integers have to do it."""


def float_sum(values: Floats) -> Fraction:
    """``sum values``, exactly; `Overflow` beyond 2**480."""
    value = Fraction(0)
    for block in _blocks(values.size):
        for _, part in _parts(values[block], MANTISSA - BLOCK_BITS):
            value += Fraction(float(part.sum()))
    return value


def float_dot(a: Floats, b: Floats) -> Fraction:
    """``sum a_i b_i``, exactly; cheapest where the numbers of ``a`` have few bits. `Overflow` beyond 2**480 or 2**-1074."""
    if a.size and a.min() == a.max():
        return Fraction(float(a[0])) * float_sum(b)
    value = Fraction(0)
    for block in _blocks(a.size):
        left = list(_parts(a[block], _FEW))
        for unit, part in _parts(b[block], _MANY):
            for other, factor in left:
                if unit + other < _LEAST:
                    raise Overflow
                value += Fraction(float(np.dot(factor, part)))
    return value


def tick_dot(a: Ints, b: Ints) -> int:
    """``sum a_i b_i`` of integers, those of ``a`` in 0 .. 2**53, those of ``b`` in 0 .. 2**62, exactly."""
    if a.size and a.min() == a.max():
        return int(a[0]) * ((int((b >> WORD).sum()) << WORD) + int((b & LOW).sum()))
    value, low = 0, (1 << _MANY) - 1
    for block in _blocks(a.size):
        left = [part for _, part in _parts(a[block].astype(np.float64), _FEW)]
        for shift in range(0, 62, _MANY):
            part = (b[block] >> shift & low).astype(np.float64)
            value += sum(int(np.dot(factor, part)) for factor in left) << shift
    return value


def _blocks(size: int) -> Iterator[slice]:
    return (slice(k, k + BLOCK) for k in range(0, size, BLOCK))


def _parts(values: Floats, bits: int) -> Iterator[tuple[int, Floats]]:
    # (u, part): multiples of 2**u, at most 2**bits of them; the parts add up to the values
    top = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if not top < _LARGEST:
        raise Overflow
    unit = math.frexp(top)[1] - bits
    while top and values.any():
        unit = max(unit, _LEAST)
        cutter = math.ldexp(1.5, unit + MANTISSA - 1)
        part = (values + cutter) - cutter
        values = values - part  # at most half a unit
        yield unit, part
        unit -= bits + 1


# --- numbers beyond 63 bits ----------------------------------------------------------------------------------------------


def wide_product(a: Ints, b: Ints) -> Words:
    """``a * b`` of integers in 0 .. 2**62."""
    a1, a0, b1, b0 = a >> WORD, a & LOW, b >> WORD, b & LOW
    bottom = a0 * b0
    middle = a1 * b0 + (bottom >> WORD)
    cross = a0 * b1 + (middle & LOW)
    return a1 * b1 + (middle >> WORD) + (cross >> WORD), cross & LOW, bottom & LOW


def difference(more: Words, less: Ints) -> Words:
    """``more - less``, not negative; the words of ``less``, i64[3, n], lowest first, with carries left."""
    low = more[2] - (less[0] & LOW)
    middle = more[1] - (less[1] & LOW) - (less[0] >> WORD) + (low >> WORD)
    return more[0] - less[2] - (less[1] >> WORD) + (middle >> WORD), middle & LOW, low & LOW


def joined(words: Words) -> Any:
    """Python integers, object[n]."""
    high, middle, low = (word.astype(object) for word in words)
    return (high << 2 * WORD) + (middle << WORD) + low


def divided_up(gap: Words, work: Ints) -> tuple[Ints, Ints]:
    """``ceil(2**31 gap / work)`` as (whole, part): ``2**31 whole + part``.

    The quotient in floats is wrong by less than 2**11, since it is below 2**62; what is left is then less than 2**62 for
    works below 2**51, and right in words that wrap around. Larger works are divided as Python integers.
    """
    high, middle, low = gap
    rough = (high * 2.0 ** (2 * WORD) + middle * 2.0**WORD + low) / work
    whole = rough.astype(np.int64)
    wrapped = (high.view(np.uint64) << np.uint64(2 * WORD)) + (middle.view(np.uint64) << np.uint64(WORD))
    left = (wrapped + low.view(np.uint64) - whole.view(np.uint64) * work.view(np.uint64)).view(np.int64)
    more = left // work
    whole, left = whole + more, left - more * work
    part = np.zeros_like(work)
    for bits in (11, 10, 10):
        digit = (left << bits) // work
        part, left = (part << bits) + digit, (left << bits) - digit * work
    part += left > 0
    large = np.flatnonzero(work >= 1 << 51)
    if large.size:
        exact = -((-joined((high[large], middle[large], low[large])) << WORD) // work[large].astype(object))
        whole[large], part[large] = exact >> WORD, exact & LOW
    return whole, part
