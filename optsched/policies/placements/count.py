"""``count``: any free GPUs will do; only their number is counted."""

from __future__ import annotations

from typing import Any

from optsched.policies.placements import PLACEMENTS
from optsched.simulation.placing import Placement, compiled


@compiled
def _count(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    left = gpus
    entries = 0
    for p in range(free.size):
        if eligible[p] and free[p] > 0:
            out_node[entries] = p
            out_count[entries] = min(left, free[p])
            left -= out_count[entries]
            entries += 1
            if left == 0:
                return entries
    return 0


@PLACEMENTS.register("count")
def count() -> Placement:
    """Any free GPUs whose type and memory suit the job; nodes are not looked at.

    The assumption of the theorems on gang scheduling: a gang starts whenever enough GPUs are free. GPUs get their names
    after the run, lowest number first. Complexity O(1) in a homogeneous cluster.
    """
    return Placement("count", _count, pooled=True, any_free=True)
