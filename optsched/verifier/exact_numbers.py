"""Exact arithmetic of lists: floats as integers over a power of two, quotients rounded down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def integers(values: Sequence[float]) -> tuple[list[int], int]:
    """Return floats as integers over one common power of two, the smallest.

    Parameters
    ----------
    values
        Finite floats.

    Returns
    -------
    tuple
        The integers, and the power of two: a value is its integer over that power.
    """
    (numbers,), unit = common_integers(values)
    return numbers, unit


def common_integers(*columns: Sequence[float]) -> tuple[list[list[int]], int]:
    """Return columns of floats as integers over one common power of two, the smallest.

    Parameters
    ----------
    *columns
        Finite floats.

    Returns
    -------
    tuple
        The integers of every column, and the power of two: a value is its integer over that power.
    """
    unit = max((_denominator(column) for column in columns), default=1)
    return [_times(column, unit) for column in columns], unit


def _denominator(values: Sequence[float]) -> int:
    if all(map(float.is_integer, values)):
        return 1
    return max(denominator for _, denominator in map(float.as_integer_ratio, values))


def _times(values: Sequence[float], unit: int) -> list[int]:
    if unit == 1:
        return list(map(int, values))
    try:
        scale = float(unit)
        return [int(value * scale) for value in values]  # a power of two: products are exact, or infinite
    except OverflowError:
        ratios = [value.as_integer_ratio() for value in values]
        return [p * (unit // q) for p, q in ratios]


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
