"""Arcs of the sequences of a single machine, from junction to junction, and the count of a job in them; compiled.

An arc is a job with its start. It leads from one *junction* to another: a junction is a time, together with the set of the
counted jobs that paths have visited before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.sequence_paths import Jobs


class Arcs(NamedTuple):
    """Arcs ``job``, ``origin``, ``target`` i32[k], in order of origin and job; ``time`` i64[junctions] never falls.

    Arcs ``first[g]`` to ``first[g + 1]`` start at junction g; ``ending[ended[g]]`` to ``ending[ended[g + 1]]``, i32[k], end
    there. Both offsets are i64[junctions + 1]. Junction 0 is the beginning. ``waiting`` i32 are the arcs that start at a
    release later than 0: the machine may wait for them.
    """

    job: Any
    origin: Any
    target: Any
    time: Ints
    first: Ints
    ending: Any
    ended: Ints
    waiting: Any


@njit(interpreted=False)
def _arrange(arcs: Arcs) -> None:
    """Compute first, ending and ended from origin and target."""
    origin, target, first, ending, ended = arcs.origin, arcs.target, arcs.first, arcs.ending, arcs.ended
    first[:] = 0
    ended[:] = 0
    for k in range(origin.size):
        first[origin[k] + 1] += 1
        ended[target[k] + 1] += 1
    for g in range(first.size - 1):
        first[g + 1] += first[g]
        ended[g + 1] += ended[g]
    place = ended.copy()
    for k in range(origin.size):
        ending[place[target[k]]] = k
        place[target[k]] += 1


def arcs_of(jobs: Jobs, job: Any, origin: Any, target: Any, time: Ints) -> Arcs:
    """Return the arcs, without the junctions at which no arc starts or ends.

    Parameters
    ----------
    jobs
        The jobs.
    job
        Job of every arc, i32[k].
    origin
        Junction at which every arc starts, i32[k]; arcs are in order of origin and job.
    target
        Junction at which every arc ends, i32[k].
    time
        Time of every junction, i64[junctions].
    """
    used = np.zeros(time.size, dtype=bool)
    used[0] = used[origin] = used[target] = True
    number = (np.cumsum(used) - 1).astype(np.int32)
    origin, target, time = number[origin], number[target], time[used]
    start = time[origin]
    waiting = np.flatnonzero((start > 0) & (start == jobs.release[job])).astype(np.int32)
    first, ended = np.empty(time.size + 1, dtype=np.int64), np.empty(time.size + 1, dtype=np.int64)
    arcs = Arcs(job, origin, target, time, first, np.empty(job.size, dtype=np.int32), ended, waiting)
    _arrange(arcs)
    return arcs


@njit(forceinline=True)
def next_arcs(arcs: Arcs, g: int, after: Ints) -> int:
    """Find the arcs that may follow an arc that ends at junction g, before any rule; return their number.

    Parameters
    ----------
    arcs
        The arcs.
    g
        Number of the junction.
    after
        Output, i64[n].
    """
    count = 0
    for k in range(arcs.first[g], arcs.first[g + 1]):
        after[count] = k
        count += 1
    for k in arcs.waiting:
        if arcs.origin[k] > g:
            after[count] = k
            count += 1
    return count


def share_between(job: Any, start: Any, length: Ints) -> Floats:
    """Return for each job the share of arcs that start between its first start and its last end, f64[n].

    Parameters
    ----------
    job
        Job of every arc, i32[k].
    start
        Start of every arc, i64[k] in order.
    length
        Durations in slots, i64[n].
    """
    n, before = length.size, np.bincount(start).cumsum()
    first, last = np.full(n, start[-1]), np.zeros(n, dtype=np.int64)
    np.minimum.at(first, job, start)
    np.maximum.at(last, job, start)
    return np.asarray((before[np.minimum(last + length, start[-1])] - before[first]) / job.size)


@njit(forceinline=True)
def _state_after(q: int, j: int, b: int, s: int, before: Bools, earliest: Ints, latest: Ints) -> int:
    """Return the visits of q after job j, which starts at s after b visits of q; -1: it may not."""
    if s < earliest[j] or s > latest[j]:
        return -1
    if j == q:
        return 1 if b == 0 else -1
    if before[j, q] if b else before[q, j]:
        return -1
    return b


@njit(interpreted=False)
def count_job(q: int, arcs: Arcs, ends: Bools, before: Bools, earliest: Ints, latest: Ints) -> Any:
    """Return (job, origin, target, time) of the paths that visit job q once, with separate junctions before and after it.

    The machine must never wait. Only paths are left on which jobs are before and after q as they must, and start as early
    and as late as they may.

    Parameters
    ----------
    q
        Number of the job.
    arcs
        The arcs.
    ends
        Junctions at which paths may end, bool[junctions].
    before
        Known orders, bool[n, n], as in `Jobs`.
    earliest
        Earliest start of every job, i64[n].
    latest
        Latest start of every job, i64[n].
    """
    junctions = arcs.time.size
    # reach[g, b]: a path visits q b times before it comes to g; done[g, b]: such a path can be completed
    reach, done = np.zeros((junctions, 2), dtype=np.bool_), np.zeros((junctions, 2), dtype=np.bool_)
    reach[0, 0] = True
    for g in range(junctions):
        for k in range(arcs.first[g], arcs.first[g + 1]):
            for b in range(2):
                if reach[g, b]:
                    after = _state_after(q, arcs.job[k], b, arcs.time[g], before, earliest, latest)
                    if after >= 0:
                        reach[arcs.target[k], after] = True
    edges = 0
    for g in range(junctions - 1, -1, -1):
        if ends[g]:
            done[g, 1] = True
        for k in range(arcs.first[g], arcs.first[g + 1]):
            for b in range(2):
                after = _state_after(q, arcs.job[k], b, arcs.time[g], before, earliest, latest)
                if after >= 0 and done[arcs.target[k], after]:
                    done[g, b] = True
                    edges += reach[g, b]
    number, count = np.full((junctions, 2), -1, dtype=np.int32), 0
    for g in range(junctions):
        for b in range(2):
            if (reach[g, b] and done[g, b]) or (g == 0 and b == 0):
                number[g, b] = count
                count += 1
    time, size = np.empty(count, dtype=np.int64), edges
    job, origin, target = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    edges = 0
    for g in range(junctions):
        for b in range(2):
            if number[g, b] < 0:
                continue
            time[number[g, b]] = arcs.time[g]
            for k in range(arcs.first[g], arcs.first[g + 1]):
                after = _state_after(q, arcs.job[k], b, arcs.time[g], before, earliest, latest)
                if after >= 0 and done[arcs.target[k], after] and reach[g, b]:
                    job[edges], origin[edges], target[edges] = arcs.job[k], number[g, b], number[arcs.target[k], after]
                    edges += 1
    return job, origin, target, time
