"""Shortest paths by the rule of pairs over a list of arcs, compiled.

Arcs (`optsched.solvers.sequence_arcs`) are in order of the junctions at which they start, and of jobs, so that a pass
through time reads and writes them one after another, and a pass costs as much as there are arcs left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.deadline import Deadline
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.sequence_arcs import Arcs, arcs_of, count_job, next_arcs, share_between
from optsched.solvers.sequence_paths import NOTHING, Jobs, cost_of, may_follow

ARCS = 300_000  # arcs of a shortest path between two checks of the time: less than a tenth of a second


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
    heap, key, after, waiting = (
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
    )
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
        self._keep(*count_job(job, self.arcs, self.ends, self.jobs.before, first, last))

    def doubled(self) -> Floats:
        """Return for each job the share of arcs that a count of it may double, f64[n]: those between its starts."""
        return share_between(self.arcs.job, self.arcs.time[self.arcs.origin], self.jobs.length)

    def alive(self) -> Bools:
        """Return the starts that are left, bool[n, H + 1]."""
        alive = np.zeros((self.visits.size, self.horizon + 1), dtype=bool)
        alive[self.arcs.job, self.arcs.time[self.arcs.origin]] = True
        return alive
