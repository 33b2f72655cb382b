"""Compiled runs of one preemptive machine on the integer grid: SRPT, and a fixed order of priority.

Struct of arrays, one heap of integers, no Python objects; O(n log n).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit
from optsched.compiled.heap import pop, push
from optsched.problem.arrays import Ints


def by_release(release: Ints) -> Ints | None:
    """Return the order of release, i64[n]; None if the jobs are in it already, which saves the sort.

    Parameters
    ----------
    release
        Release ticks, i64[n].
    """
    return None if bool(np.all(release[1:] >= release[:-1])) else np.argsort(release)


def srpt_completions(release: Ints, work: Ints) -> Ints:
    """Return the completion ticks of SRPT in increasing order, i64[n].

    Parameters
    ----------
    release
        Release ticks, i64[n].
    work
        Work in ticks, i64[n].

    Notes
    -----
    **Problem**: 1 | r_j, pmtn | sum C_j. The released job with the least remaining work is served; a new one takes over
    only if its work is strictly smaller. The k-th completion is as early as in any schedule, for every k at once, so
    that any nondecreasing function of the completion times that does not depend on which job completes when is
    minimised.

    References
    ----------
    Schrage, A proof of the optimality of the shortest remaining processing time discipline, Operations Research 16
    (1968), 687-690.
    """
    order = by_release(release)
    if order is not None:
        release, work = release[order], work[order]
    done, heap = np.empty_like(release), np.empty_like(release)
    finished, waiting, now = _srpt(release, work, done, heap)
    done[finished:] = now + np.cumsum(np.sort(heap[:waiting]))  # nobody comes any more: shortest first
    return done


@njit
def _srpt(release: Ints, work: Ints, done: Ints, heap: Ints) -> tuple[int, int, np.int64]:
    # Until who runs at the last release is done: (how many are ``done``, how many wait in ``heap``, when that is).
    # release ascending. `left` is the remaining work of the job in service, -1 for none; the heap holds those waiting.
    n = release.size
    waiting = finished = 0
    left: Any  # numpy's integers and the compiler's
    now, left = np.int64(0), np.int64(-1)
    for i in range(n):
        while left >= 0 and now + left <= release[i]:
            now += left
            done[finished] = now
            finished += 1
            left = np.int64(-1)
            if waiting > 0:
                left = pop(heap, 0, waiting)
                waiting -= 1
        if left < 0:
            left = work[i]
        else:
            left -= release[i] - now
            if work[i] < left:
                waiting = push(heap, 0, waiting, left)
                left = work[i]
            else:
                waiting = push(heap, 0, waiting, work[i])
        now = release[i]
    if left >= 0:
        now += left
        done[finished] = now
        finished += 1
    return finished, waiting, now


def served_in_order(release: Ints, work: Ints, order: Ints) -> tuple[Ints, Words, Words]:
    """Return `priority_run` with the jobs' positions in an order as ranks.

    Parameters
    ----------
    release
        Release ticks, ascending, i64[n].
    work
        Work in ticks, positive, i64[n].
    order
        Jobs in order of priority, i64[n].
    """
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    run: tuple[Ints, Words, Words] = priority_run(release, work, rank)
    return run


@njit(patience=4)  # ten seconds
def priority_run(release: Ints, work: Ints, rank: Ints) -> tuple[Ints, Words, Words]:
    """Run one preemptive machine that always serves the released job of least ``rank``.

    Parameters
    ----------
    release
        Release ticks, ascending, i64[n].
    work
        Work in ticks, positive, i64[n].
    rank
        A permutation of 0..n-1, i64[n].

    Returns
    -------
    tuple
        Completion ticks, i64[n]; the held-up work of every job, as high and as low words, u64[n].

    Notes
    -----
    The *held-up work* of a job is the sum over its interruptions of their length times the work done before them. With
    it the mean busy time M_j, the mean moment at which the machine works on j, is ``C_j - work_j / 2 - held_up_j /
    work_j``.
    """
    n = release.size
    done = np.empty(n, dtype=np.int64)
    high = np.zeros(n, dtype=np.uint64)
    low = np.zeros(n, dtype=np.uint64)
    left = work.copy()
    paused = np.empty(n, dtype=np.int64)
    # rank * n + job: one comparison decides and the job is at hand
    heap = np.empty(n, dtype=np.int64)
    running: Any  # numpy's integers and the compiler's
    waiting, i, now, running = 0, 0, np.int64(0), np.int64(-1)
    while i < n or running >= 0:
        while running >= 0 and (i == n or now + left[running] <= release[i]):
            now += left[running]
            done[running] = now
            running = np.int64(-1)
            if waiting > 0:
                running = pop(heap, 0, waiting) % n
                waiting -= 1
                _resume(running, now, work, left, paused, high, low)
        if i == n:
            break
        if running >= 0:
            left[running] -= release[i] - now
        now = release[i]
        if running < 0:
            running = np.int64(i)
        elif rank[i] < rank[running]:
            paused[running] = now
            waiting = push(heap, 0, waiting, rank[running] * n + running)
            running = np.int64(i)
        else:
            waiting = push(heap, 0, waiting, rank[i] * n + i)
        i += 1
    return done, high, low


# 128 bits as two unsigned words of 64: a signed one among them would turn them into floats.
Words = npt.NDArray[np.uint64]
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@njit(forceinline=True)
def wide_product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the (high, low) words of ``a * b``.

    Parameters
    ----------
    a
        A word.
    b
        A word.
    """
    a1, a0 = a >> _HALF, a & _LOW
    b1, b0 = b >> _HALF, b & _LOW
    low, cross, other = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> _HALF) + (cross & _LOW) + (other & _LOW)
    high = a1 * b1 + (cross >> _HALF) + (other >> _HALF) + (middle >> _HALF)
    return high, (middle << _HALF) | (low & _LOW)


@njit(forceinline=True)
def _resume(job: int, now: int, work: Ints, left: Ints, paused: Ints, high: Words, low: Words) -> None:
    served = work[job] - left[job]
    if served > 0:
        more_high, more_low = wide_product(np.uint64(now - paused[job]), np.uint64(served))
        low[job] += more_low
        high[job] += more_high + (np.uint64(1) if low[job] < more_low else np.uint64(0))
