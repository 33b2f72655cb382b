"""Exact sums of integers, of floats and of their products, by numpy on whole columns.

Finders of bounds use them; the verifier adds Python integers (`optsched.verifier.exact_numbers`), which takes ten to fifty
times as long. A float64 is an integer of 53 bits times a power of two. Halves of these integers are added up by exponent: no
sum of up to 2**26 halves needs more than the 53 bits of a float. Products of thirds and halves fit in machine words.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.problem.arrays import Floats, Ints

_HALF, _THIRD = 27, 18  # of the bits of a float
_WHOLE = 2.0**53  # below it, whole floats are integers that are added in halves
_BLOCK = 1 << 17  # products of a third and a half that fit in a word together


def exact_total(values: Ints) -> int:
    """Return the sum of integers.

    Parameters
    ----------
    values
        Integers, i64[n].
    """
    return (int((values >> _HALF).sum()) << _HALF) + int((values & (1 << _HALF) - 1).sum())


def exact_products(a: Ints, b: Ints) -> int:
    """Return ``sum a_i b_i`` of integers.

    Parameters
    ----------
    a
        Integers, i64[n].
    b
        Integers, i64[n].
    """
    return int(np.dot(a.astype(object), b.astype(object))) if a.size else 0


def exact_sum(values: Floats) -> Fraction:
    """Return the sum of floats as a fraction.

    Parameters
    ----------
    values
        At most 2**26 finite floats, f64[n].
    """
    if values.size and max(-float(values.min()), float(values.max())) < _WHOLE and (np.floor(values) == values).all():
        return Fraction(exact_total(values.astype(np.int64)))
    part, exponent = np.frexp(values)
    lowest, whole = int(exponent.min(initial=0)), np.ldexp(part, 53).astype(np.int64)
    halves = (np.bincount(exponent - lowest, part) for part in (whole >> _HALF, whole & (1 << _HALF) - 1))
    rows = enumerate(zip(*halves, strict=True))
    total = sum(((int(high) << _HALF) + int(low)) << k for k, (high, low) in rows)
    return total * Fraction(2) ** (lowest - 53)


def exact_dot(a: Floats, b: Floats) -> Fraction:
    """Return ``sum a_i b_i`` of floats as a fraction; fastest if the floats of ``a`` have few bits.

    Parameters
    ----------
    a
        Finite floats, f64[n].
    b
        Finite floats, f64[n].
    """
    if a.size and a.min() == a.max():
        return Fraction(float(a[0])) * exact_sum(b)
    value = Fraction(0)
    for k in range(0, a.size, _BLOCK):
        (x, p), (y, q) = np.frexp(a[k : k + _BLOCK]), np.frexp(b[k : k + _BLOCK])
        left, right = np.ldexp(x, 53).astype(np.int64), np.ldexp(y, 53).astype(np.int64)
        exponent, lowest = p + q - (p + q).min(), int((p + q).min())
        for i in range(0, 54, _THIRD):  # parts of a sum of _BLOCK products stay below 2**62
            part = left >> i & (1 << _THIRD) - 1 if i < 2 * _THIRD else left >> i
            for j, half in ((_HALF, right >> _HALF), (0, right & (1 << _HALF) - 1)) if part.any() else ():
                sums = np.zeros(int(exponent.max()) + 1, dtype=np.int64)
                np.add.at(sums, exponent, part * half)
                total = sum(part_sum << power for power, part_sum in enumerate(sums.tolist()))
                value += total * Fraction(2) ** (lowest - 106 + i + j)
    return value
