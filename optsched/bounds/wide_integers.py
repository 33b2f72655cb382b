"""Unsigned 128-bit integers as pairs of 64-bit words, and sums of them in 32-bit limbs, compiled by numba.

Times on the integer grid of a bound have up to 61 bits, so their products and their sums over a million jobs do not
fit in one machine word. All words are ``uint64``: mixing in a signed one would turn them into floats.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit

Words = npt.NDArray[np.uint64]

LIMBS = 4  # of 32 bits, each in a 64-bit word: 2**32 products of 128 bits can be added before one overflows
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_TOP = np.uint64(63)
_ZERO = np.uint64(0)


@njit(forceinline=True)
def wide_product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """(high, low) words of ``a * b``."""
    a1, a0 = a >> _HALF, a & _LOW
    b1, b0 = b >> _HALF, b & _LOW
    low, cross, other = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> _HALF) + (cross & _LOW) + (other & _LOW)
    high = a1 * b1 + (cross >> _HALF) + (other >> _HALF) + (middle >> _HALF)
    return high, (middle << _HALF) | (low & _LOW)


@njit
def wide_divide(high: np.uint64, low: np.uint64, divisor: np.uint64) -> tuple[np.uint64, np.uint64]:
    """(quotient, remainder) of the 128-bit dividend; needs ``high < divisor < 2**63``."""
    if high == _ZERO:
        return low // divisor, low % divisor
    quotient, remainder = _ZERO, high
    for _ in range(64):
        remainder = (remainder << _ONE) | (low >> _TOP)
        low <<= _ONE
        quotient <<= _ONE
        if remainder >= divisor:
            remainder -= divisor
            quotient |= _ONE
    return quotient, remainder


@njit(forceinline=True)
def add_wide(limbs: Words, high: np.uint64, low: np.uint64) -> None:
    """Add a 128-bit integer to a sum; carries are left to `total`, at most 2**32 terms."""
    limbs[0] += low & _LOW
    limbs[1] += low >> _HALF
    limbs[2] += high & _LOW
    limbs[3] += high >> _HALF


@njit
def sum_words(values: npt.NDArray[np.int64]) -> Words:
    """Limbs of the sum of nonnegative integers."""
    limbs = np.zeros(LIMBS, dtype=np.uint64)
    low, high = _ZERO, _ZERO
    for value in values:
        word = np.uint64(value)
        low += word & _LOW
        high += word >> _HALF
    limbs[0] = low
    limbs[1] = high
    return limbs


def total(limbs: Words) -> int:
    """The integer that the limbs of a sum represent."""
    return sum(int(limb) << (32 * position) for position, limb in enumerate(limbs))
