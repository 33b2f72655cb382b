"""When the state of each running job changes next: a tournament in one array of records, compiled.

``clocks`` ENTRY[2 P], P the least power of two >= R: that of execution x is ``clocks[P + x]``, every other one the first of
its two children in order of (time, job), so that ``clocks[1]`` is the next change. Setting a clock walks at most log2 P
levels and touches neither jobs nor an index: half of what leaving and entering an indexed heap (`compiled.heap`) costs.
Where clocks need no order but that of their numbers, `optsched.simulation.next_event` is a tree of times alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import ENTRY, KERNEL, NESTED
from optsched.simulation.next_event import leaves


def new_clocks(executions: int) -> Any:
    """Clocks of so many executions, none of which is set."""
    clocks = np.zeros(2 * leaves(executions), dtype=ENTRY)
    clocks["key"] = np.inf
    return clocks


@njit(**NESTED)
def set_clock(clocks: Any, x: int, time: float, job: int) -> None:
    """The state of ``job`` changes next at ``time``, says its execution ``x``. O(log R)."""
    i = (clocks.size >> 1) + x
    clocks[i].key, clocks[i].number = time, job
    while i > 1:
        key, number = clocks[i ^ 1].key, clocks[i ^ 1].number
        sooner = (key < time) | ((key == time) & (number < job))
        time, job = min(key, time), number if sooner else job  # half of the time either: not a branch
        i >>= 1
        if clocks[i].key == time and clocks[i].number == job:
            return  # nothing changes further up
        clocks[i].key, clocks[i].number = time, job


@njit(**NESTED)
def clear_clock(clocks: Any, x: int) -> None:
    """The execution ``x`` is over."""
    set_clock(clocks, x, np.inf, np.int64(0))


@njit(**KERNEL)
def is_set(clocks: Any, x: int) -> bool:
    """Does the execution ``x`` run?"""
    return bool(clocks[(clocks.size >> 1) + x].key < np.inf)
