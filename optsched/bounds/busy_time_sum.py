"""The least ``sum u_j M_j`` on the fast machine, exactly, or rounded down in the last place of a very fine grid.

M_j is the mean busy time of job j: the mean moment at which the machine works on it. Preemptive WSPT, which serves the
released job with the largest u_j / work_j, minimises the sum over all preemptive and processor-sharing schedules.

M_j has the denominator ``work_j``, another for every interrupted job. Up to `EXACT` interrupted jobs are added as
fractions; beyond that each M_j is rounded down to a multiple of ``2**-HELD_UP_BITS`` ticks. The exact sum is the same
however ties are broken; so that the rounded one is too, jobs of equal density are served in order of release, then
of position.

Reference: Goemans, Queyranne, Schulz, Skutella, Wang, Single machine scheduling with release dates, SIAM J. Discrete
Math. 15 (2002), 165-192 (section 2: mean busy times, their polyhedron and its greedy optimum).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.fast_machine import priority_run
from optsched.bounds.wide_integers import LIMBS, Words, add_wide, total, wide_divide, wide_product
from optsched.compiled import njit
from optsched.problem.arrays import Ints

EXACT = 64  # interrupted jobs whose fractions are added; the sum then has at most 64 x 61 bits below one
HELD_UP_BITS = 32


def least_busy_time_sum(release: Ints, work: Ints, multiplier: Ints) -> tuple[Fraction, int | None]:
    """(``sum multiplier_j M_j`` in ticks, None if it is exact and else the bits below a tick that were kept).

    ``work`` and ``multiplier`` positive, i64[n], the latter below 2**53. O(n log n).
    """
    order = np.argsort(release, kind="stable")
    release, work, multiplier = release[order], work[order], multiplier[order]
    rank = np.empty_like(order)
    rank[densest_first(multiplier, work)] = np.arange(order.size)
    done, high, low = priority_run(release, work, rank)
    doubled = _sum_products(multiplier, 2 * done - work)
    interrupted = np.flatnonzero((high | low) != 0)
    high, low, work, multiplier = high[interrupted], low[interrupted], work[interrupted], multiplier[interrupted]
    if interrupted.size <= EXACT:
        held_up = sum(
            (
                Fraction(int(u) * ((int(h) << 64) + int(m)), int(w))
                for u, h, m, w in zip(multiplier, high, low, work, strict=True)
            ),
            Fraction(0),
        )
        return Fraction(total(doubled), 2) - held_up, None
    whole, part = _held_up(multiplier, work, high, low)
    held_up = total(whole) + Fraction(total(part), 1 << HELD_UP_BITS)
    return Fraction(total(doubled), 2) - held_up, HELD_UP_BITS


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


@njit(forceinline=True)
def _denser(a: int, b: int, multiplier: Ints, work: Ints) -> bool:
    left_high, left_low = wide_product(np.uint64(multiplier[a]), np.uint64(work[b]))
    right_high, right_low = wide_product(np.uint64(multiplier[b]), np.uint64(work[a]))
    if left_high != right_high:
        return bool(left_high > right_high)
    return bool(left_low > right_low) or (left_low == right_low and a < b)


@njit
def _ordered(order: Ints, multiplier: Ints, work: Ints) -> bool:
    for i in range(1, order.size):
        if _denser(order[i], order[i - 1], multiplier, work):
            return False
    return True


@njit
def _sum_products(a: Ints, b: Ints) -> Words:
    limbs = np.zeros(LIMBS, dtype=np.uint64)
    for i in range(a.size):
        high, low = wide_product(np.uint64(a[i]), np.uint64(b[i]))
        add_wide(limbs, high, low)
    return limbs


@njit
def _held_up(multiplier: Ints, work: Ints, high: Words, low: Words) -> tuple[Words, Words]:
    # sum of multiplier * (held-up work / work), rounded up job by job: whole ticks, and parts of 2**-HELD_UP_BITS
    whole = np.zeros(LIMBS, dtype=np.uint64)
    part = np.zeros(LIMBS, dtype=np.uint64)
    for i in range(work.size):
        divisor = np.uint64(work[i])
        ticks, rest = wide_divide(high[i], low[i], divisor)
        rest_high, rest_low = wide_product(rest, np.uint64(1 << HELD_UP_BITS))
        parts, rest = wide_divide(rest_high, rest_low, divisor)
        if rest > np.uint64(0):
            parts += np.uint64(1)
        more_high, more_low = wide_product(np.uint64(multiplier[i]), ticks)
        add_wide(whole, more_high, more_low)
        more_high, more_low = wide_product(np.uint64(multiplier[i]), parts)
        add_wide(part, more_high, more_low)
    return whole, part
