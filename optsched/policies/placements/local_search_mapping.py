"""Local search on a mapping: moves of a replica and swaps of two.

Every pass looks at the whole neighbourhood and takes the step with the smallest alpha, the first of equals in order of
(kind, stage, server); it ends when no step lowers alpha. A group is the replicas of one stage on one server.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import NESTED
from optsched.policies.placements.mapping import (
    COLUMN,
    FALLS,
    FIRST,
    GROUP_COLUMN,
    GROUP_STAGE,
    SPREAD,
    VACANT,
    Mapping,
    has_an_equal_before,
    mapping_pace,
    put,
    take,
)

# A step: (s, c, u, d): a replica of stage s goes from c to d and one of stage u from d to c; u < 0: none; s < 0: no step.
Step = tuple[int, int, int, int]


@njit(**NESTED)
def descend(x: Mapping) -> None:
    """Take the best step while alpha strictly falls. Complexity of a pass O((g C + g^2) x time of one alpha)."""
    alpha, none = mapping_pace(x), np.int64(-1)  # typed: literals would have the kernels compiled once more
    while alpha > x.fastest:
        groups = _list_groups(x)
        step, found = _best_move(x, groups, (none, none, none, none), alpha * FALLS)
        step, found = _best_swap(x, groups, step, found)
        if step[0] < 0:
            break
        _make(x, step)
        alpha = found


@njit(**NESTED)
def _list_groups(x: Mapping) -> int:
    w, groups = x.whole, 0
    for s in range(x.stages):
        for i in range(w[FIRST, s], w[FIRST, s] + w[SPREAD, s]):
            w[GROUP_STAGE, groups] = s
            w[GROUP_COLUMN, groups] = w[COLUMN, i]
            groups += 1
    return groups


@njit(**NESTED)
def _best_move(x: Mapping, groups: int, step: Step, best: float) -> tuple[Step, float]:
    w, one = x.whole, np.int64(1)  # typed, as above
    none: Any = -one
    for i in range(groups):
        s, c = w[GROUP_STAGE, i], w[GROUP_COLUMN, i]
        for d in range(x.candidates):
            if d == c or w[VACANT, d] < one or has_an_equal_before(x, d, one):
                continue
            take(x, s, c, one)
            put(x, s, d, one)
            alpha = mapping_pace(x)
            take(x, s, d, one)
            put(x, s, c, one)
            if alpha < best:
                best, step = alpha, (s, c, none, d)
    return step, best


@njit(**NESTED)
def _best_swap(x: Mapping, groups: int, step: Step, best: float) -> tuple[Step, float]:
    w = x.whole
    for i in range(groups):
        s, c = w[GROUP_STAGE, i], w[GROUP_COLUMN, i]
        for j in range(i + 1, groups):
            u, d = w[GROUP_STAGE, j], w[GROUP_COLUMN, j]
            if u == s or d == c:
                continue
            _make(x, (s, c, u, d))
            alpha = mapping_pace(x)
            _make(x, (s, d, u, c))
            if alpha < best:
                best, step = alpha, (s, c, u, d)
    return step, best


@njit(**NESTED)
def _make(x: Mapping, step: Step) -> None:
    (s, c, u, d), one = step, np.int64(1)
    take(x, s, c, one)
    if u >= 0:
        take(x, u, d, one)
        put(x, u, c, one)
    put(x, s, d, one)
