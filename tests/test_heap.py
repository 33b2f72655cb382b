"""The array heaps against sorted lists and heapq."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.heap import before, insert, pop, push, remove


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


@given(
    st.integers(0, 2),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0, np.inf])), min_size=1, max_size=12),
    st.lists(st.integers(0, 11), max_size=80),
)
def test_an_indexed_heap_always_shows_the_smallest_and_knows_every_place(
    base: int, ranks: list[tuple[int, float]], steps: list[int]
) -> None:
    n = len(ranks)
    level = np.array([rank[0] for rank in ranks], dtype=np.int64)
    key = np.array([rank[1] for rank in ranks])
    items = np.full(base + n, -7, dtype=np.int64)
    slot = np.full(n, -1, dtype=np.int64)
    size, held = 0, set()
    for step in steps:
        item = step % n
        if item in held:
            held.remove(item)
            size = remove(items, base, size, item, slot, level, key)
        else:
            held.add(item)
            size = insert(items, base, size, item, slot, level, key)
        assert size == len(held)
        assert set(items[base : base + size].tolist()) == held
        assert [slot[i] >= 0 for i in range(n)] == [i in held for i in range(n)]
        assert all(items[base + slot[i]] == i for i in held)
        if held:
            assert items[base] == min(held, key=lambda i: (level[i], key[i], i))
    assert (items[:base] == -7).all()


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(0, 1, True), (1, 0, False), (2, 0, False), (0, 2, True), (3, 0, False), (0, 0, False)],
)
def test_before_compares_level_then_key_then_index(a: int, b: int, expected: bool) -> None:
    level = np.array([0, 0, 1, 0], dtype=np.int64)
    key = np.array([1.0, 1.0, 0.0, 2.0])
    assert before(a, b, level, key) is expected
