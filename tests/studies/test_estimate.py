"""Means, intervals and comparisons, against numbers worked out by hand and from printed tables of Student's t."""

from __future__ import annotations

import math

import pytest

from optsched.studies.experiment import Change, Estimate, estimate, relative


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


def test_changes_are_paired() -> None:
    # 10 % on both workloads, though the workloads differ a thousandfold: the interval has no width to speak of
    found = relative([1.1, 1100.0], [1.0, 1000.0])
    assert found is not None
    assert [found.mean, found.low, found.high] == pytest.approx([0.1, 0.1, 0.1])
    assert found.direction == "higher"


def test_twice_and_half_as_long_make_no_difference() -> None:
    # log ratios ln 2 and -ln 2: mean 0, s = sqrt 2 ln 2, half width t_{0.975, 1} ln 2
    found = relative([1.0, 4.0], [2.0, 2.0])
    assert found is not None
    assert found.mean == pytest.approx(0)
    assert found.high == pytest.approx(2**12.7062 - 1, rel=1e-4)
    assert found.low == pytest.approx(2**-12.7062 - 1)
    assert found.direction == "no difference shown"


def test_one_seed_has_a_change_but_no_interval() -> None:
    assert relative([3.0], [2.0]) == Change(pytest.approx(0.5), None, None)


def test_nothing_is_relative_to_zero_or_to_what_is_missing() -> None:
    assert relative([1.0], [0.0]) is None
    assert relative([math.nan], [1.0]) is None
    with pytest.raises(ValueError, match="2 values beside 1"):
        relative([1.0, 2.0], [1.0])


def test_intervals_stay_finite() -> None:
    found = relative([1e9, 1e-9], [1.0, 1.0])
    assert found is not None
    assert found.high is not None
    assert math.isfinite(found.high)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (Change(-0.2, -0.3, -0.1), "lower"),
        (Change(0.2, 0.1, 0.3), "higher"),
        (Change(0.1, 0.0, 0.2), "no difference shown"),
        (Change(-0.1, -0.3, 0.1), "no difference shown"),
        (Change(-0.9, None, None), "no difference shown"),
        (Change(0.0, 0.0, 0.0), "equal"),
        (Change(0.0, None, None), "equal"),
        (Change(0.0, -0.3, 0.3), "no difference shown"),
    ],
)
def test_a_direction_needs_an_interval_without_zero(change: Change, told: str) -> None:
    assert change.direction == told
