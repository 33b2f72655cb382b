"""``count`` and ``first-fit``: any free GPUs will do; only their number counts, or they are the first in index order."""

from __future__ import annotations

from typing import Any

from optsched.policies.placements import PLACEMENTS
from optsched.simulation.policy import Placement, SharedRule, compiled, compiled_shared


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


@compiled_shared
def first_open(
    gpus: int, open: Any, load: Any, gpu_node: Any, node_first: Any, random: Any, numbers: Any, out_gpu: Any
) -> int:
    """The first open GPUs in index order."""
    found = 0
    for g in range(open.size):
        if open[g]:
            out_gpu[found] = g
            found += 1
            if found == gpus:
                return gpus
    return 0


@PLACEMENTS.register("first-fit")
def first_fit() -> Placement:
    """The first g eligible free GPUs in order of (node, index), crossing nodes where needed.

    A gang starts whenever enough GPUs are free, as with ``count``, but its nodes are decided at the start. Where jobs share
    GPUs: the first g with enough free memory. Complexity O(nodes), O(GPUs) where they share. Reference: the baseline FF of
    Wang et al., arXiv 2002.10105.
    """
    return Placement("first-fit", _count, any_free=True, shared=SharedRule(first_open))
