"""Consolidation: the weighted average, the identity for one copy, the same vector for equal copies."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.policies.parameter_averaging import consolidated

NUMBERS = st.floats(-1e6, 1e6)


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.floats(1e-3, 1e9))
def test_one_copy_is_the_identity(theta: list[float], steps: float) -> None:
    assert [array.tolist() for array in consolidated([[np.array(theta)]], [steps])] == [theta]


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.lists(st.floats(0.1, 1e6), min_size=2, max_size=6))
def test_equal_copies_give_the_same_vector_bit_for_bit(theta: list[float], steps: list[float]) -> None:
    assert consolidated([[np.array(theta)]] * len(steps), steps)[0].tolist() == theta


@given(
    st.lists(st.tuples(NUMBERS, st.integers(0, 1000)), min_size=1, max_size=6).filter(lambda c: any(s for _, s in c))
)
def test_the_average_is_weighted_by_steps(copies: list[tuple[float, int]]) -> None:
    exact = sum((Fraction(x) * s for x, s in copies), Fraction(0)) / sum(s for _, s in copies)
    (found,) = consolidated([[np.array([x])] for x, _ in copies], [s for _, s in copies])
    assert found[0] == pytest.approx(float(exact), rel=1e-12, abs=1e-9)  # sums of numbers up to 1e6 that may cancel


def test_every_array_of_the_model_is_averaged_and_nothing_is_changed_in_place() -> None:
    one, two = [np.zeros((2, 2)), np.ones(3)], [np.full((2, 2), 4.0), np.full(3, 5.0)]
    found = consolidated([one, two], [3, 1])
    assert found[0].tolist() == [[1, 1], [1, 1]]
    assert found[1].tolist() == [2, 2, 2]
    assert one[1].tolist() == [1, 1, 1]


def test_a_copy_without_steps_does_not_count() -> None:
    assert consolidated([[np.array([np.nan])], [np.array([2.0])]], [0, 5])[0].tolist() == [2]


@pytest.mark.parametrize("steps", [[], [1], [0, 0], [-1, 2], [1, np.nan]])
def test_steps_must_fit(steps: list[float]) -> None:
    with pytest.raises(ValueError, match="steps"):
        consolidated([[np.zeros(2)], [np.zeros(2)]], steps)


def test_shapes_must_fit() -> None:
    with pytest.raises(ValueError, match="shapes"):
        consolidated([[np.zeros(2)], [np.zeros(3)]], [1, 1])
