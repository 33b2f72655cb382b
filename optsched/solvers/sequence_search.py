"""Iterated local search over sequences of a single machine, compiled: insertions and swaps, then kicks from the best.

`improve_sequence` handles release dates: a move is evaluated only where it changes start times, O(n) at most.
`improve_gapless` is for jobs that are all released at 0. It finds the best move of a job among n insertions and n swaps in
O(n), apart from swaps whose estimate is promising, and after a kick it looks again only at the jobs that have moved. So it
makes some thousand descents of 300 jobs a second. Both searches are deterministic: their budget is a number of positions
looked at, not of seconds.

References: Congram, Potts and van de Velde, An iterated dynasearch algorithm for the single-machine total weighted
tardiness scheduling problem, INFORMS J. Computing 14 (2002), 52-67; Den Besten, Stuetzle and Dorigo, Design of iterated
local search algorithms, EvoWorkshops 2001 (from recollection; neighbourhoods and kicks here are the project's own).
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.generation import move_job, next_random
from optsched.solvers.sequence_paths import Jobs, cost_of

KICKS = 20  # descents a job: a few jobs have few sequences


@njit(interpreted=False)
def _timed(order: Ints, first: int, jobs: Jobs, start: Ints, paid: Floats) -> None:
    """Compute start[k] of position k and paid[k] = cost of the positions before k, from position ``first`` on."""
    for k in range(first, order.size):
        j = order[k]
        end = start[k - 1] + jobs.length[order[k - 1]] if k else 0
        start[k] = max(end, jobs.release[j])
        paid[k + 1] = paid[k] + cost_of(j, start[k], jobs)


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
        new += cost_of(j, now, jobs)
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


@njit(interpreted=False)
def _best_move(order: Ints, start: Ints, i: int, longest: int, jobs: Jobs) -> tuple[float, int, bool, int]:
    """Return the best move of the job at position i: its gain, the target (i: no move gains), swap?, positions looked at.

    An insertion shifts the jobs in between by the length of the job, so that gains of all insertions are partial sums. The
    same sums, with the shift by the length of the longest job to the left, limit what a swap gains in between.
    """
    n, j, best, target, swap, looked = order.size, order[i], 1e-9, i, False, 0
    p, now = jobs.length[j], cost_of(order[i], start[i], jobs)
    saved = 0.0
    for k in range(i + 1, n):
        q = order[k]
        here, shift = cost_of(q, start[k], jobs), jobs.length[q] - p
        loss = cost_of(j, start[k] + shift, jobs) - now
        gain = here - cost_of(q, start[i], jobs) - loss
        if gain + (saved if shift < 0 else 0.0) > best:
            for m in range(i + 1, k):
                looked += 1
                gain += cost_of(order[m], start[m], jobs) - cost_of(order[m], start[m] + shift, jobs)
                if shift >= 0 and gain <= best:
                    break
            if gain > best:
                best, target, swap = gain, k, True
        saved += here - cost_of(q, start[k] - p, jobs)
        if saved - loss > best:
            best, target, swap = saved - loss, k, False
    lost, saved = 0.0, 0.0
    for k in range(i - 1, -1, -1):
        q = order[k]
        here, shift = cost_of(q, start[k], jobs), p - jobs.length[q]
        gained = now - cost_of(j, start[k], jobs)
        gain = gained + here - cost_of(q, start[i] + shift, jobs)
        if gain + (saved if shift < 0 else 0.0) > best:
            for m in range(i - 1, k, -1):
                looked += 1
                gain += cost_of(order[m], start[m], jobs) - cost_of(order[m], start[m] + shift, jobs)
                if shift >= 0 and gain <= best:
                    break
            if gain > best:
                best, target, swap = gain, k, True
        lost += cost_of(q, start[k] + p, jobs) - here
        if gained - lost > best:
            best, target, swap = gained - lost, k, False
        saved += here - cost_of(q, start[k] - longest, jobs)
    return best, target, swap, looked + n


@njit(interpreted=False)
def _restart(order: Ints, start: Ints, first: int, last: int, jobs: Jobs) -> float:
    """Compute the starts of positions first to last, and return their cost; start[first] does not change."""
    total, now = 0.0, start[first]
    for k in range(first, last + 1):
        start[k] = now
        now += jobs.length[order[k]]
        total += cost_of(order[k], start[k], jobs)
    return total


@njit(interpreted=False, nogil=True)
def improve_gapless(order: Ints, budget: int, target: float, state: Ints, jobs: Jobs) -> float:
    """Search from ``order`` and return the value of the best sequence found.

    A kick moves some jobs, half of them by a few positions. The descent after it looks only at jobs that a move has shifted.
    The search stops when ``budget`` positions have been looked at, or when the value is down to ``target`` (a proven bound).

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
    n, longest, work = order.size, jobs.length.max(), 0
    trial, start, awake = order.copy(), np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.bool_)
    value = _restart(trial, start, 0, n - 1, jobs)
    best, low, high = value, 0, n - 1  # trial and order differ from position low to high at most
    for _kick in range(KICKS * n * n):
        i = low
        while i <= high and work < budget:
            if not awake[i]:
                i += 1
                continue
            awake[i] = False
            gain, k, swap, looked = _best_move(trial, start, i, longest, jobs)
            work += looked
            if k != i:
                move_job(trial, i, k, swap)
                first, last = min(i, k), max(i, k)
                _restart(trial, start, first, last, jobs)
                value -= gain
                first, last = max(first - 1, 0), min(last + 1, n - 1)
                awake[first : last + 1] = True
                low, high, i = min(low, first), max(high, last), first
        if value <= best:  # equal values are accepted, so that the search crosses plateaus
            best = value
            order[low : high + 1] = trial[low : high + 1]
        else:
            trial[low : high + 1] = order[low : high + 1]
            _restart(trial, start, low, high, jobs)
            value = best
        if n < 2 or best <= target or work >= budget:
            break
        low, high = n, -1
        for _ in range(1 + next_random(state, 5)):
            i = next_random(state, n)
            k = next_random(state, n) if next_random(state, 2) else min(max(i + next_random(state, 41) - 20, 0), n - 1)
            first, last = min(i, k), max(i, k)
            for m in range(first, last + 1):
                value -= cost_of(trial[m], start[m], jobs)
            move_job(trial, i, k, next_random(state, 2) == 0)
            value += _restart(trial, start, first, last, jobs)
            for end in (i, k):
                awake[max(end - 2, 0) : end + 3] = True
            low, high = min(low, first - 2), max(high, last + 2)
        low, high = max(low, 0), min(high, n - 1)
    return best
