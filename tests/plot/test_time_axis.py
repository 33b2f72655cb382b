"""Time axes: the unit, the ticks, the label."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given, strategies as st
from matplotlib.figure import Figure

from optsched.plot.time_axis import UNITS, TimeLocator, in_unit, number, time_axis, unit_for

pytestmark = pytest.mark.release


@pytest.mark.parametrize(
    ("span", "unit"),
    [(0, "s"), (599, "s"), (600, "min"), (3600, "min"), (21600, "h"), (86400, "h"), (345600, "d"), (1e9, "d")],
)
def test_the_unit_fits_the_span(span: float, unit: str) -> None:
    assert unit_for(span).name == unit


def test_the_axis_stays_in_seconds_and_says_its_unit() -> None:
    ax = Figure().add_subplot()
    time_axis(ax, 0, 12 * 3600)
    assert ax.get_xlim() == (0, 12 * 3600)
    assert ax.get_xlabel() == "time (h)"
    assert list(ax.get_xticks()) == [7200 * k for k in range(7)]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "2", "4", "6", "8", "10", "12"]


@given(st.floats(0, 1e9), st.floats(1e-6, 1e9))
def test_ticks_are_few_inside_and_evenly_apart(start: float, span: float) -> None:
    end = start + span
    assume(end - start >= 1e-9 * end)
    ticks = TimeLocator(unit_for(end - start)).tick_values(start, end)
    assert len(ticks) <= 12
    step = ticks[1] - ticks[0] if len(ticks) > 1 else span
    assert all(start - 1e-6 * step <= tick <= end + 1e-6 * step for tick in ticks)
    assert all(b - a == pytest.approx(step, rel=1e-4) for a, b in pairwise(ticks))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_there_are_at_least_three_ticks_on_a_whole_axis(unit: object) -> None:
    for span in (0.1, 1, 17, 100, 599, 700, 5000, 21600, 80000, 400000, 1e7, 1e9):
        if unit_for(span) is unit:
            assert len(TimeLocator(unit_for(span)).tick_values(0, span)) >= 3


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.25, "0.25"), (12.3456, "12.35"), (1234.5, "1,234"), (1234567, "1,234,567")]
)
def test_numbers_for_people(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "0.5 s"), (90, "90 s"), (150, "2.5 min"), (10014, "2.78 h"), (864000, "10 d")]
)
def test_lengths_for_people(seconds: float, text: str) -> None:
    assert in_unit(seconds) == text
