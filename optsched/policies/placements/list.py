"""``list``: list scheduling, the least loaded GPUs anywhere (LWF with kappa = infinity)."""

from __future__ import annotations

import math

from optsched.policies.placements import PLACEMENTS
from optsched.policies.placements.count import _count
from optsched.policies.placements.lwf import least_workload_first
from optsched.simulation.gpu_placing import SharedRule
from optsched.simulation.placing import Placement


@PLACEMENTS.register("list")
def least_loaded() -> Placement:
    """The g least loaded GPUs anywhere, whatever their nodes: list scheduling, LWF with kappa = infinity.

    Loads as in ``lwf``. Where GPUs are exclusive a free one has no load, and this is ``first-fit``. Guarantee: none known
    for gangs; for one-GPU jobs without messages this is Graham's rule. Complexity O(g G) a placement. Reference: the
    baseline LS of Wang et al., arXiv 2002.10105 (2020).
    """
    return Placement("list", _count, any_free=True, shared=SharedRule(least_workload_first, (math.inf,)))
