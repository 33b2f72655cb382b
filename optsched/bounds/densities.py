"""The order of multiplier / work, largest first, without rounding: preemptive WSPT's order of priority."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.wide_integers import wide_product
from optsched.compiled import njit
from optsched.problem.arrays import Ints


def densest_first(multiplier: Ints, work: Ints) -> Ints:
    """Indices i64[n] by ``multiplier / work`` descending, compared as fractions, then by position; both positive.

    Floats order nearly everything; only where neighbours contradict the fractions are these sorted. O(n log n).
    """
    if multiplier.size == 0 or int(multiplier.min()) == int(multiplier.max()):
        return np.argsort(work, kind="stable")
    order = np.argsort(work / multiplier, kind="stable")
    if _ordered(order, multiplier, work):
        return order
    u, w = multiplier.tolist(), work.tolist()
    return np.array(sorted(order.tolist(), key=lambda j: (Fraction(w[j], u[j]), j)), dtype=np.int64)


@njit(cache=True, forceinline=True)
def _denser(a: int, b: int, multiplier: Ints, work: Ints) -> bool:
    left_high, left_low = wide_product(np.uint64(multiplier[a]), np.uint64(work[b]))
    right_high, right_low = wide_product(np.uint64(multiplier[b]), np.uint64(work[a]))
    if left_high != right_high:
        return bool(left_high > right_high)
    return bool(left_low > right_low) or (left_low == right_low and a < b)


@njit(cache=True)
def _ordered(order: Ints, multiplier: Ints, work: Ints) -> bool:
    for i in range(1, order.size):
        if _denser(order[i], order[i - 1], multiplier, work):
            return False
    return True
