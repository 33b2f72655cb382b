"""The array heaps against sorted lists and heapq."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.compiled.heap import pop, push
from optsched.simulation.next_event import ENTRY, before, insert, lower, remove


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
    heap = np.zeros(base + n, dtype=ENTRY)
    heap["number"] = -7
    slot = np.full(n, -1, dtype=np.int64)
    size, held = 0, set()
    for step in steps:
        item = step % n
        if item in held:
            held.remove(item)
            size = remove(heap, base, size, item, slot)
        else:
            held.add(item)
            size = insert(heap, base, size, *ranks[item], item, slot)
        numbers = heap["number"]
        assert size == len(held)
        assert set(numbers[base : base + size].tolist()) == held
        assert [slot[i] >= 0 for i in range(n)] == [i in held for i in range(n)]
        assert all(numbers[base + slot[i]] == i for i in held)
        if held:
            assert numbers[base] == min(held, key=lambda i: (*ranks[i], i))
    assert (heap["number"][:base] == -7).all()


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.lists(st.integers(0, 4), max_size=30))
def test_the_reverse_order_stands_first_and_sinks_when_it_is_lowered(keys: list[int], falls: list[int]) -> None:
    heap, slot = np.zeros(len(keys), dtype=ENTRY), np.full(len(keys), -1, dtype=np.int64)
    size, now = 0, list(map(float, keys))
    for i, key in enumerate(now):
        size = insert(heap, 0, size, 0, -key, ~i, slot)
    for fall in falls:  # of the greatest
        first = ~int(heap[0].number)
        assert first == max(range(size), key=lambda i: (now[i], i))
        now[first] -= fall
        lower(heap, 0, size, 0, -now[first], slot)
        assert [~int(heap[slot[i]].number) for i in range(size)] == list(range(size))
    for _ in keys:
        first = ~int(heap[0].number)
        size = remove(heap, 0, size, ~first, slot)
        assert all((now[i], i) < (now[first], first) for i in range(len(keys)) if slot[i] >= 0)


@pytest.mark.parametrize(
    ("one", "two", "expected"), [(0, 1, True), (1, 0, False), (2, 0, False), (0, 2, True), (3, 0, False), (0, 0, False)]
)
def test_before_compares_level_then_key_then_index(one: int, two: int, expected: bool) -> None:
    level, key = [0, 0, 1, 0], [1.0, 1.0, 0.0, 2.0]
    entry = np.array([(key[two], level[two], two)], dtype=ENTRY)[0]
    assert before(level[one], key[one], one, entry) is expected
