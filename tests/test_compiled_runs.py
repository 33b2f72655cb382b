"""Compiled and interpreted runs of every policy are the same, bit for bit."""

from __future__ import annotations

import pytest
from compiled_runs import compare, lines


def test_every_line_is_a_run_of_its_own() -> None:
    found = list(lines(12, 0))
    assert len(set(found)) == 12
    assert found == list(lines(12, 0))


@pytest.mark.study
def test_two_thousand_runs_are_the_same_in_both_ways() -> None:
    assert compare(2000, 0) == []
