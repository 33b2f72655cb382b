"""Numbers for people, rounded to the side on which what they say stays true: upper bounds up, lower bounds down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Literal

Side = Literal["up", "down", "nearest"]

_MODES = {"up": ROUND_CEILING, "down": ROUND_FLOOR, "nearest": ROUND_HALF_EVEN}
NOISE = 12  # significant digits of a quotient of floats that are not rounding


def fixed(value: float, decimals: int, side: Side = "nearest") -> str:
    """``value`` with that many decimals, thousands separated: the least such number that is not below it, for "up".

    The decimal that a float is written as is what is rounded: 1.1 stays 1.1, though the float is a little above it.
    """
    if not math.isfinite(value):
        return f"{value}"
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), rounding=_MODES[side])
    return f"{rounded + 0:,f}"  # no "-0"


def number(value: float | None, digits: int = 4, side: Side = "nearest") -> str:
    """A number in at most ``digits`` significant decimals, thousands separated; a dash for none."""
    if value is None or value != value:
        return "-"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    decimals = max(0, digits - 1 - len(f"{abs(value):.0f}")) if abs(value) >= 1 else digits - 1
    text = fixed(value, decimals, side)
    return text.rstrip("0").rstrip(".") if "." in text and digits > 4 else text


def significant(value: float, digits: int, side: Side = "nearest") -> str:
    """``value`` with that many significant digits, without zeros at the end: as ``.4g``, but to a side."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    exact = Decimal(repr(float(value)))
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=_MODES[side])
    return f"{float(rounded):.{digits}g}"


def ratio(value: float, decimals: int = 3, *, exact: bool = False) -> str:
    """A ratio to a bound, which is at most what is shown.

    ``exact``: to the optimum itself: the nearest such number, but never 1 for a schedule that is no optimum. (A quotient of
    two floats is off in its last digits: they are no reason to think so.)
    """
    if not exact or not math.isfinite(value):
        return fixed(value, decimals, "up")
    value = float(f"{value:.{NOISE}g}")
    nearest = fixed(value, decimals, "nearest")
    return fixed(value, decimals, "up") if value > 1 and float(nearest) == 1 else nearest
