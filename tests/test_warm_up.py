"""`optsched warm-up`: what is compiled when it is over."""

from __future__ import annotations

import pytest

from optsched.compiled import FUNCTIONS
from optsched.warm_up import warm_up


@pytest.mark.study
def test_hardly_anything_is_left_to_compile() -> None:
    told: list[tuple[str, int, int]] = []
    steps = warm_up(lambda *step: told.append(step))
    assert [done for _, done, _ in told] == list(range(steps))
    alone = [f for f in FUNCTIONS if f.targetoptions.get("inline") != "always" and not f.overloads]
    assert len(alone) <= 8, [f"{f.py_func.__module__}.{f.py_func.__name__}" for f in alone]
