"""Where the clock of an instance begins: without rounding, and the same moment in every binary unit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, strategies as st

from optsched.problem.epoch import epoch_of

NEVER = np.array([np.inf])


def test_it_is_the_first_arrival_where_nothing_is_rounded() -> None:
    assert epoch_of(np.array([1.7e9 + 5, 1.7e9]), NEVER) == 1.7e9
    assert epoch_of(np.array([0.25, 7.5]), NEVER) == 0.25
    assert epoch_of(np.zeros(0), np.zeros(0)) == 0


def test_times_that_are_as_far_apart_as_they_are_late_keep_their_clock() -> None:
    assert epoch_of(np.array([0.1, 0.9]), NEVER) == 0
    assert epoch_of(np.array([0.3, 1e9]), NEVER) == 0


@given(
    late=st.sampled_from([0.0, 1.0, 1e3, 1.7e9]),
    times=st.lists(st.floats(0, 1e4), min_size=1, max_size=6),
    early=st.floats(-3, 50),
    power=st.integers(-20, 20),
)
def test_no_time_is_rounded_and_a_binary_unit_moves_it_along(
    late: float, times: list[float], early: float, power: int
) -> None:
    arrival = late + np.array(times)
    due = np.array([np.inf, late + early])
    epoch = epoch_of(arrival, due)
    for t in (*arrival.tolist(), late + early):
        assert Fraction(t - epoch) == Fraction(t) - Fraction(epoch)
    assert epoch <= arrival.min()
    assert epoch_of(arrival * 2.0**power, due * 2.0**power) == epoch * 2.0**power
