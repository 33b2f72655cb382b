"""Binary heaps in preallocated arrays, compiled by numba: no objects on a hot path.

Two kinds. `push` / `pop`: a heap of integers by value. `insert` / `remove`: an indexed heap of items ordered by
(level, key, item), where ``slot[item]`` is an item's place, so that any item can leave or move in O(log n).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# How loops over arrays of the caller are compiled: kept on disk, and without numba's reference counts. Nothing is
# allocated in them and the caller's arrays outlive the call, while counting every look at an array, atomically, took
# seven eighths of the engine's time.
KERNEL: dict[str, Any] = {"cache": True, "_nrt": False}


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


@njit(inline="always", **KERNEL)
def before(a: int, b: int, level: Ints, key: Floats) -> bool:
    """Is item ``a`` served before item ``b``: smaller (level, key, item)?"""
    if level[a] != level[b]:
        return bool(level[a] < level[b])
    if key[a] != key[b]:
        return bool(key[a] < key[b])
    return a < b


@njit(**KERNEL)
def _sift_up(items: Ints, base: int, i: int, slot: Ints, level: Ints, key: Floats) -> int:
    item = items[base + i]
    while i > 0:
        parent = (i - 1) >> 1
        other = items[base + parent]
        if not before(item, other, level, key):
            break
        items[base + i] = other
        slot[other] = i
        i = parent
    items[base + i] = item
    slot[item] = i
    return i


@njit(**KERNEL)
def _sift_down(items: Ints, base: int, size: int, i: int, slot: Ints, level: Ints, key: Floats) -> None:
    item = items[base + i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and before(items[base + child + 1], items[base + child], level, key):
            child += 1
        other = items[base + child]
        if not before(other, item, level, key):
            break
        items[base + i] = other
        slot[other] = i
        i = child
    items[base + i] = item
    slot[item] = i


@njit(**KERNEL)
def insert(items: Ints, base: int, size: int, item: int, slot: Ints, level: Ints, key: Floats) -> int:
    """Add ``item`` to the indexed heap in ``items[base : base + size]``; the new size. O(log size)."""
    items[base + size] = item
    _sift_up(items, base, size, slot, level, key)
    return size + 1


@njit(**KERNEL)
def remove(items: Ints, base: int, size: int, item: int, slot: Ints, level: Ints, key: Floats) -> int:
    """Take ``item`` out of the indexed heap that holds it; the new size. O(log size)."""
    i = slot[item]
    last = items[base + size - 1]
    slot[item] = -1
    if last != item:
        items[base + i] = last
        slot[last] = i
        _sift_down(items, base, size - 1, _sift_up(items, base, i, slot, level, key), slot, level, key)
    return size - 1
