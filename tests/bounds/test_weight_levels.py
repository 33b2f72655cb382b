"""Layers of weight: the identity that they rest on, and what a certificate may claim."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.bounds.one_machine import MAX_LEVELS, levels_of, reduced, steps
from optsched.check.verify_case import Refused
from optsched.check.verify_certificate import stated_levels

weights = st.lists(st.sampled_from([0.0, 0.1, 1.0, 2.0, 5.0]) | st.floats(0.0, 1e12), max_size=12)


@given(weights)
def test_layers_add_up_to_the_reduced_weights(values: list[float]) -> None:
    weight = np.array(values)
    levels = levels_of(weight)
    assert len(levels) <= MAX_LEVELS
    assert levels == sorted(set(levels))
    lower = reduced(weight, levels)
    for w, low in zip(values, lower.tolist(), strict=True):
        assert low <= w
        assert sum((height for level, height in steps(levels) if w >= level), Fraction(0)) == Fraction(low)
    if len(set(values) - {0.0}) <= MAX_LEVELS:
        assert np.array_equal(lower, weight)


@pytest.mark.parametrize(
    ("levels", "rule"),
    [
        (["2/1", "1/1"], "dual-feasibility"),
        (["1/1", "1/1"], "dual-feasibility"),
        (["0/1"], "dual-feasibility"),
        (["-1/1", "1/1"], "dual-feasibility"),
        ([f"{k}/1" for k in range(1, 18)], "value"),
        ([1.0], "value"),
        ("1/1", "value"),
        (None, "value"),
    ],
)
def test_claims_that_are_no_levels(levels: object, rule: str) -> None:
    with pytest.raises(Refused) as error:
        stated_levels({"levels": levels})
    assert error.value.rule == rule
