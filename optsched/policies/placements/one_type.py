"""``one-type``: all GPUs of a gang are of one type."""

from __future__ import annotations

from typing import Any

from optsched.policies.placements import PLACEMENTS, SetPlacement
from optsched.simulation.placement import Placement, compiled

MIXED = 1  # position, after the unused state of the random numbers: 1 if a gang may use several types


@compiled
def _one_type(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    best, most, widest = -1, gpus - 1, 0
    for first in range(free.size):  # every type once, at its first node
        kind, total, whole = tables.places[first].type, 0, 0
        for p in range(free.size):
            if tables.places[p].type == kind and eligible[p]:
                if p < first:
                    total, whole = -1, 0
                    break
                total += free[p]
                whole += size[p]
        widest = max(widest, whole)
        if total > most:
            best, most = kind, total
    several = gpus > widest and random[MIXED] > 0  # no type can hold it: it may use all its types together
    if best < 0 and not several:
        return 0
    fitting = -1  # the node with the fewest free GPUs that holds the gang
    for p in range(free.size):
        of_type = eligible[p] and (several or tables.places[p].type == best)
        if of_type and free[p] >= gpus and (fitting < 0 or free[p] < free[fitting]):
            fitting = p
    if fitting >= 0:
        out_node[0], out_count[0] = fitting, gpus
        return 1
    left, entries = gpus, 0
    for p in range(free.size):
        if left > 0 and eligible[p] and free[p] > 0 and (several or tables.places[p].type == best):
            out_node[entries], out_count[entries] = p, min(left, free[p])
            left -= out_count[entries]
            entries += 1
    return entries if left == 0 else 0


@PLACEMENTS.register("one-type")
def one_type(mixed: bool = False) -> Placement:
    """A gang runs on GPUs of one type: the one with most free GPUs, whatever its speed.

    Ties go to the first type in the cluster. A gang runs on one node if one holds it (best fit), otherwise on nodes in
    index order. A gang larger than every type never starts, and blocks no job; with ``mixed`` it uses several types.
    Complexity O(nodes x types). A manager of containers that knows types but not speeds acts in this way.

    Parameters
    ----------
    mixed
        Let a gang that no type can hold use several types.
    """
    return SetPlacement("one-type", _one_type, settings=(mixed,))
