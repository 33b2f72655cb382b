"""Means, intervals and comparisons, against numbers worked out by hand and from printed tables of Student's t."""

from __future__ import annotations

import math

import pytest

from optsched.studies.estimate import Estimate, direction, estimate, relative


def test_mean_and_interval_of_five_by_hand() -> None:
    # mean 3, variance (4 + 1 + 0 + 1 + 4) / 4 = 2.5, t_{0.975, 4} = 2.776445
    found = estimate([1, 2, 3, 4, 5])
    assert found is not None
    assert (found.mean, found.count) == (3.0, 5)
    assert found.half_width == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)


def test_two_observations_have_the_widest_t() -> None:
    # s = 2 / sqrt 2, over sqrt 2: 1; t_{0.975, 1} = 12.7062
    found = estimate([10, 12])
    assert found is not None
    assert found.mean == 11
    assert found.half_width == pytest.approx(12.7062, rel=1e-5)


def test_one_observation_has_no_interval_and_none_no_mean() -> None:
    assert estimate([7]) == Estimate(7.0, None, 1)
    assert estimate([]) is None
    assert estimate([1.0, math.nan]) is None


def test_relative_differences_are_paired() -> None:
    # 10 % on both workloads, though the workloads differ a thousandfold: the interval has no width to speak of
    found = relative([1.1, 1100.0], [1.0, 1000.0])
    assert found is not None
    assert found.mean == pytest.approx(0.1)
    assert found.half_width == pytest.approx(0, abs=1e-12)
    by_hand = relative([1.0, 3.0], [2.0, 2.0])  # -0.5 and 0.5
    assert by_hand is not None
    assert by_hand.mean == 0
    assert by_hand.half_width == pytest.approx(12.7062 * math.sqrt(0.5) / math.sqrt(2), rel=1e-5)


def test_nothing_is_relative_to_zero() -> None:
    assert relative([1.0], [0.0]) is None
    with pytest.raises(ValueError, match="2 values beside 1"):
        relative([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (Estimate(-0.2, 0.1, 5), "lower"),
        (Estimate(0.2, 0.1, 5), "higher"),
        (Estimate(0.1, 0.1, 5), "no difference shown"),
        (Estimate(-0.1, 0.2, 5), "no difference shown"),
        (Estimate(-0.9, None, 1), "no difference shown"),
        (Estimate(0.0, 0.0, 5), "equal"),
        (Estimate(0.0, None, 1), "equal"),
        (Estimate(0.0, 0.3, 5), "no difference shown"),
        (None, "unknown"),
    ],
)
def test_direction_needs_an_interval_without_zero(change: Estimate | None, told: str) -> None:
    assert direction(change) == told
