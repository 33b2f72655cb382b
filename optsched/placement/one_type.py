"""``one-type``: all GPUs of a gang are of one type."""

from __future__ import annotations

from typing import Any

from optsched.placement import PLACEMENTS
from optsched.simulation.placing import Placement, compiled


@compiled
def _one_type(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    best, most = -1, gpus - 1
    for first in range(free.size):  # every type once, at its first node
        kind, total = tables.pool_type[first], 0
        for p in range(free.size):
            if tables.pool_type[p] == kind and eligible[p]:
                if p < first:
                    total = -1
                    break
                total += free[p]
        if total > most:
            best, most = kind, total
    if best < 0:
        return 0
    fitting = -1  # the node with the fewest free GPUs that holds the gang
    for p in range(free.size):
        of_type = tables.pool_type[p] == best and eligible[p]
        if of_type and free[p] >= gpus and (fitting < 0 or free[p] < free[fitting]):
            fitting = p
    if fitting >= 0:
        out_node[0], out_count[0] = fitting, gpus
        return 1
    left, entries = gpus, 0
    for p in range(free.size):
        if left > 0 and tables.pool_type[p] == best and eligible[p] and free[p] > 0:
            out_node[entries], out_count[entries] = p, min(left, free[p])
            left -= out_count[entries]
            entries += 1
    return entries


@PLACEMENTS.register("one-type")
def one_type() -> Placement:
    """A gang runs on GPUs of one type: that of which most are free (ties: the first in the cluster), whatever its speed.

    On one node where one holds it (best fit), else on nodes in index order. A gang larger than every type never starts.
    Complexity O(nodes x types). What a manager of containers does that knows of types but not of speeds.
    """
    return Placement("one-type", _one_type)
