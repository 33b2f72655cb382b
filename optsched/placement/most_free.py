"""``most-free``: a gang takes the node with most free GPUs, then the next."""

from __future__ import annotations

from typing import Any

from optsched.placement import PLACEMENTS
from optsched.simulation.placing import Placement, compiled


@compiled
def _most_free(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    left = 0
    for p in range(free.size):
        if eligible[p]:
            left += free[p]
    if left < gpus:
        return 0
    left = gpus
    entries = 0
    while left > 0:
        best = -1
        for p in range(free.size):
            if eligible[p] and free[p] > 0 and (best < 0 or free[p] > free[best]):
                taken = False
                for k in range(entries):
                    taken = taken or out_node[k] == p
                if not taken:
                    best = p
        out_node[entries] = best
        out_count[entries] = min(left, free[best])
        left -= out_count[entries]
        entries += 1
    return entries


@PLACEMENTS.register("most-free")
def most_free() -> Placement:
    """A gang fills the eligible node with most free GPUs (ties: the first), then the one with most of the others.

    Any gang fits whenever as many eligible GPUs are free. Complexity O(nodes x nodes that it takes). The rule by which
    the simulator of the Pollux artifact gives GPUs to a new gang.
    """
    return Placement("most-free", _most_free, any_free=True)
