"""Simulated annealing over orders of starts on one pool of GPUs, compiled: millions of moves a second.

**Decoding.** In an order of starts every job begins as soon as its GPUs are free, and not before the job ahead of it; every
schedule is that of its own order, so an optimum is among them. All that counts of the jobs placed so far is when each GPU is
free: a sorted vector, kept behind every position. A move is therefore looked at from the first position that it changes.
**Early end.** Later vectors never give earlier starts. Behind the changed positions a move is over as soon as its vector is
nowhere earlier than before and what it has lost by then is more than may be lost, or the vector is what it was: after
10 to 30 jobs, however many follow. **Reference** Kirkpatrick, Gelatt and Vecchi, Science 220 (1983); the decoding is the
project's own.
"""

from __future__ import annotations

import math

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.generation import Costs, PooledJobs
from optsched.solvers.local_search import move_job, next_random

FINE = 1 << 22  # values of a random real number
REACH = 15.0  # positions that a job moves, on average


@njit(interpreted=False)
def _place(free: Floats, earliest: float, gang: int, duration: float) -> float:
    """Start of a gang not before ``earliest``; ``free`` f64[G] (when each GPU is, ascending) is changed."""
    start = max(earliest, free[gang - 1])
    k = gang
    while k < free.size and free[k] < start + duration:
        free[k - gang] = free[k]
        k += 1
    for at in range(k - gang, k):
        free[at] = start + duration
    return start


@njit(interpreted=False)
def _compare(free: Floats, begun: float, old: Floats, old_begun: float) -> tuple[bool, bool]:
    """(nowhere earlier, nowhere later) than before; what is free before the last start is as good as free at it."""
    not_earlier, not_later = begun >= old_begun, begun <= old_begun
    for k in range(free.size):
        now, before = max(free[k], begun), max(old[k], old_begun)
        not_earlier, not_later = not_earlier and now >= before, not_later and now <= before
        if not (not_earlier or not_later):
            break
    return not_earlier, not_later


@njit(interpreted=False, nogil=True)
def anneal(
    order: Ints, best: Ints, value: float, jobs: PooledJobs, costs: Costs, steps: int, temperature: float, seed: Ints
) -> float:
    """``steps`` moves from ``order`` (changed) at one temperature, in units of cost; returns the value of ``best``.

    ``best`` i64[n], of that ``value``, is changed where a better order is found. One pool, costs that are added up.
    Moves are insertions and swaps over a distance of 15 positions on average.
    """
    n = order.size
    free = np.zeros((n + 1, jobs.pool_gpus[0]))
    begun, paid = np.full(n + 1, -np.inf), np.zeros(n + 1)
    new_free, new_begun, new_paid = np.zeros_like(free), begun.copy(), paid.copy()
    first, last, current, limit = 0, n - 1, np.inf, np.inf
    source, target, swap = 0, 0, False
    for step in range(steps + 1):
        if step:  # the first round looks at the order as it is
            source = next_random(seed, n)
            distance = 1 + int(-math.log((1 + next_random(seed, FINE)) / FINE) * REACH)
            target = source + distance if next_random(seed, 2) else source - distance
            if target < 0 or target >= n:
                continue
            swap = next_random(seed, 2) == 1
            first, last = min(source, target), max(source, target)
            limit = current - temperature * math.log((1 + next_random(seed, FINE)) / FINE)
            if swap:
                order[source], order[target] = order[target], order[source]
            else:
                move_job(order, source, target)
        k, found = first, np.inf
        for g in range(free.shape[1]):
            new_free[k, g] = free[k, g]
        new_begun[k], new_paid[k] = begun[k], paid[k]
        while k < n:
            j = order[k]
            for g in range(free.shape[1]):
                new_free[k + 1, g] = new_free[k, g]
            start = _place(new_free[k + 1], max(new_begun[k], jobs.release[j]), jobs.gpus[j], jobs.duration[j])
            late = max(start + jobs.duration[j] - costs.kink[j], 0.0)
            new_begun[k + 1], new_paid[k + 1] = start, new_paid[k] + costs.base[j] + costs.slope[j] * late
            k += 1
            if k > last and step:
                found = new_paid[k] + current - paid[k]
                not_earlier, not_later = _compare(new_free[k], start, free[k], begun[k])
                if not_earlier and (not_later or found > limit):
                    break
        found = new_paid[n] if k == n else found
        if found > limit:
            if swap:
                order[source], order[target] = order[target], order[source]
            else:
                move_job(order, target, source)
            continue
        for at in range(first + 1, k + 1):
            begun[at], paid[at] = new_begun[at], new_paid[at]
            for g in range(free.shape[1]):
                free[at, g] = new_free[at, g]
        for at in range(k + 1, n + 1):
            paid[at] += found - current
        current = found
        if current < value:
            value = current
            for at in range(n):
                best[at] = order[at]
    return value
