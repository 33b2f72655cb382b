"""The grid of time: the coarsest unit, exactly, or a refusal."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError
from optsched.models.time_grid import on_common_unit, time_grid
from optsched.problem.instance import Cluster, Instance, Job


def one_machine(*times: tuple[float, float]) -> Instance:
    """Jobs (arrival, duration) on one machine."""
    return Instance([Job(f"j{j}", r, 1, p) for j, (r, p) in enumerate(times)], Cluster.machines(1))


def test_minutes_in_seconds_are_minutes() -> None:
    grid = time_grid(one_machine((3600, 120), (3660, 300)))
    assert grid.unit == 60
    assert (grid.origin, grid.release.tolist(), grid.duration.tolist()) == (3600.0, [0, 1], [2, 5])
    assert grid.seconds(np.array([0, 7])).tolist() == [3600.0, 4020.0]


def test_binary_fractions_are_exact_and_decimal_ones_are_refused() -> None:
    assert time_grid(one_machine((0.5, 1.75), (1, 0.25))).unit == Fraction(1, 4)
    with pytest.raises(InputError, match="unit") as error:
        time_grid(one_machine((0, 0.1), (0, 0.3)))
    assert "\n" not in str(error.value)
    # a single duration is a multiple of itself, whatever it is
    assert time_grid(one_machine((7, 0.1))).duration.tolist() == [1]


def test_times_an_ulp_early_are_on_their_boundary() -> None:
    grid = time_grid(one_machine((1e9, 0.25), (1e9 + 0.75, 0.5)))
    boundary = grid.seconds(np.array([3]))
    assert grid.slots(boundary).tolist() == [3]
    assert grid.slots(np.nextafter(boundary, 0)).tolist() == [3]
    assert grid.slots(boundary - 0.01).tolist() == [2]


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)), min_size=1, max_size=6), st.integers(-3, 3))
def test_the_unit_divides_all_times_and_nothing_larger_does(times: list[tuple[int, int]], power: int) -> None:
    scale = Fraction(2) ** power
    grid = time_grid(one_machine(*((float(r * scale), float(p * scale)) for r, p in times)))
    first = min(r for r, _ in times)
    assert [grid.unit * k for k in grid.release.tolist()] == [(r - first) * scale for r, _ in times]
    assert [grid.unit * k for k in grid.duration.tolist()] == [p * scale for _, p in times]
    assert np.gcd.reduce(np.concatenate([grid.release, grid.duration])) == 1


def test_thirds() -> None:
    unit, release, duration = on_common_unit([Fraction(0), Fraction(1)], [Fraction(2, 3), Fraction(1, 2)])
    assert (unit, release.tolist(), duration.tolist()) == (Fraction(1, 6), [0, 6], [4, 3])
