"""Deterministic local search over orders, compiled: insertions and swaps, then kicks from the best order so far.

The value of an order is that of its serial generation. Work is bounded by a budget of profile segments looked at, not
by seconds, so the result is the same on every machine.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Ints
from optsched.solvers.generation import Costs, PooledJobs, generate_serial, objective_value

INTERPRETED = 200_000  # profile segments: two seconds of plain Python
KICKS = 50  # descents, times n^2


@njit
def move_job(order: Ints, source: int, target: int, swap: bool) -> None:
    """Take the job at a position out and put it in at another one; or ``swap`` the two there."""
    job = order[source]
    if swap:
        order[source], order[target] = order[target], job
        return
    step = 1 if target > source else -1
    for k in range(source, target, step):
        order[k] = order[k + step]
    order[target] = job


@njit
def next_random(state: Ints, below: int) -> int:
    """A number of 0..below - 1."""
    # a linear congruential generator modulo 2**31: the same kicks everywhere
    state[0] = (1103515245 * state[0] + 12345) & 0x7FFFFFFF
    return (state[0] >> 8) % below


@njit
def _descend(order: Ints, value: float, budget: int, jobs: PooledJobs, costs: Costs) -> tuple[float, int]:
    # first improvement over all insertions and all swaps, round and round until none helps
    n = order.size
    start = np.empty(n)
    taken = np.empty((n, jobs.pool_gpus.size), dtype=np.int64)
    work, since, source, distance = 0, 0, 0, 1
    while since < 2 * n * (n - 1) and work < budget:
        target = (source + distance) % n
        for swap in (False, True):
            move_job(order, source, target, swap)
            work += generate_serial(order, jobs, start, taken)
            new = objective_value(start, jobs.duration, costs)
            if new < value:
                value, since = new, 0
            else:
                since += 1
                move_job(order, target, source, swap)
        source += 1
        if source == n:
            source, distance = 0, distance % (n - 1) + 1
    return value, work


# nogil: a call may take seconds, in which another thread must be able to hear Ctrl-C
@njit(interpreted=lambda order, budget, *_: budget <= INTERPRETED, nogil=True)
def improve_order(order: Ints, budget: int, target: float, seed: int, jobs: PooledJobs, costs: Costs) -> float:
    """Iterated local search on ``order`` (changed in place to the best found); returns its value.

    Stops when ``budget`` profile segments have been looked at, when the value is down to ``target`` (a proven bound), or
    after ``50 n^2`` descents: a handful of jobs has no more orders to find.
    """
    n = order.size
    start = np.empty(n)
    taken = np.empty((n, jobs.pool_gpus.size), dtype=np.int64)
    work = generate_serial(order, jobs, start, taken)
    best = objective_value(start, jobs.duration, costs)
    if n < 2:
        return best
    trial, state = order.copy(), np.array([seed])
    value = best
    for _kick in range(KICKS * n * n):
        if best <= target:
            break
        value, spent = _descend(trial, value, budget - work, jobs, costs)
        work += spent
        if value < best:
            best = value
            for k in range(n):
                order[k] = trial[k]
        if work >= budget:
            break
        for k in range(n):
            trial[k] = order[k]
        for _ in range(2 + next_random(state, 3)):
            move_job(trial, next_random(state, n), next_random(state, n), False)
        work += generate_serial(trial, jobs, start, taken)
        value = objective_value(start, jobs.duration, costs)
    return best
