"""Keys by their leading bits: what rounding tells apart is equal, what is not stays apart, and the order is kept."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, strategies as st

from optsched.policies.ties import BITS, leading

NUMBERS = st.floats(min_value=1e-300, max_value=1e300)


@given(NUMBERS, st.integers(-3, 3))
def test_the_last_bits_do_not_count(x: float, ulps: int) -> None:
    exact = float(np.float32(x)) if 1e-30 < x < 1e30 else 1.0  # few bits, as whole seconds and their halves have
    near = exact + ulps * math.ulp(exact)
    assert leading(np.array([near]))[0] == leading(np.array([exact]))[0] == exact


@given(NUMBERS, NUMBERS)
def test_the_order_is_kept(x: float, y: float) -> None:
    a, b = leading(np.array([x, y])).tolist()
    assert (a <= b) if x <= y else (a >= b)
    assert a != b or abs(x - y) <= max(x, y) * 2.0 ** (1 - BITS)


def test_what_is_no_number_stays() -> None:
    kept = leading(np.array([-np.inf, np.inf, np.nan, 0.0, -1.5]))
    assert kept[[0, 1, 3, 4]].tolist() == [-np.inf, np.inf, 0.0, -1.5]
    assert math.isnan(kept[2])
