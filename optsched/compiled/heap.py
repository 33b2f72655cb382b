"""Binary heaps in preallocated arrays, compiled by numba: no objects on a hot path.

Two kinds. `push` / `pop`: a heap of numbers by value. `insert` / `remove`: an indexed heap of `ENTRY` records in order of
(level, key, item), where ``slot[item]`` is an item's place, so that any item can leave or move in O(log n). For the reverse
order enter (-level, -key, ~item): its place is ``slot[item]``, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit, record

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# How loops over arrays of the caller are compiled: without numba's reference counts. Nothing is
# allocated in them and the caller's arrays outlive the call, while counting every look at an array, atomically, took
# seven eighths of the engine's time.
KERNEL: dict[str, Any] = {"_nrt": False}
# Of those that only compiled ones call: without an entry for Python, a quarter of the time of compiling.
NESTED: dict[str, Any] = {**KERNEL, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Inlined, since a state is many words to hand on; the latter where only compiled code calls it.
INLINED: dict[str, Any] = {**KERNEL, "forceinline": True}
INNER: dict[str, Any] = {**NESTED, "forceinline": True}

ENTRY = record(key="real", level="int", number="int")


@njit(**KERNEL)
def push(heap: Ints, base: int, size: int, value: int) -> int:
    """Add ``value`` to the heap in ``heap[base : base + size]``; the new size. O(log size)."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if heap[base + parent] <= value:
            break
        heap[base + i] = heap[base + parent]
        i = parent
    heap[base + i] = value
    return size + 1


@njit(**KERNEL)
def pop(heap: Ints, base: int, size: int) -> int:
    """Take the smallest value out of ``heap[base : base + size]`` and return it. O(log size)."""
    top = heap[base]
    value = heap[base + size - 1]
    n = size - 1
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and heap[base + child + 1] < heap[base + child]:
            child += 1
        if heap[base + child] >= value:
            break
        heap[base + i] = heap[base + child]
        i = child
    if n > 0:
        heap[base + i] = value
    return top


@njit(**NESTED)
def before(level: int, key: float, item: int, other: Any) -> bool:
    """Is (level, key, item) served before the entry ``other`` of an indexed heap?"""
    if level != other.level:
        return bool(level < other.level)
    if key != other.key:
        return bool(key < other.key)
    return bool(item < other.number)


@njit(**INNER)
def _put(heap: Any, i: int, level: int, key: float, item: int) -> None:
    entry = heap[i]
    entry.level = level
    entry.key = key
    entry.number = item


@njit(**INNER)
def _rise(heap: Any, base: int, i: int, level: int, key: float, item: int, slot: Ints) -> int:
    # Where an entry that is at most at place i belongs; those that it passes move down.
    while i > 0:
        parent = (i - 1) >> 1
        over = heap[base + parent]
        if not before(level, key, item, over):
            break
        _put(heap, base + i, over.level, over.key, over.number)
        slot[max(over.number, ~over.number)] = i
        i = parent
    return i


@njit(**INNER)
def _sink(heap: Any, base: int, size: int, i: int, level: int, key: float, item: int, slot: Ints) -> int:
    # Where an entry that is at least at place i belongs; those that pass it move up.
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        under = heap[base + child]
        if child + 1 < size and before(
            heap[base + child + 1].level, heap[base + child + 1].key, heap[base + child + 1].number, under
        ):
            child += 1
            under = heap[base + child]
        if before(level, key, item, under):
            break
        _put(heap, base + i, under.level, under.key, under.number)
        slot[max(under.number, ~under.number)] = i
        i = child
    return i


@njit(**KERNEL)
def insert(heap: Any, base: int, size: int, level: int, key: float, item: int, slot: Ints) -> int:
    """Add (level, key, item) to the indexed heap in ``heap[base : base + size]``; the new size. O(log size)."""
    i = _rise(heap, base, size, level, key, item, slot)
    _put(heap, base + i, level, key, item)
    slot[max(item, ~item)] = i
    return size + 1


@njit(**KERNEL)
def remove(heap: Any, base: int, size: int, item: int, slot: Ints) -> int:
    """Take ``item`` out of the indexed heap that holds it; the new size. O(log size)."""
    i = slot[max(item, ~item)]
    slot[max(item, ~item)] = -1
    last = heap[base + size - 1]
    level, key, moved = last.level, last.key, last.number
    if moved != item:
        i = _rise(heap, base, i, level, key, moved, slot)
        i = _sink(heap, base, size - 1, i, level, key, moved, slot)
        _put(heap, base + i, level, key, moved)
        slot[max(moved, ~moved)] = i
    return size - 1


@njit(**KERNEL)
def lower(heap: Any, base: int, size: int, level: int, key: float, slot: Ints) -> None:
    """Give the first entry of an indexed heap another (level, key), with which it is served later. O(log size)."""
    item = heap[base].number
    i = _sink(heap, base, size, 0, level, key, item, slot)
    _put(heap, base + i, level, key, item)
    slot[max(item, ~item)] = i
