"""Step functions against sums in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.plot.timeline import bin_means, levels

pytestmark = pytest.mark.release

STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(-3, 3)), max_size=12)


@given(STEPS, st.integers(1, 9))
def test_means_over_bins_are_integrals(steps: list[tuple[int, int, int]], bins: int) -> None:
    row, time, change = (np.array([step[k] for step in steps], dtype=np.int64) for k in range(3))
    drawn = bin_means(row, time.astype(float), change.astype(float), 3, 5.0, 35.0, bins)
    for r in range(3):
        for k in range(bins):
            low, high = 5 + Fraction(30 * k, bins), 5 + Fraction(30 * (k + 1), bins)
            area = sum((c * (high - min(max(Fraction(t), low), high)) for q, t, c in steps if q == r), Fraction(0))
            assert abs(drawn[r, k] - float(area / (high - low))) < 1e-9


@given(STEPS)
def test_levels_are_running_sums_at_distinct_times(steps: list[tuple[int, int, int]]) -> None:
    when, level = levels(np.array([t for _, t, _ in steps], float), np.array([c for *_, c in steps], float))
    assert when.tolist() == sorted({t for _, t, _ in steps})
    assert level.tolist() == [sum(c for _, t, c in steps if t <= now) for now in when.tolist()]
