"""``first-fit``: the first free GPUs in index order."""

from __future__ import annotations

from typing import Any

from optsched.policies.placements import PLACEMENTS
from optsched.policies.placements.count import _count
from optsched.simulation.gpu_placing import SharedRule, compiled_shared
from optsched.simulation.placing import Placement


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
    GPUs: the first g with room for its memory. Complexity O(nodes), O(GPUs) where they share. Reference: the baseline FF of
    Wang et al., arXiv 2002.10105.
    """
    return Placement("first-fit", _count, any_free=True, shared=SharedRule(first_open))
