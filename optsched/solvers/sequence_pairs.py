"""Shortest paths by the rule of pairs over a list of arcs, compiled.

An arc is a job with its start. It leads from one *junction* to another: a junction is a time, together with the set of the
counted jobs that paths have visited before it. Arcs are in order of their first junctions, and of jobs, so that a pass
through time reads and writes them one after another, and a pass costs as much as there are arcs left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.deadline import Deadline
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.sequence_paths import NOTHING, Jobs, cost_of, may_follow

ARCS = 300_000  # arcs of a shortest path between two checks of the time: less than a tenth of a second


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


@njit(forceinline=True)
def _sift(item: Ints, key: Floats, place: int, count: int) -> None:
    # move the entry at a place of a heap down
    moved, value = item[place], key[place]
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and key[child + 1] < key[child]:
            child += 1
        if key[child] >= value:
            break
        item[place], key[place] = item[child], key[child]
        place = child
    item[place], key[place] = moved, value


@njit(forceinline=True)
def _heap(item: Ints, key: Floats, count: int) -> None:
    # arrange entries so that each key is at most those of its two children
    for place in range(count // 2 - 1, -1, -1):
        _sift(item, key, place, count)


@njit(interpreted=False)
def forward(jobs: Jobs, u: Floats, arcs: Arcs, best: Floats, before: Any, begin: int, end: int) -> None:
    """Compute best[k], the cheapest path whose last arc is k, and ``before``, its previous arc.

    It extends the paths to junctions ``begin`` <= g < ``end``; those to ``begin`` must be known. The best predecessor is
    the first one in order of cost that the arc may follow. The loop takes one predecessor after another from a heap, and
    tries it for all arcs that have none yet.

    Parameters
    ----------
    jobs
        The jobs.
    u
        Multipliers, f64[n].
    arcs
        Arcs that are left.
    best
        Output, f64[k].
    before
        Output, i32[k]; -1 at the beginning of a path.
    begin
        First junction that is extended.
    end
        End of the junctions, exclusive.
    """
    n = jobs.length.size
    heap, key, after = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64)
    if begin == 0:
        best[:] = NOTHING
        for q in range(next_arcs(arcs, 0, after)):
            k = after[q]
            best[k], before[k] = cost_of(arcs.job[k], arcs.time[arcs.origin[k]], jobs) - u[arcs.job[k]], -1
    for g in range(max(begin, 1), end):
        count = 0
        for q in range(arcs.ended[g], arcs.ended[g + 1]):
            f = arcs.ending[q]
            if best[f] < NOTHING:
                heap[count], key[count] = f, best[f]
                count += 1
        if count == 0:
            continue
        left = next_arcs(arcs, g, after)
        _heap(heap, key, count)
        while left and count:
            f, here, size, left = heap[0], key[0], left, 0
            count -= 1
            heap[0], key[0] = heap[count], key[count]
            _sift(heap, key, 0, count)
            i = arcs.job[f]
            a = arcs.time[g] - jobs.length[i]
            for q in range(size):
                k = after[q]
                j, s = arcs.job[k], arcs.time[arcs.origin[k]]
                if i == j or not may_follow(i, a, j, s, jobs):
                    after[left] = k
                    left += 1
                    continue
                value = here + cost_of(j, s, jobs) - u[j]
                if value < best[k]:
                    best[k], before[k] = value, f


@njit(interpreted=False)
def backward(jobs: Jobs, u: Floats, arcs: Arcs, ends: Bools, rest: Floats, begin: int, end: int) -> None:
    """Compute rest[k], the cheapest continuation after arc k, for arcs that end at junctions ``begin`` <= g < ``end``.

    Those that end from ``end`` on must be known.

    Parameters
    ----------
    jobs
        The jobs.
    u
        Multipliers, f64[n].
    arcs
        Arcs that are left.
    ends
        Junctions at which paths may end, bool[junctions].
    rest
        Output, f64[k].
    begin
        First junction that is computed.
    end
        End of the junctions, exclusive.
    """
    n = jobs.length.size
    heap, key, after, waiting = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for g in range(end - 1, max(begin, 1) - 1, -1):
        left = 0
        for q in range(arcs.ended[g], arcs.ended[g + 1]):
            f = arcs.ending[q]
            rest[f] = 0.0 if ends[g] else NOTHING
            waiting[left] = f
            left += 1
        if left == 0:
            continue
        count = 0
        for q in range(next_arcs(arcs, g, after)):
            k = after[q]
            j = arcs.job[k]
            if rest[k] < NOTHING:
                heap[count], key[count] = k, rest[k] + cost_of(j, arcs.time[arcs.origin[k]], jobs) - u[j]
                count += 1
        _heap(heap, key, count)
        while left and count:
            k, here, size, left = heap[0], key[0], left, 0
            count -= 1
            heap[0], key[0] = heap[count], key[count]
            _sift(heap, key, 0, count)
            j, s = arcs.job[k], arcs.time[arcs.origin[k]]
            for q in range(size):
                f = waiting[q]
                if here >= rest[f]:
                    continue
                i = arcs.job[f]
                if i != j and may_follow(i, arcs.time[g] - jobs.length[i], j, s, jobs):
                    rest[f] = here
                else:
                    waiting[left] = f
                    left += 1


@njit(interpreted=False)
def _trace(arcs: Arcs, ends: Bools, best: Floats, before: Any, visits: Floats, starts: Ints) -> float:
    """Compute visits and last starts of the jobs on the cheapest path; return its value."""
    value, last = NOTHING, -1
    visits[:] = 0
    starts[:] = -1
    for k in range(best.size):
        if best[k] < value and ends[arcs.target[k]]:
            value, last = best[k], k
    while last >= 0:
        j = arcs.job[last]
        visits[j] += 1
        starts[j] = max(starts[j], arcs.time[arcs.origin[last]])
        last = before[last]
    return value


@njit(forceinline=True)
def _state_after(q: int, j: int, b: int, s: int, before: Bools, earliest: Ints, latest: Ints) -> int:
    """Return whether q has been visited (1) or not (0) after j, which starts at s with it visited b times; -1: impossible."""
    if s < earliest[j] or s > latest[j]:
        return -1
    if j == q:
        return 1 if b == 0 else -1
    if before[j, q] if b else before[q, j]:
        return -1
    return b


@njit(interpreted=False)
def _counted(q: int, arcs: Arcs, ends: Bools, before: Bools, earliest: Ints, latest: Ints) -> Any:
    """Return (job, origin, target, time) of the paths that visit job q once, with separate junctions before and after it.

    Only paths count on which jobs are before and after q as they must, and start as early and as late as they may.
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


