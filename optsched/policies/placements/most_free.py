"""``most-free``: a gang takes the node with most free GPUs, then the next."""

from __future__ import annotations

from typing import Any

from optsched.policies.placements import PLACEMENTS
from optsched.simulation.policy import Placement, compiled


@compiled
def _most_free(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    left, level = 0, 0
    for p in range(free.size):
        if eligible[p]:
            left += free[p]
            level = max(level, free[p])
    if left < gpus:
        return 0
    left = gpus
    entries = 0
    while left > 0:  # the nodes with so many free GPUs, in order; then those with the next lower number
        below = 0
        for p in range(free.size):
            if eligible[p] and free[p] == level and left > 0:
                out_node[entries] = p
                out_count[entries] = min(left, level)
                left -= out_count[entries]
                entries += 1
            elif eligible[p] and free[p] < level:
                below = max(below, free[p])
        level = below
    return entries


@PLACEMENTS.register("most-free")
def most_free() -> Placement:
    """A gang fills the eligible node with most free GPUs (ties: the first), then the one with most of the others.

    Any gang fits whenever as many eligible GPUs are free. Complexity O(nodes) for every number of free GPUs among the
    nodes that it takes. The rule by which the simulator of the Pollux artifact gives GPUs to a new gang.
    """
    return Placement("most-free", _most_free, any_free=True)
