"""The best mapping of a small job: every way to spread its replicas, but for those that are certainly no better.

Depth first over the replicas, stage after stage; alike replicas take servers in ascending order, of alike empty servers
with as many free GPUs only the first is tried, and a branch ends when the replicas placed so far already take as long as
the best mapping known (what is not placed only adds traffic: `mapping_pace`).
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import NESTED
from optsched.policies.placements.mapping import (
    FALLS,
    FIRST,
    HELD,
    SERVER,
    TWIN,
    VACANT,
    Mapping,
    clear,
    keep,
    mapping_pace,
    put,
    recall,
    take,
)

EXACT = 8  # replicas of the largest job that a placement rule maps this way


@njit(**NESTED)
def enumerate_mappings(x: Mapping) -> float:
    """Put the best mapping into ``x``, which holds any mapping of all replicas to start from; its alpha.

    Complexity O(C^g) alphas at worst, C candidates and g replicas; far fewer when servers are alike or alpha_min is met.
    """
    best = mapping_pace(x)
    if best <= x.fastest:
        return best
    keep(x)
    clear(x)
    w, one = x.whole, np.int64(1)
    q, s = np.int64(0), np.int64(0)  # replica q, of stage s, is on candidate SERVER[q], -1: none yet
    w[SERVER, 0] = -1
    while q >= 0:
        while q < w[FIRST, s]:
            s -= 1
        if w[SERVER, q] >= 0:
            take(x, s, w[SERVER, q], one)
        w[SERVER, q] = _next_candidate(x, s, q)
        if w[SERVER, q] < 0:
            q -= 1
            continue
        put(x, s, w[SERVER, q], one)
        alpha = mapping_pace(x)
        if alpha >= best * FALLS:
            continue
        if q + 1 == w[FIRST, x.stages]:
            best = alpha
            keep(x)
            continue
        q += 1
        w[SERVER, q] = -1
        while q == w[FIRST, s + 1]:
            s += 1
    recall(x)
    return best


@njit(**NESTED)
def _next_candidate(x: Mapping, s: int, q: int) -> int:
    # The next candidate to try for replica q of stage s, -1 when there is none left.
    w = x.whole
    start = w[SERVER, q] + 1
    if start == 0 and q > w[FIRST, s]:
        start = w[SERVER, q - 1]  # alike replicas in ascending order
    for c in range(start, x.candidates):
        if w[VACANT, c] > 0 and not _has_a_double_before(x, c):
            return c
    return -1


@njit(**NESTED)
def _has_a_double_before(x: Mapping, c: int) -> bool:
    w = x.whole
    if w[HELD, c] > 0:
        return False
    d = w[TWIN, c]
    while d >= 0:
        if w[HELD, d] == 0 and w[VACANT, d] == w[VACANT, c]:
            return True
        d = w[TWIN, d]
    return False