class PairPaths:
    """Paths by the rule of pairs over the arcs that are left, and the cheapest under multipliers.

    `optsched.deadline.Late` is raised when the ``deadline`` has passed. The arcs are those ``alive`` bool[n, H + 1] at the
    beginning. If the machine may be ``idle`` a path may end at any time, otherwise at the horizon H.
    """

    def __init__(self, jobs: Jobs, alive: Bools, idle: bool, deadline: Deadline) -> None:
        self.jobs, self.idle, self.deadline, self.horizon = jobs, idle, deadline, alive.shape[1] - 1
        start, job = np.nonzero(alive.T)
        self.visits, self.starts = np.zeros(alive.shape[0]), np.zeros(alive.shape[0], dtype=np.int64)
        at = np.arange(self.horizon + 1)
        self._keep(job.astype(np.int32), start.astype(np.int32), (start + jobs.length[job]).astype(np.int32), at)

    def _keep(self, job: Any, origin: Any, target: Any, time: Ints) -> None:
        self.arcs = arcs_of(self.jobs, job, origin, target, time)
        self.ends = (self.arcs.time == self.horizon) | self.idle
        self.best, self.rest, self._before = np.empty(job.size), np.empty(job.size), np.empty(job.size, dtype=np.int32)

    @property
    def size(self) -> int:
        """Number of arcs."""
        return int(self.arcs.job.size)

    def _slots(self) -> list[tuple[int, int]]:
        size = self.ends.size
        length = max(ARCS * size // (self.size + 1), 1)
        return [(begin, min(begin + length, size)) for begin in range(0, size, length)]

    def cheapest(self, u: Floats) -> float:
        """Return the value of the cheapest path without sum u.

        ``visits`` f64[n] and (last) ``starts`` i64[n] are then those on it.

        Parameters
        ----------
        u
            Multipliers, f64[n].
        """
        for begin, end in self._slots():
            self.deadline.check()
            forward(self.jobs, u, self.arcs, self.best, self._before, begin, end)
        return _trace(self.arcs, self.ends, self.best, self._before, self.visits, self.starts)

    def reduce(self, u: Floats, cutoff: float) -> None:
        """Remove arcs that are on no path of value <= cutoff; call `cheapest` at the same u before.

        Parameters
        ----------
        u
            Multipliers, f64[n].
        cutoff
            Largest value of a path, without sum u.
        """
        for begin, end in reversed(self._slots()):
            self.deadline.check()
            backward(self.jobs, u, self.arcs, self.ends, self.rest, begin, end)
        kept = self.best + self.rest <= cutoff
        best, rest, arcs = self.best[kept], self.rest[kept], self.arcs
        self._keep(arcs.job[kept], arcs.origin[kept], arcs.target[kept], arcs.time)
        self.best, self.rest = best, rest

    def count(self, job: int, first: Ints, last: Ints) -> None:
        """Remove paths that do not visit the job exactly once: its visits become part of the state.

        The machine must never wait.

        Parameters
        ----------
        job
            Number of the job.
        first
            Earliest start of every job, i64[n].
        last
            Latest start of every job, i64[n].
        """
        self._keep(*_counted(job, self.arcs, self.ends, self.jobs.before, first, last))

    def doubled(self) -> Floats:
        """Return for each job the share of arcs that a count of it may double, f64[n]: those between its starts."""
        return share_between(self.arcs.job, self.arcs.time[self.arcs.origin], self.jobs.length)

    def alive(self) -> Bools:
        """Return the starts that are left, bool[n, H + 1]."""
        alive = np.zeros((self.visits.size, self.horizon + 1), dtype=bool)
        alive[self.arcs.job, self.arcs.time[self.arcs.origin]] = True
        return alive


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
