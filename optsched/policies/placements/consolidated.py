"""``consolidated``: a gang stays on as few nodes as its size allows."""

from __future__ import annotations

from typing import Any

from optsched.policies.placements import PLACEMENTS
from optsched.simulation.placement import Placement, compiled


@compiled
def _consolidated(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    largest = 0
    for p in range(free.size):
        if eligible[p]:
            largest = max(largest, size[p])
    left = gpus
    entries = 0
    if gpus > largest:  # idle whole nodes first
        for p in range(free.size):
            if eligible[p] and free[p] == size[p] and size[p] <= left:
                out_node[entries] = p
                out_count[entries] = size[p]
                left -= size[p]
                entries += 1
                if left == 0:
                    return entries
        if left > largest:
            return 0
    for p in range(free.size):  # then one node for the rest
        if eligible[p] and free[p] >= left:
            taken = False
            for k in range(entries):
                taken = taken or out_node[k] == p
            if not taken:
                out_node[entries] = p
                out_count[entries] = left
                return entries + 1
    return 0


@PLACEMENTS.register("consolidated")
def consolidated() -> Placement:
    """A gang of at most a node's size needs one node; a larger one takes idle whole nodes and the rest on one node.

    Nodes in index order (first fit). "A node's size" is that of the largest eligible node. Complexity O(nodes), plus
    O(nodes x whole nodes) for the rest of a large gang. This is the ``yarn`` scheme of the Tiresias simulator.
    """
    return Placement("consolidated", _consolidated)
