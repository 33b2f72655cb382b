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

from optsched.bounds.exact_dot import exact_products
from optsched.bounds.fast_machine import priority_run
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
    least = Fraction(exact_products(multiplier, 2 * done - work), 2)
    interrupted = np.flatnonzero((high | low) != 0)
    held_up = (high[interrupted].astype(object) << 64) + low[interrupted].astype(object)
    work, multiplier = work[interrupted].astype(object), multiplier[interrupted].astype(object)
    if interrupted.size <= EXACT:
        return least - sum(map(Fraction, (multiplier * held_up).tolist(), work.tolist()), Fraction(0)), None
    rounded = -(-(held_up << HELD_UP_BITS) // work)  # up, in parts of 2**-HELD_UP_BITS ticks
    return least - Fraction(int(np.dot(multiplier, rounded)), 1 << HELD_UP_BITS), HELD_UP_BITS


def densest_first(multiplier: Ints, work: Ints) -> Ints:
    """Indices i64[n] by ``multiplier / work`` descending, compared as fractions, then by position; both positive.

    Floats order nearly everything; only where neighbours contradict the fractions are these sorted. O(n log n).
    """
    if multiplier.size == 0 or int(multiplier.min()) == int(multiplier.max()):
        return np.argsort(work, kind="stable")
    ratio = work / multiplier
    order = np.argsort(ratio, kind="stable")
    # the ratio has three roundings: what differs by more is in order
    ratio = ratio[order]
    near = np.flatnonzero(ratio[1:] <= ratio[:-1] * (1 + 2.0**-48))
    first, second = order[near], order[near + 1]
    u, w = multiplier.astype(object), work.astype(object)
    more = u[first] * w[second] - u[second] * w[first]
    if bool(((more > 0) | ((more == 0) & (first < second))).all()):
        return order
    exact = [Fraction(*pair) for pair in zip(work.tolist(), multiplier.tolist(), strict=True)]
    return np.array(sorted(order.tolist(), key=lambda j: (exact[j], j)), dtype=np.int64)
