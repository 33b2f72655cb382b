"""Exact arithmetic of lists: floats as integers over a power of two, quotients rounded down."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction


def integers(values: Iterable[float | Fraction]) -> tuple[list[int], int]:
    """Return numbers as integers over one common power of two.

    Parameters
    ----------
    values
        Finite floats, or fractions whose denominators are powers of two.

    Returns
    -------
    tuple
        The integers, and the power of two: a value is its integer over that power.
    """
    ratios = [value.as_integer_ratio() for value in values]
    parts = {q for _, q in ratios}
    unit = max(parts, default=1)
    scale = {q: unit // q for q in parts}
    return [p for p, _ in ratios] if unit == 1 else [p * scale[q] for p, q in ratios], unit


def exact_sum(values: Iterable[float | Fraction]) -> Fraction:
    """Return the exact sum of floats.

    Parameters
    ----------
    values
        Finite floats, or fractions whose denominators are powers of two.
    """
    numerators, unit = integers(values)
    return Fraction(sum(numerators), unit)


def floors(values: Iterable[int], unit: int, exponent: int) -> list[int]:
    """Return ``floor(value * 2**exponent / unit)`` of every integer.

    Parameters
    ----------
    values
        Integers in parts of ``1 / unit``.
    unit
        Parts of one.
    exponent
        Exponent of the power of two.
    """
    up, down = max(exponent, 0), unit << max(-exponent, 0)
    return [(value << up) // down for value in values]


def quotient_below(numerator: int, denominator: int) -> float:
    """Return the largest float64 that is at most a quotient of integers.

    Parameters
    ----------
    numerator
        Integer of any size.
    denominator
        Positive integer.
    """
    nearest = numerator / denominator
    p, q = nearest.as_integer_ratio()
    return nearest if p * denominator <= numerator * q else math.nextafter(nearest, -math.inf)


def below(value: Fraction) -> float:
    """Return the largest float64 that is at most a fraction.

    Parameters
    ----------
    value
        Fraction in the range of floats.
    """
    return quotient_below(value.numerator, value.denominator)
