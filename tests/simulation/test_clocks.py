"""The next change of a running job: a tournament against looking through all clocks."""

from __future__ import annotations

import math
import random

import pytest

from optsched.simulation.next_event import clear_clock, new_clocks, set_clock


@pytest.mark.parametrize("executions", [1, 2, 3, 7, 8, 33])
def test_the_first_of_all_clocks_stands_in_front(executions: int) -> None:
    rng, clocks, now = random.Random(executions), new_clocks(executions), {}
    for _ in range(500):
        x = rng.randrange(executions)
        if rng.random() < 0.4:
            clear_clock(clocks, x)
            now.pop(x, None)
        else:  # few different times: of several at once the one of the least job
            now[x] = (float(rng.randrange(4)), rng.randrange(100))
            set_clock(clocks, x, *now[x])
        first = min(now.values(), default=(math.inf, 0))
        assert (clocks[1].key, clocks[1].number) == first
