"""Numbers as text, rounded to the side on which their statement stays true: upper bounds up, lower bounds down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Literal

Side = Literal["up", "down", "nearest"]

_MODES = {"up": ROUND_CEILING, "down": ROUND_FLOOR, "nearest": ROUND_HALF_EVEN}
_WIDE = Context(prec=400)  # holds all digits of the largest float
LARGE = 1e21  # from here on a number is written with an exponent
NOISE = 12  # significant digits of a quotient of floats that are not rounding


def fixed(value: float, decimals: int, side: Side = "nearest") -> str:
    """Format a number with a fixed number of decimals and separated thousands.

    The decimal form of the float is rounded: 1.1 stays 1.1, though the float is slightly larger.

    Parameters
    ----------
    value
        The number.
    decimals
        Number of decimals.
    side
        ``"up"``: the smallest such number that is not below; ``"down"``, ``"nearest"``.
    """
    if not math.isfinite(value):
        return f"{value}"
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), _MODES[side], _WIDE)
    return f"{rounded or rounded.copy_abs():,f}"  # no "-0"


def number(value: float | None, digits: int = 4, side: Side = "nearest") -> str:
    """Format a number with at most ``digits`` significant digits and separated thousands; a dash for none.

    Parameters
    ----------
    value
        The number, None or nan.
    digits
        Number of significant digits.
    side
        Side of the rounding, as for `fixed`.
    """
    if value is None or value != value:
        return "-"
    if not math.isfinite(value) or abs(value) >= LARGE:
        return significant(value, digits, side)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    decimals = max(0, digits - 1 - len(f"{abs(value):.0f}")) if abs(value) >= 1 else digits - 1
    text = fixed(value, decimals, side)
    return text.rstrip("0").rstrip(".") if "." in text and digits > 4 else text


def significant(value: float, digits: int, side: Side = "nearest") -> str:
    """Format a number with significant digits and without trailing zeros, as ``.4g`` but rounded to a side.

    Parameters
    ----------
    value
        The number.
    digits
        Number of significant digits.
    side
        Side of the rounding, as for `fixed`.
    """
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    exact = Decimal(repr(float(value)))
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=_MODES[side])
    return f"{float(rounded):.{digits}g}"


def ratio(value: float, decimals: int = 3, *, exact: bool = False) -> str:
    """Format a ratio to a bound, rounded up: the true ratio is at most the text.

    Parameters
    ----------
    value
        The ratio.
    decimals
        Number of decimals.
    exact
        Whether it is a ratio to the optimum: then the nearest number, but never 1 for a schedule that is not optimal. (The
        last digits of a quotient of two floats are noise and do not count.)
    """
    if not exact or not math.isfinite(value):
        return fixed(value, decimals, "up")
    value = float(f"{value:.{NOISE}g}")
    nearest = fixed(value, decimals, "nearest")
    return fixed(value, decimals, "up") if value > 1 and float(nearest) == 1 else nearest


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    Parameters
    ----------
    number
        The number.
    noun
        The noun in the singular; its plural ends in "s".
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def were(number: int) -> str:
    """Return the verb behind a number of things: ``was`` or ``were``.

    Parameters
    ----------
    number
        The number.
    """
    return "was" if number == 1 else "were"
