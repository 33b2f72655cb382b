"""Schedule generation, compiled: from an order of jobs to start times on pools of GPUs.

A *pool* is a set of GPUs that are alike for every job; an unrestricted instance has one. Free GPUs are kept as a profile:
``times[k]`` and ``free[k, p]`` say that pool p has that many free GPUs from ``times[k]`` to ``times[k + 1]``; the last
segment has no end. Both generation schemes and their names are those of Kolisch, Serial and parallel
resource-constrained project scheduling methods revisited, EJOR 90 (1996), 320-333.
"""

from __future__ import annotations

from typing import NamedTuple

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


INTERPRETED = 100  # jobs: some ten thousandths of a second each in plain Python, and that times their square


class Costs(NamedTuple):
    """A `RegularCost`, f64[n]."""

    slope: Floats
    kink: Floats
    base: Floats
    maximum: bool


@njit
def objective_value(start: Floats, duration: Floats, costs: Costs) -> float:
    """The value of start times. O(n)."""
    slope, kink, base, maximum = costs
    value = -np.inf if maximum else 0.0
    for j in range(start.size):
        cost = base[j] + slope[j] * max(start[j] + duration[j] - kink[j], 0.0)
        value = max(value, cost) if maximum else value + cost
    return value


@njit
def _split(times: Floats, free: Ints, count: int, at: int, when: float) -> int:
    # a breakpoint at `when`, inside segment `at`
    # loops, not slices: an assignment between slices takes the compiler seconds
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
    """(segment, start, segments looked at) of the earliest window in which a gang finds its GPUs; fills ``room``."""
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


@njit(interpreted=lambda order, *_: order.size <= INTERPRETED)
def generate_serial(order: Ints, jobs: PooledJobs, start: Floats, taken: Ints) -> int:
    """Place the jobs one by one in ``order``, each at its earliest feasible start given those already placed.

    Writes ``start`` f64[n] and ``taken`` i64[n, pools]; returns the work done (profile segments looked at).
    Over all orders the results are all active schedules, among which a regular objective has an optimum. O(n^2 pools).
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


@njit(interpreted=lambda order, *_: order.size <= INTERPRETED)
def generate_parallel(order: Ints, jobs: PooledJobs, start: Floats, taken: Ints) -> int:
    """Walk through time; whenever GPUs become free or a job arrives, start whatever fits, in ``order``.

    Same arguments and results as `generate_serial`. Never leaves a job waiting that fits (Graham's list scheduling),
    which an optimum may have to do. O(n^2 pools).
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
