"""Exact sums and dot products of float64 arrays, at the speed of a compiled loop.

A float64 is an integer of 53 bits times a power of two. Integers of equal exponent are added in integer arithmetic, and
the sums of the (at most 4,200) exponents are put together as one fraction: no rounding anywhere. O(n).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from optsched.bounds.wide_integers import Words, add_wide, total, wide_product
from optsched.compiled import njit, types
from optsched.problem.arrays import Floats

_MANTISSA = np.int64((1 << 52) - 1)
_IMPLICIT = np.int64(1 << 52)
_LOWEST = -1074  # exponent of the last bit of the smallest float64


@njit(forceinline=True)
def _split(bits: np.int64) -> tuple[np.uint64, np.int64]:
    # |x| = mantissa * 2**(exponent - 1074), exponent >= 0
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & _MANTISSA
    if exponent == 0:
        return np.uint64(mantissa), np.int64(0)
    return np.uint64(mantissa | _IMPLICIT), exponent - 1


# One form for arrays that may be written and for those that may not.
_BITS = types.Array(types.int64, 1, "C", readonly=True)


@njit(types.uint64[:, :, ::1](_BITS))
def _sum_by_exponent(bits: npt.NDArray[np.int64]) -> Words:
    # [sign, exponent, half of the mantissa]
    limbs = np.zeros((2, 2048, 2), dtype=np.uint64)
    for x in bits:
        mantissa, exponent = _split(x)
        row = limbs[1 if x < 0 else 0, exponent]
        row[0] += mantissa & np.uint64(0xFFFFFFFF)
        row[1] += mantissa >> np.uint64(32)
    return limbs


@njit(types.uint64[:, :, ::1](_BITS, _BITS))
def _dot_by_exponent(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> Words:
    limbs = np.zeros((2, 4096, 4), dtype=np.uint64)
    for x, y in zip(a, b):  # noqa: B905 - numba knows no strict=
        left, left_exponent = _split(x)
        right, right_exponent = _split(y)
        high, low = wide_product(left, right)
        add_wide(limbs[1 if (x ^ y) < 0 else 0, left_exponent + right_exponent], high, low)
    return limbs


def _fraction(limbs: Words, lowest: int) -> Fraction:
    # lowest: the exponent of row 0
    numerator = 0
    for sign in (0, 1):
        rows = np.flatnonzero(limbs[sign].any(axis=1))
        for row in rows:
            value = total(limbs[sign, row]) << int(row)
            numerator += -value if sign else value
    return Fraction(numerator, 1 << -lowest)


def exact_sum(values: Floats) -> Fraction:
    """The sum of a float64 array as a fraction (at most 2**32 finite values)."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return _fraction(_sum_by_exponent(bits), _LOWEST)


def exact_dot(a: Floats, b: Floats) -> Fraction:
    """``sum a_i b_i`` of two float64 arrays as a fraction (at most 2**32 finite values)."""
    left = np.ascontiguousarray(a, dtype=np.float64).view(np.int64)
    right = np.ascontiguousarray(b, dtype=np.float64).view(np.int64)
    return _fraction(_dot_by_exponent(left, right), 2 * _LOWEST)
