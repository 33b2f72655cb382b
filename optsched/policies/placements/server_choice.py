"""Which servers a gang takes, whatever its replicas are: best fit for the rest, else the most free GPUs."""

from __future__ import annotations

from typing import Any

from optsched.compiled import njit
from optsched.compiled.heap import NESTED


@njit(**NESTED)
def choose_servers(gpus: int, free: Any, eligible: Any, out_node: Any, out_count: Any) -> int:
    """Write the servers in the order in which they are taken and the GPUs of each; their number, 0: too few are free.

    While GPUs are missing: the server with the fewest free GPUs that holds the rest, else the one with the most. Ties:
    the lowest number. Complexity O(nodes x servers taken).
    """
    left, entries = gpus, 0
    # The servers taken so far are the first in order of (most free, lowest number); this is the last one of them.
    last_free, last = -1, -1
    while left > 0:
        fitting, fullest = -1, -1
        for m in range(free.size):
            if not eligible[m] or free[m] <= 0:
                continue
            if entries > 0 and (free[m] > last_free or (free[m] == last_free and m <= last)):
                continue
            if free[m] >= left and (fitting < 0 or free[m] < free[fitting]):
                fitting = m
            if fullest < 0 or free[m] > free[fullest]:
                fullest = m
        m = fitting if fitting >= 0 else fullest
        if m < 0:
            return 0
        out_node[entries] = m
        out_count[entries] = min(left, free[m])
        left -= out_count[entries]
        last_free, last = free[m], m
        entries += 1
    return entries
