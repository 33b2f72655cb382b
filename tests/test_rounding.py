"""What is shown is on the safe side of what is meant, and nowhere further off than the digits shown."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rounding import fixed, ratio, significant

NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)


@given(NUMBERS, st.integers(0, 6))
def test_up_is_not_below_and_down_not_above(value: float, decimals: int) -> None:
    exact = Decimal(repr(value))
    up, down = (Decimal(fixed(value, decimals, side).replace(",", "")) for side in ("up", "down"))
    assert down <= exact <= up
    assert up - down <= Decimal(1).scaleb(-decimals)


@given(st.floats(1e-9, 1e12), st.integers(1, 8))
def test_significant_digits_round_to_the_side_asked_for(value: float, digits: int) -> None:
    assert float(significant(value, digits, "down")) <= value <= float(significant(value, digits, "up"))


@pytest.mark.parametrize(
    ("value", "exact", "shown"),
    [
        (1.000098, False, "1.001"),  # once printed as 1.000
        (1.0, False, "1.000"),
        (1.1, False, "1.100"),  # the float is above 1.1
        (1.0000000001, True, "1.001"),  # not the optimum
        (1.2100000000000002, True, "1.210"),  # 1.1 * 1.1
    ],
)
def test_a_ratio_is_at_most_what_is_shown(value: float, exact: bool, shown: str) -> None:
    assert ratio(value, exact=exact) == shown


def test_there_is_no_minus_zero() -> None:
    assert fixed(-0.0001, 2, "up") == "0.00"
