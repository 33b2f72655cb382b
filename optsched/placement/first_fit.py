"""``first-fit``: the first free GPUs in index order."""

from __future__ import annotations

from optsched.placement import PLACEMENTS
from optsched.placement.count import _count
from optsched.simulation.placing import Placement


@PLACEMENTS.register("first-fit")
def first_fit() -> Placement:
    """The first g eligible free GPUs in order of (node, index), crossing nodes where needed.

    A gang starts whenever enough GPUs are free, as with ``count``, but its nodes are decided at the start. Complexity
    O(nodes). Reference: the baseline FF of the AdaDUAL study.
    """
    return Placement("first-fit", _count, any_free=True)
