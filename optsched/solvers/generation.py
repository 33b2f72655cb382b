"""Schedule generation, compiled: from an order of jobs to start times on pools of GPUs.

A *pool* is a set of GPUs that are alike for every job; an unrestricted instance has one. Free GPUs are kept as a profile:
``free[k, p]`` is the number of free GPUs of pool p from ``times[k]`` to ``times[k + 1]``; the last
segment has no end. Both generation schemes and their names are those of Kolisch, Serial and parallel
resource-constrained project scheduling methods revisited, EJOR 90 (1996), 320-333.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints


class PooledJobs(NamedTuple):
    """The jobs, f64[n] and i64[n]; ``usable`` bool[class, pool]; ``pool_gpus`` i64[pools], the least wanted pools first."""

    release: Floats
    duration: Floats
    gpus: Ints
    job_class: Ints
    usable: Bools
    pool_gpus: Ints


FEW = 100  # jobs: in plain Python each takes some ten thousandths of a second, times their square


class Costs(NamedTuple):
    """A `RegularCost`, f64[n]."""

    slope: Floats
    kink: Floats
    base: Floats
    maximum: bool


@njit
def objective_value(start: Floats, duration: Floats, costs: Costs) -> float:
    """Return the value of start times. O(n).

    Parameters
    ----------
    start
        Starts in seconds, f64[n].
    duration
        Durations in seconds, f64[n].
    costs
        Costs of the jobs.
    """
    slope, kink, base, maximum = costs
    value = -np.inf if maximum else 0.0
    for j in range(start.size):
        cost = base[j] + slope[j] * max(start[j] + duration[j] - kink[j], 0.0)
        value = max(value, cost) if maximum else value + cost
    return value


@njit
def _split(times: Floats, free: Ints, count: int, at: int, when: float) -> int:
    # make a breakpoint at `when`, inside segment `at`
    # loops instead of slices: an assignment between slices takes the compiler seconds
    for k in range(count, at, -1):
        times[k] = times[k - 1]
        for p in range(free.shape[1]):
            free[k, p] = free[k - 1, p]
    times[at + 1] = when
    return count + 1


@njit
def _earliest(
    times: Floats, free: Ints, count: int, release: float, duration: float, gang: int, usable: Bools, room: Ints
) -> tuple[int, float, int]:
    """Find the earliest window in which a gang finds its GPUs; fill ``room`` with its free GPUs.

    Returns (segment, start, number of segments looked at).
    """
    low, high = 0, count - 1
    while low < high:  # the last segment that begins no later than the release
        middle = (low + high + 1) >> 1
        if times[middle] <= release:
            low = middle
        else:
            high = middle - 1
    first, start, looked = low, max(release, times[low]), 0
    while True:
        for p in range(room.size):
            room[p] = free[first, p]
        k, blocked = first, -1
        while k < count and (k == first or times[k] < start + duration):
            looked += 1
            total, alone = 0, 0
            for p in range(room.size):
                if usable[p]:
                    room[p] = min(room[p], free[k, p])
                    total += room[p]
                    alone += free[k, p]
            if total < gang:
                blocked = k + 1 if alone < gang else first + 1
                break
            k += 1
        if blocked < 0:
            return first, start, looked
        first = blocked
        start = times[first]


@njit(interpreted=lambda order, *_: order.size <= FEW)
def generate_serial(order: Ints, jobs: PooledJobs, start: Floats, taken: Ints) -> int:
    """Place the jobs one by one in ``order``, each at its earliest feasible start given those already placed.

    Over all orders the results are all active schedules, among which a regular objective has an optimum. O(n^2 pools).

    Parameters
    ----------
    order
        The jobs in order, i64[n].
    jobs
        Jobs and pools.
    start
        Output: starts in seconds, f64[n].
    taken
        Output: GPUs taken, i64[n, pools].

    Returns
    -------
    int
        Work done: number of profile segments looked at.
    """
    release, duration, gpus, job_class, usable, pool_gpus = jobs
    n, pools = order.size, pool_gpus.size
    times = np.zeros(2 * n + 2)
    free = np.zeros((2 * n + 2, pools), dtype=np.int64)
    room = np.zeros(pools, dtype=np.int64)
    for p in range(pools):
        free[0, p] = pool_gpus[p]
    count, work = 1, 0
    for j in order:
        at, begin, looked = _earliest(times, free, count, release[j], duration[j], gpus[j], usable[job_class[j]], room)
        work += looked
        end = begin + duration[j]
        if times[at] < begin:
            count = _split(times, free, count, at, begin)
            at += 1
        last = at
        while last + 1 < count and times[last + 1] <= end:
            last += 1
        if times[last] < end:
            count = _split(times, free, count, last, end)
            last += 1
        need = gpus[j]
        for p in range(pools):
            part = min(need, room[p]) if usable[job_class[j], p] else 0
            taken[j, p] = part
            need -= part
            if part:
                for k in range(at, last):
                    free[k, p] -= part
        start[j] = begin
    return work


@njit(interpreted=lambda order, *_: order.size <= FEW)
def generate_parallel(order: Ints, jobs: PooledJobs, start: Floats, taken: Ints) -> int:
    """Walk through time; whenever GPUs become free or a job arrives, start all jobs that fit, in ``order``.

    It never leaves a job waiting that fits (Graham's list scheduling), although an optimal schedule may have to. O(n^2
    pools).

    Parameters
    ----------
    order
        The jobs in order, i64[n].
    jobs
        Jobs and pools.
    start
        Output: starts in seconds, f64[n].
    taken
        Output: GPUs taken, i64[n, pools].

    Returns
    -------
    int
        Work done: number of jobs looked at.
    """
    release, duration, gpus, job_class, usable, pool_gpus = jobs
    n, pools = order.size, pool_gpus.size
    free = pool_gpus.copy()
    waiting = order.copy()
    left, work, now = n, 0, -np.inf
    running = np.empty(n, dtype=np.int64)
    busy = 0
    while left:
        upcoming = np.inf
        kept = 0
        for i in range(left):
            j = waiting[i]
            work += 1
            total = 0
            if release[j] <= now:
                for p in range(pools):
                    if usable[job_class[j], p]:
                        total += free[p]
            else:
                upcoming = min(upcoming, release[j])
            if total < gpus[j]:
                waiting[kept] = j
                kept += 1
                continue
            need = gpus[j]
            for p in range(pools):
                taken[j, p] = min(need, free[p]) if usable[job_class[j], p] else 0
                need -= taken[j, p]
                free[p] -= taken[j, p]
            start[j] = now
            running[busy] = j
            busy += 1
        left = kept
        for i in range(busy):
            upcoming = min(upcoming, start[running[i]] + duration[running[i]])
        now = upcoming
        kept = 0
        for i in range(busy):
            j = running[i]
            if start[j] + duration[j] <= now:
                for p in range(pools):
                    free[p] += taken[j, p]
            else:
                running[kept] = j
                kept += 1
        busy = kept
    return work


# Deterministic local search over orders: insertions and swaps, then kicks from the best order so far.
#
# The value of an order is that of its serial generation. Work is bounded by a budget of profile segments looked at, not
# by seconds, so the result is the same on every machine.

INTERPRETED = 200_000  # profile segments, which take plain Python two seconds
KICKS = 50  # largest number of descents, times n^2


@njit
def move_job(order: Ints, source: int, target: int, swap: bool) -> None:
    """Take the job at one position out of the order and put it in at another position, or swap two jobs.

    Parameters
    ----------
    order
        The jobs in order, i64[n]; changed.
    source
        Position of the job.
    target
        Its new position.
    swap
        Swap the jobs at both positions.
    """
    job = order[source]
    if swap:
        order[source], order[target] = order[target], job
        return
    step = 1 if target > source else -1
    for k in range(source, target, step):
        order[k] = order[k + step]
    order[target] = job


@njit
def copy_to(kept: Any, found: Any) -> None:
    """Copy ``found`` to ``kept``, as ``kept[:] = found`` does.

    The slice assignment takes two seconds to compile because of its error message for arrays that do not fit.

    Parameters
    ----------
    kept
        Output, an array.
    found
        Array of the same size.
    """
    for k in range(kept.size):
        kept[k] = found[k]


@njit
def next_random(state: Ints, below: int) -> int:
    """Return a pseudorandom number of 0..below - 1.

    Parameters
    ----------
    state
        State of the generator, i64[1]; changed.
    below
        Upper limit, exclusive.
    """
    # a linear congruential generator modulo 2**31: the same kicks everywhere
    state[0] = (1103515245 * state[0] + 12345) & 0x7FFFFFFF
    return (state[0] >> 8) % below


@njit
def _descend(order: Ints, value: float, budget: int, jobs: PooledJobs, costs: Costs) -> tuple[float, int]:
    # first improvement over all insertions and all swaps, repeated until none improves
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


@njit(interpreted=lambda order, budget, *_: budget <= INTERPRETED)
def improve_order(order: Ints, budget: int, target: float, seed: int, jobs: PooledJobs, costs: Costs) -> float:
    """Improve ``order`` in place by iterated local search, and return its value.

    The search stops when ``budget`` profile segments have been looked at, when the value is down to ``target`` (a proven
    bound), or after ``50 n^2`` descents, because a few jobs have few orders.

    Parameters
    ----------
    order
        The jobs in order, i64[n]; changed to the best order found.
    budget
        Number of profile segments.
    target
        Value at which to stop.
    seed
        Seed of the kicks.
    jobs
        Jobs and pools.
    costs
        Costs of the jobs.
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
            copy_to(order, trial)
        if work >= budget:
            break
        copy_to(trial, order)
        for _ in range(2 + next_random(state, 3)):
            move_job(trial, next_random(state, n), next_random(state, n), False)
        work += generate_serial(trial, jobs, start, taken)
        value = objective_value(start, jobs.duration, costs)
    return best
