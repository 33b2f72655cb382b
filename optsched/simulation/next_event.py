"""Which of m clocks rings next: a tournament tree in one array, for loops in which every event sets its clock anew.

``tree`` f64[2 P], P the least power of two >= m: leaf i is ``tree[P + i]``, every other node the least of its two children,
so that ``tree[1]`` is the next time. Setting a clock walks log2 P levels and touches no index: two to three times as fast
as leaving and entering an indexed heap (`optsched.compiled.heap`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import NESTED, Floats


def leaves(clocks: int) -> int:
    """The least power of two >= ``clocks``, and at least 1."""
    return 1 << max(clocks - 1, 0).bit_length()


def new_tree(clocks: int) -> Floats:
    """A tree for that many clocks, none of which is set."""
    return np.full(2 * leaves(clocks), np.inf)


@njit(**NESTED)
def set_clock(tree: Any, clock: int, time: float) -> None:
    """Clock ``clock`` rings at ``time`` (inf: never)."""
    i = (tree.size >> 1) + clock
    tree[i] = time
    i >>= 1
    while i >= 1:
        least = min(tree[2 * i], tree[2 * i + 1])
        if tree[i] == least:
            return  # nothing changes further up
        tree[i] = least
        i >>= 1


@njit(**NESTED)
def ringing(tree: Any) -> int:
    """The clock that rings at ``tree[1]``; of several the one with the smallest number."""
    leaves = tree.size >> 1
    time, i = tree[1], 1
    while i < leaves:
        i *= 2
        if tree[i] != time:
            i += 1
    return int(i - leaves)
