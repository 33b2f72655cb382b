"""The measures of predictions against hand-computed numbers and, where it has them, scikit-learn."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import mean_absolute_error, mean_absolute_percentage_error, r2_score

from optsched.errors import InputError
from optsched.policies.predictors.quality import quality

LENGTHS = st.lists(st.tuples(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9)), min_size=2, max_size=30)


def test_by_hand() -> None:
    # 1 + n = 2, 4, 8, 16 and 1 + n^ = 2, 8, 8, 4: logs to base 2 are 1, 2, 3, 4 and 1, 3, 3, 2
    found = quality([1, 3, 7, 15], [1, 7, 7, 3])
    assert found.jobs == 4
    assert found.mae == (0 + 4 + 0 + 12) / 4
    assert found.mape == pytest.approx((0 + 4 / 3 + 0 + 12 / 15) / 4)
    assert found.r2 == pytest.approx(1 - (0 + 1 + 0 + 4) / (2.25 + 0.25 + 0.25 + 2.25))
    # ratios 1, 7/3 over, 1, 5 under
    assert found.p50 == pytest.approx((1 + 7 / 3) / 2)
    assert found.p95 == pytest.approx(7 / 3 + 0.85 * (5 - 7 / 3))
    assert found.p99 == pytest.approx(7 / 3 + 0.97 * (5 - 7 / 3))
    assert found.worst == 5
    assert found.over_worst == 7 / 3
    assert found.under_worst == 5
    assert found.over_p99 == pytest.approx(1 + 0.97 * (7 / 3 - 1))
    assert found.under_p99 == pytest.approx(1 + 0.97 * (5 - 1))


@given(pairs=LENGTHS)
def test_by_another_road(pairs: list[tuple[float, float]]) -> None:
    n, guess = np.array(pairs).T
    found = quality(n, guess)
    assert found.mae == pytest.approx(mean_absolute_error(n, guess))
    assert found.mape == pytest.approx(mean_absolute_percentage_error(n, guess))
    if np.ptp(np.log1p(n)) > 1e-9:
        assert found.r2 == pytest.approx(r2_score(np.log1p(n), np.log1p(guess)), rel=1e-6, abs=1e-9)
    # every n^ lies in [n / lam_u, lam_o n], and no smaller factors will do
    assert (guess <= found.over_worst * n * (1 + 1e-12)).all()
    assert (guess >= n / found.under_worst * (1 - 1e-12)).all()
    assert found.worst == max(found.over_worst, found.under_worst)
    assert 1 <= found.p50 <= found.p95 <= found.p99 <= found.worst
    assert (min(found.over_worst, found.over_p99, found.under_worst, found.under_p99)) >= 1
    swapped = quality(guess, n)
    assert (swapped.over_worst, swapped.under_worst) == (found.under_worst, found.over_worst)


def test_json_has_no_nan() -> None:
    found = quality([5, 5], [4, 6])
    assert math.isnan(found.r2)
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["r2"] is None
    assert document["jobs"] == 2
    assert document["under_worst"] == 1.25


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        ([], [], "true: nothing to compare"),
        ([1, 2], [1], "predicted = 1: another number of values.*2 values"),
        ([1, 0], [1, 1], r"row 2, true = 0.0: invalid"),
        ([1, 1], [1, math.nan], r"row 2, predicted = nan: invalid"),
        ([1, 1], [-2, 1], r"row 1, predicted = -2.0: invalid"),
        ([math.inf], [1], r"row 1, true = inf: invalid"),
    ],
)
def test_what_cannot_be_compared(true: list[float], predicted: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        quality(true, predicted)
