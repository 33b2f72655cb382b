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
    unit = max([value.as_integer_ratio()[1] for value in values], default=1)
    try:
        scale = float(unit)
        return [int(value * scale) for value in values], unit  # a power of two: products are exact, or infinite
    except OverflowError:
        ratios = [value.as_integer_ratio() for value in values]
        return [p * (unit // q) for p, q in ratios], unit


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
