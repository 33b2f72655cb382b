"""Replicas on free GPUs at random: what a mapper is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import NESTED
from optsched.policies.placements.mapping import FIRST, VACANT, Mapping, put
from optsched.policies.placements.random import uniform


@njit(**NESTED)
def fill_at_random(x: Mapping, random: Any) -> None:
    """Every replica on one of the free GPUs that are left, all equally likely. O(g C) for C candidates."""
    w, total, one = x.whole, 0, np.int64(1)
    for c in range(x.candidates):
        total += w[VACANT, c]
    for s in range(x.stages):
        for _ in range(w[FIRST, s], w[FIRST, s + 1]):
            drawn = np.int64(uniform(random) * total)
            c = 0
            while drawn >= w[VACANT, c]:
                drawn -= w[VACANT, c]
                c += 1
            put(x, s, c, one)
            total -= 1
