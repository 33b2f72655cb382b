"""The array heap against heapq."""

from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given, strategies as st

from optsched.compiled.heap import pop, push


@given(st.integers(0, 3), st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=60))
def test_push_and_pop_are_heapq(base: int, steps: list[int | None]) -> None:
    # None: pop. The heap stands somewhere inside a longer array whose rest must stay untouched.
    array = np.full(base + len(steps) + 2, 99, dtype=np.int64)
    size, mirror = 0, []
    for value in steps:
        if value is not None:
            heapq.heappush(mirror, value)
            size = push(array, base, size, value)
        elif mirror:
            assert pop(array, base, size) == heapq.heappop(mirror)
            size -= 1
        assert size == len(mirror)
        assert sorted(array[base : base + size].tolist()) == sorted(mirror)
    assert (array[:base] == 99).all()
    assert (array[base + len(steps) :] == 99).all()
