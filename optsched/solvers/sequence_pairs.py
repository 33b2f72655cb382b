"""Shortest paths by the rule of pairs over a list of arcs, compiled.

An arc is a job with its start. Arcs are in order of start and job, so that a pass through time reads and writes them one
after another, and a pass costs as much as there are arcs left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.deadline import Deadline
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.sequence_paths import NOTHING, Jobs, may_follow, nearest

ARCS = 300_000  # arcs of a shortest path between two checks of the time: less than a tenth of a second


class Arcs(NamedTuple):
    """Arcs ``job``, ``start`` i32[k] in order of start and job, and their ``cost`` f64[k].

    Arcs ``first[t]`` to ``first[t + 1]`` start at t; ``ending[ended[t]]`` to ``ending[ended[t + 1]]``, i32[k], end at t.
    Both offsets are i64[H + 2]. ``waiting`` i32 are the arcs that start at a release later than 0: the machine may wait
    for them.
    """

    job: Any
    start: Any
    cost: Floats
    first: Ints
    ending: Any
    ended: Ints
    waiting: Any


@njit(interpreted=False)
def _arrange(jobs: Jobs, arcs: Arcs) -> None:
    """Compute cost, first, ending and ended from job and start."""
    job, start, cost, first, ending, ended, _ = arcs
    first[:] = 0
    ended[:] = 0
    for k in range(job.size):
        cost[k] = jobs.cost[job[k], start[k]]
        first[start[k] + 1] += 1
        ended[start[k] + jobs.length[job[k]] + 1] += 1
    for t in range(first.size - 1):
        first[t + 1] += first[t]
        ended[t + 1] += ended[t]
    place = ended.copy()
    for k in range(job.size):
        end = start[k] + jobs.length[job[k]]
        ending[place[end]] = k
        place[end] += 1


def arcs_of(jobs: Jobs, job: Any, start: Any, horizon: int) -> Arcs:
    """Return the arcs.

    Parameters
    ----------
    jobs
        The jobs.
    job
        Job of every arc, i32[k].
    start
        Start of every arc, i32[k]; arcs are in order of start and job.
    horizon
        H.
    """
    size = job.size
    waiting = np.flatnonzero((start > 0) & (start == jobs.release[job])).astype(np.int32)
    first, ended = np.empty(horizon + 2, dtype=np.int64), np.empty(horizon + 2, dtype=np.int64)
    arcs = Arcs(job, start, np.empty(size), first, np.empty(size, dtype=np.int32), ended, waiting)
    _arrange(jobs, arcs)
    return arcs


@njit(forceinline=True)
def next_arcs(arcs: Arcs, e: int, after: Ints) -> int:
    """Find the arcs that may follow an arc that ends at e, before any rule; return their number.

    Parameters
    ----------
    arcs
        The arcs.
    e
        Time.
    after
        Output, i64[n].
    """
    count = 0
    for k in range(arcs.first[e], arcs.first[e + 1]):
        after[count] = k
        count += 1
    for k in arcs.waiting:
        if arcs.start[k] > e:
            after[count] = k
            count += 1
    return count


@njit(interpreted=False)
def forward(jobs: Jobs, u: Floats, arcs: Arcs, best: Floats, before: Any, begin: int, end: int) -> None:
    """Compute best[k], the cheapest path whose last arc is k, and ``before``, its previous arc.

    It extends the paths to ``begin`` <= e < ``end``; those to ``begin`` must be known. The best predecessor is the first
    one in order of cost that the arc may follow. The loop takes one predecessor after another and tries it for all arcs
    that have none yet, so that it reads costs that are next to each other.

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
        First time that is extended.
    end
        End of the times, exclusive.
    """
    n = jobs.length.size
    rank, after = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    if begin == 0:
        best[:] = NOTHING
        for q in range(next_arcs(arcs, 0, after)):
            k = after[q]
            best[k], before[k] = arcs.cost[k] - u[arcs.job[k]], -1
    for e in range(max(begin, 1), end):
        count, known = 0, 0
        for q in range(arcs.ended[e], arcs.ended[e + 1]):
            if best[arcs.ending[q]] < NOTHING:
                rank[count] = arcs.ending[q]
                count += 1
        if count == 0:
            continue
        left = next_arcs(arcs, e, after)
        while left and known < count:
            nearest(rank, known, count, best)
            f, size, left = rank[known], left, 0
            i, a, here = arcs.job[f], arcs.start[f], best[f]
            known += 1
            for q in range(size):
                k = after[q]
                j = arcs.job[k]
                if i == j or not may_follow(i, a, j, arcs.start[k], jobs):
                    after[left] = k
                    left += 1
                    continue
                value = here + arcs.cost[k] - u[j]
                if value < best[k]:
                    best[k], before[k] = value, f


@njit(interpreted=False)
def backward(jobs: Jobs, u: Floats, arcs: Arcs, ends: Bools, rest: Floats, begin: int, end: int) -> None:
    """Compute rest[k], the cheapest continuation after arc k, for arcs that end at ``begin`` <= e < ``end``.

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
        Times at which paths may end, bool[H + 1].
    rest
        Output, f64[k].
    begin
        First time that is computed.
    end
        End of the times, exclusive.
    """
    n = jobs.length.size
    rank, after, waiting = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    value = np.empty(n)
    for e in range(end - 1, max(begin, 1) - 1, -1):
        left = 0
        for q in range(arcs.ended[e], arcs.ended[e + 1]):
            f = arcs.ending[q]
            rest[f] = 0.0 if ends[e] else NOTHING
            waiting[left] = f
            left += 1
        if left == 0:
            continue
        count, known = 0, 0
        for q in range(next_arcs(arcs, e, after)):
            k = after[q]
            value[q] = rest[k] + arcs.cost[k] - u[arcs.job[k]]
            if value[q] < NOTHING / 2:
                rank[count] = q
                count += 1
        while left and known < count:
            nearest(rank, known, count, value)
            here, k, size, left = value[rank[known]], after[rank[known]], left, 0
            j, s = arcs.job[k], arcs.start[k]
            known += 1
            for q in range(size):
                f = waiting[q]
                if here >= rest[f]:
                    continue
                if arcs.job[f] != j and may_follow(arcs.job[f], arcs.start[f], j, s, jobs):
                    rest[f] = here
                else:
                    waiting[left] = f
                    left += 1


@njit(interpreted=False)
def _trace(
    jobs: Jobs, arcs: Arcs, ends: Bools, best: Floats, before: Any, visits: Floats, starts: Ints
) -> float:  # fmt: skip
    """Compute visits and last starts of the jobs on the cheapest path; return its value."""
    value, last = NOTHING, -1
    visits[:] = 0
    starts[:] = -1
    for k in range(best.size):
        if best[k] < value and ends[arcs.start[k] + jobs.length[arcs.job[k]]]:
            value, last = best[k], k
    while last >= 0:
        j = arcs.job[last]
        visits[j] += 1
        starts[j] = max(starts[j], arcs.start[last])
        last = before[last]
    return value


class PairPaths:
    """Paths by the rule of pairs over the arcs that are left, and the cheapest under multipliers.

    ``ends`` bool[H + 1] are the times at which paths may end; `optsched.deadline.Late` is raised when the ``deadline`` has
    passed. The arcs are those ``alive`` bool[n, H + 1] at the beginning.
    """

    def __init__(self, jobs: Jobs, alive: Bools, ends: Bools, deadline: Deadline) -> None:
        self.jobs, self.ends, self.deadline = jobs, ends, deadline
        start, job = np.nonzero(alive.T)
        self.visits, self.starts = np.zeros(alive.shape[0]), np.zeros(alive.shape[0], dtype=np.int64)
        self._keep(job.astype(np.int32), start.astype(np.int32))

    def _keep(self, job: Any, start: Any) -> None:
        self.arcs = arcs_of(self.jobs, job, start, self.ends.size - 1)
        self.best, self.rest, self._before = np.empty(job.size), np.empty(job.size), np.empty(job.size, dtype=np.int32)

    def _slots(self) -> list[tuple[int, int]]:
        size, length = self.ends.size, max(ARCS * self.ends.size // (self.arcs.job.size + 1), 1)
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
        return _trace(self.jobs, self.arcs, self.ends, self.best, self._before, self.visits, self.starts)

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
        best, rest = self.best[kept], self.rest[kept]
        self._keep(self.arcs.job[kept], self.arcs.start[kept])
        self.best, self.rest = best, rest

    def alive(self, horizon: int) -> Bools:
        """Return the starts that are left, bool[n, H + 1].

        Parameters
        ----------
        horizon
            H.
        """
        alive = np.zeros((self.visits.size, horizon + 1), dtype=bool)
        alive[self.arcs.job, self.arcs.start] = True
        return alive
