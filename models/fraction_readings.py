"""What a solver's floats may have meant, as fractions."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

SIMPLE = 10**4  # largest denominator guessed; a wrong guess costs a proof value, never validity


def readings(numbers: Iterable[float]) -> list[list[Fraction]]:
    """Two readings of numbers >= 0 (what is below counts as 0): the fractions that the floats are, and simple ones nearby.

    Optimal solutions of LPs with small integers are fractions with small denominators: a solver's 0.333... means 1/3, and
    with 1/3 a proof loses nothing at all.
    """
    exact = [max(Fraction(0), Fraction(float(number))) for number in numbers]
    return [exact, [number.limit_denominator(SIMPLE) for number in exact]]
