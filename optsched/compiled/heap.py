"""Binary heaps of numbers in preallocated arrays, compiled by numba: no objects on a hot path."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optsched.compiled import KERNEL, njit

Ints = npt.NDArray[np.int64]


@njit(**KERNEL)
def push(heap: Ints, base: int, size: int, value: int) -> int:
    """Add a value to the heap in ``heap[base : base + size]``, and return the new size, in O(log size).

    Parameters
    ----------
    heap
        Array with the heap.
    base
        First position of the heap.
    size
        Number of values.
    value
        Value to add.
    """
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
    """Remove the smallest value from ``heap[base : base + size]``, and return it, in O(log size).

    Parameters
    ----------
    heap
        Array with the heap.
    base
        First position of the heap.
    size
        Number of values.
    """
    top: int = heap[base]
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
