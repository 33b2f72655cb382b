"""What a rule for sharing is to the engine: a compiled choice, where does this job start now, beside whom?

``rule(state, job) -> option``: -1 when the job waits, else which of its sub-batches it runs, with its GPUs in
``state.out_gpu``: g_j different ones that suit it, each with at most one job on it that it may run beside, and room for the
sub-batch. It may read everything in `optsched.simulation.sharing_state.SharingState` and change only the scratch
(``out_gpu``, ``order`` (left an order of all nodes), ``use``, ``listed``, ``mark`` (left at -1), ``found``, ``value``,
``other``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from optsched.compiled import njit, types
from optsched.heap import KERNEL
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.simulation.sharing_policy import SharingOrder
from optsched.simulation.sharing_state import SharingState, new_sharing_state
from optsched.speeds.gpu_sharing import sharing_rates


def _state_type() -> Any:
    instance = Instance([Job("a", duration=1)], Cluster.machines(1), interference=Interference())
    return numba.typeof(new_sharing_state(instance, sharing_rates(instance), SharingOrder(np.zeros(1))))


STATE_TYPE = _state_type()
SIGNATURE = types.int64(STATE_TYPE, types.int64)
RULE_TYPE = types.FunctionType(SIGNATURE)


def sharing_rule(function: Callable[[SharingState, int], int]) -> Callable[[SharingState, int], int]:
    """``function`` compiled with the signature of a rule for sharing (and kept on disk)."""
    result: Callable[[SharingState, int], int] = njit(SIGNATURE, **KERNEL)(function)
    return result


@sharing_rule
def nobody(s: SharingState, j: int) -> int:
    """Every job waits: for policies in plain Python, which are asked instead."""
    return -1
