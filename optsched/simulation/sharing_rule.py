"""What a rule for sharing is to the engine: a compiled choice, where does this job start now, beside whom?

``rule(state, context, job) -> option``: -1 when the job waits, else which of its sub-batches it runs, with its GPUs in
``state.out[NUMBER]``: g_j different ones that suit it, each with at most one job on it that it may run beside, and room for
the sub-batch. It may read everything (`optsched.simulation.state`) and change only the scratch: ``state.out``; of
``context.colocation.neighbours`` ``nodes.order`` (left an order of all nodes), ``sharers.mark`` (left at -1) and
``candidates``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optsched.compiled import njit
from optsched.simulation.ordered import RULE_SIGNATURE

SIGNATURE = RULE_SIGNATURE


def sharing_rule(function: Callable[..., int]) -> Callable[..., int]:
    """``function`` compiled with the signature of a rule for sharing (and kept on disk).

    It runs interpreted or compiled, as the work asks for; what numba compiles is allowed, allocating too (our own rules,
    which allocate nothing, are compiled without numba's reference counts instead: `optsched.compiled.KERNEL`).
    """
    result: Callable[..., Any] = njit(SIGNATURE)(function)
    return result
