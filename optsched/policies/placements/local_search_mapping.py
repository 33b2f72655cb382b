"""Local search on a mapping: single moves and swaps, and, when asked, moves and swaps of whole groups and stages.

A group is the replicas of one stage on one server. Every pass looks at the whole neighbourhood and takes the step with
the smallest alpha, the first of equals in order of (kind, stage, server); it ends when no step lowers alpha.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import NESTED
from optsched.policies.placements.mapping import (
    ASIDE_COLUMN,
    ASIDE_COUNT,
    COLUMN,
    COUNT,
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

# A step: (s, c, n, u, d, k): n replicas of stage s go from c to d and k of stage u from d to c; c = -1: all of stage s,
# wherever they are, go to d; n = 0: no step.
Step = tuple[int, int, int, int, int, int]


@njit(**NESTED)
def descend(x: Mapping, levels: int) -> None:
    """Take the best step while alpha strictly falls.

    ``levels`` 1: steps with single replicas; 2: also with groups and stages. Complexity of a pass O((g C + g^2) x time of
    one alpha).
    """
    alpha, none = mapping_pace(x), np.int64(0)  # typed: literals would have the kernels compiled once more
    while alpha > x.fastest:
        groups = _list_groups(x)
        step = (none, none, none, none, none, none)
        found = alpha * FALLS
        for level in range(levels):
            step, found = _best_move(x, groups, level, step, found)
            step, found = _best_swap(x, groups, level, step, found)
        if levels > 1:
            step, found = _best_gathering(x, step, found)
        if step[2] == 0:
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
def _size(x: Mapping, s: int, c: int, level: int) -> int:
    # Replicas that a step of this level takes from a group.
    return x.whole[COUNT + s, c] if level > 0 else 1


@njit(**NESTED)
def _best_move(x: Mapping, groups: int, level: int, step: Step, best: float) -> tuple[Step, float]:
    w = x.whole
    for i in range(groups):
        s, c = w[GROUP_STAGE, i], w[GROUP_COLUMN, i]
        n = _size(x, s, c, level)
        if level > 0 and n == 1:
            continue
        for d in range(x.candidates):
            if d == c or w[VACANT, d] < n or has_an_equal_before(x, d, n):
                continue
            take(x, s, c, n)
            put(x, s, d, n)
            alpha = mapping_pace(x)
            take(x, s, d, n)
            put(x, s, c, n)
            if alpha < best:
                best, step = alpha, (s, c, n, s, d, n - n)
    return step, best


@njit(**NESTED)
def _best_swap(x: Mapping, groups: int, level: int, step: Step, best: float) -> tuple[Step, float]:
    w = x.whole
    for i in range(groups):
        s, c = w[GROUP_STAGE, i], w[GROUP_COLUMN, i]
        n = _size(x, s, c, level)
        for j in range(i + 1, groups):
            u, d = w[GROUP_STAGE, j], w[GROUP_COLUMN, j]
            k = _size(x, u, d, level)
            if u == s or d == c or w[VACANT, c] + n < k or w[VACANT, d] + k < n or (level > 0 and n + k == 2):
                continue
            _exchange(x, s, c, n, u, d, k)
            alpha = mapping_pace(x)
            _exchange(x, s, d, n, u, c, k)
            if alpha < best:
                best, step = alpha, (s, c, n, u, d, k)
    return step, best


@njit(**NESTED)
def _exchange(x: Mapping, s: int, c: int, n: int, u: int, d: int, k: int) -> None:
    # n replicas of s go from c to d, k of u from d to c
    take(x, s, c, n)
    take(x, u, d, k)
    put(x, s, d, n)
    put(x, u, c, k)


@njit(**NESTED)
def _best_gathering(x: Mapping, step: Step, best: float) -> tuple[Step, float]:
    w = x.whole
    for s in range(x.stages):
        if w[SPREAD, s] == 1:
            continue
        n = w[FIRST, s + 1] - w[FIRST, s]
        for d in range(x.candidates):
            if w[VACANT, d] + w[COUNT + s, d] < n or has_an_equal_before(x, d, n):
                continue
            spread = _lift(x, s)
            put(x, s, d, n)
            alpha = mapping_pace(x)
            take(x, s, d, n)
            for i in range(spread):
                put(x, s, w[ASIDE_COLUMN, i], w[ASIDE_COUNT, i])
            if alpha < best:
                best, step = alpha, (s, -1, n, s, d, n - n)
    return step, best


@njit(**NESTED)
def _lift(x: Mapping, s: int) -> int:
    # Take a whole stage off its servers and remember where it was; their number.
    w, spread = x.whole, x.whole[SPREAD, s]
    for i in range(spread):
        c = w[COLUMN, w[FIRST, s]]
        w[ASIDE_COLUMN, i], w[ASIDE_COUNT, i] = c, w[COUNT + s, c]
        take(x, s, c, w[COUNT + s, c])
    return spread


@njit(**NESTED)
def _make(x: Mapping, step: Step) -> None:
    s, c, n, u, d, k = step
    if c < 0:
        _lift(x, s)
    else:
        take(x, s, c, n)
    if k > 0:
        take(x, u, d, k)
        put(x, u, c, k)
    put(x, s, d, n)
