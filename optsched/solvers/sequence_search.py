"""Iterated local search over sequences of a single machine, compiled: insertions and swaps, then kicks from the best.

A move is evaluated only where it changes start times, and only as far as it can still gain: O(n) at most, so that a
hundred jobs are searched some thousand times a second. The search is deterministic: its budget is a number of positions
looked at, not of seconds.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.generation import move_job, next_random
from optsched.solvers.sequence_paths import Jobs

KICKS = 20  # descents a job: a few jobs have few sequences


@njit(interpreted=False)
def _timed(order: Ints, first: int, jobs: Jobs, start: Ints, paid: Floats) -> None:
    """Compute start[k] of position k and paid[k] = cost of the positions before k, from position ``first`` on."""
    for k in range(first, order.size):
        j = order[k]
        end = start[k - 1] + jobs.length[order[k - 1]] if k else 0
        start[k] = max(end, jobs.release[j])
        paid[k + 1] = paid[k] + jobs.cost[j, start[k]]


@njit(forceinline=True)
def _moved(k: int, source: int, target: int, swap: bool) -> int:
    # the position whose job comes to position k
    if swap:
        return target if k == source else source if k == target else k
    if k == target:
        return source
    return k + 1 if source < target else k - 1


@njit(interpreted=False)
def _gain(
    order: Ints, source: int, target: int, swap: bool, jobs: Jobs, start: Ints, paid: Floats
) -> tuple[float, int]:
    """Return (value lost by the move, less than 0 if it gains; positions looked at)."""
    n, first, last = order.size, min(source, target), max(source, target)
    now = start[first - 1] + jobs.length[order[first - 1]] if first else 0
    new, k = paid[first], first
    while k < n:
        j = order[_moved(k, source, target, swap)] if k <= last else order[k]
        now = max(now, jobs.release[j])
        if k > last and now == start[k]:  # from here on all jobs begin at the same times as before
            break
        new += jobs.cost[j, now]
        now += jobs.length[j]
        k += 1
        if new > paid[n]:
            break
    return new - paid[k], k - first


@njit(interpreted=False)
def _descend(order: Ints, budget: int, jobs: Jobs, start: Ints, paid: Floats, begin: int) -> int:
    """Take the first improvement again and again until no insertion and no swap gains; return the positions looked at."""
    n, work, since, source, distance = order.size, 0, 0, begin, 1
    _timed(order, 0, jobs, start, paid)
    while since < 2 * n * (n - 1) and work < budget:
        target = (source + distance) % n
        for swap in (False, True):
            since += 1
            if swap and source > target:
                continue
            lost, looked = _gain(order, source, target, swap, jobs, start, paid)
            work += looked
            if lost < 0:
                move_job(order, source, target, swap)
                _timed(order, min(source, target), jobs, start, paid)
                work += n
                since = 0
        source += 1
        if source == n:
            source = 0
        if source == begin:
            distance = distance % (n - 1) + 1
    return work


@njit(interpreted=False)
def improve_sequence(order: Ints, budget: int, target: float, state: Ints, jobs: Jobs) -> float:
    """Search from ``order`` and return the value of the best sequence found.

    The search stops when ``budget`` positions have been looked at, when the value is down to ``target`` (a proven bound), or
    after `KICKS` n descents.

    Parameters
    ----------
    order
        The jobs in order, i64[n]; changed to the best sequence found.
    budget
        Number of positions.
    target
        Value at which to stop.
    state
        State of the random numbers, i64[1]; kept for the next call.
    jobs
        The jobs.
    """
    n = order.size
    start, paid, trial = np.empty(n, dtype=np.int64), np.zeros(n + 1), order.copy()
    work = _descend(trial, budget, jobs, start, paid, 0)
    best = paid[n]
    order[:] = trial
    for _kick in range(KICKS * n):
        if n < 2 or best <= target or work >= budget:
            break
        for _ in range(3 + next_random(state, 3)):
            move_job(trial, next_random(state, n), next_random(state, n), False)
        work += _descend(trial, budget - work, jobs, start, paid, (state[0] >> 8) % n)
        if paid[n] <= best:  # equal values are accepted, so that the search crosses plateaus
            best = paid[n]
            order[:] = trial
        else:
            trial[:] = order
    return best
