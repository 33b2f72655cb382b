"""Gavel's round mechanism: from shares of time to who runs in the next round, on which type, on which devices.

priority_mr = X_mr / f_mr, f_mr = time of job m on type r since the last reset / time of all jobs on r since then; a reset
lets every job start with half a round everywhere. Type by type, jobs in decreasing (priority, deficit, X) take GPUs; one
that does not fit is passed over. Then larger gangs are given their devices first; a job that ran on the type keeps its
devices if they are free. All state is in arrays over the jobs of the instance; the loops are compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints

MORE = 4  # times as many jobs as GPUs are looked at first: some run elsewhere already, some do not fit
FIRST = 1e9  # priority X_mr * FIRST of a job without a recorded second: before all others


class RoundBook:
    """Who received what since the last reset. n jobs, T types, rounds of ``length`` seconds."""

    def __init__(self, n: int, types: int, length: float) -> None:
        self.length = length
        self.share = np.zeros((n, types))  # X
        self.received = np.zeros((n, types))  # seconds, and the half round of the start
        self.total = np.zeros(types)
        self.deficit = np.zeros((n, types))

    def arrive(self, job: int) -> None:
        """A new job: without a share until the next reset."""
        self.received[job] = self.length / 2

    def record(self, jobs: Ints, types: Ints, seconds: Floats) -> None:
        """Job ``jobs[i]`` ran on ``types[i]``, one after the other; it counts once, whatever its gang."""
        record(jobs, types, seconds, self.received, self.total)

    def reset(self, active: Ints, share: Floats, elapsed: float) -> None:
        """``elapsed`` seconds after the last one: settle deficits under the old shares, begin with new ones f64[m, T]."""
        owed = self.share[active] * elapsed - (self.received[active] - self.length / 2)
        self.deficit[active] += owed
        self.received[active] = self.length / 2
        self.total[:] = active.size * self.length / 2
        self.share[:] = 0.0
        self.share[active] = share

    def priorities(self, active: Ints) -> Floats:
        """X/f, f64[m, T]; 0 without a share."""
        found: Floats = priorities(active, self.share, self.received, self.total)
        return found

    def selection(self, active: Ints, rate: Floats, gang: Ints, capacity: Ints, order: Ints, strict: bool) -> Ints:
        """The type on which every active job runs in the next round, i64[m], or -1.

        ``rate`` f64[m, T], 0 where a job may not run; ``order`` of the types; ``strict``: no share, no run.
        """
        priority = leading(self.priorities(active))
        keys = -leading(self.share[active]), -leading(self.deficit[active]), -priority
        chosen = np.full(active.size, -1, dtype=np.int64)
        for t in order.tolist():
            urgency, left = np.ascontiguousarray(priority[:, t]), int(capacity[t])
            for some in likely(urgency, left):
                first = some[np.lexsort([key[some, t] for key in keys])]
                left = take(chosen, first, urgency, rate, gang, left, t, strict)
                if left == 0:
                    break
        return chosen


@njit
def record(jobs: Any, types: Any, seconds: Any, received: Any, total: Any) -> None:
    """See `RoundBook.record`."""
    for i in range(jobs.size):
        received[jobs[i], types[i]] += seconds[i]
        total[types[i]] += seconds[i]


@njit
def priorities(active: Any, share: Any, received: Any, total: Any) -> Any:
    """See `RoundBook.priorities`."""
    found = np.zeros((active.size, total.size))
    for m in range(active.size):
        for t in range(total.size):
            x, got = share[active[m], t], received[active[m], t]
            if x > 0:
                found[m, t] = x * total[t] / got if got > 0 and total[t] > 0 else x * FIRST
    return found


def likely(urgency: Floats, gpus: int) -> Iterator[Ints]:
    """The jobs in parts, the most urgent part first, so that the many that get nothing need not be sorted."""
    enough = MORE * gpus + MORE
    if urgency.size > 2 * enough:
        least = np.partition(urgency, urgency.size - enough)[urgency.size - enough]
        front = urgency >= least  # all that are equally urgent are in one part
        yield np.flatnonzero(front)
        yield np.flatnonzero(~front)
    else:
        yield np.arange(urgency.size)


@njit
def take(chosen: Any, first: Any, urgency: Any, rate: Any, gang: Any, left: int, t: int, strict: bool) -> int:
    """Let jobs in the order ``first`` take the ``left`` GPUs of type t; how many are left over."""
    for m in first:
        if left == 0:
            break
        if chosen[m] < 0 and rate[m, t] > 0 and gang[m] <= left and (urgency[m] > 0 or not strict):
            chosen[m] = t
            left -= gang[m]
    return left


class RoundDevices:
    """Which nodes the jobs of a round hold. N nodes; the gangs of one round lie in flat arrays."""

    def __init__(self, n: int, pool: Ints, size: Ints) -> None:
        self._pool, self._size = pool, size
        self.free = size.copy()
        self._row = np.full(n, -1, dtype=np.int64)  # of a job among the entries of the last round
        self._jobs = np.zeros(0, dtype=np.int64)
        self._first = np.zeros(1, dtype=np.int64)
        self._node = np.zeros(0, dtype=np.int64)
        self._count = np.zeros(0, dtype=np.int64)

    def give(self, jobs: Ints, chosen: Ints, gang: Ints) -> tuple[Ints, Ints]:
        """Devices for ``jobs`` on the types ``chosen``, larger gangs first: (those that keep theirs, the others), by order.

        A gang that moves goes to the first node that has room for all of it, else server by server. No job of the last
        round has more devices than it is given here; ``free`` says what is left of every node.
        """
        order = np.argsort(-gang, kind="stable")
        jobs = jobs[order]
        room = int(gang.sum())
        first, kept = np.zeros(jobs.size + 1, dtype=np.int64), np.zeros(jobs.size, dtype=np.bool_)
        node, count = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
        self.free = self._size.copy()
        held = (self._row[jobs], self._first, self._node, self._count)
        give(gang[order], chosen[order], self._pool, self.free, *held, first, node, count, kept)
        self._row[self._jobs] = -1
        self._row[jobs] = np.arange(jobs.size)
        self._jobs, self._first, self._node, self._count = jobs, first, node, count
        return jobs[kept], jobs[~kept]

    def leave(self, jobs: list[int]) -> None:
        """These jobs have no devices to keep."""
        self._row[jobs] = -1

    def of(self, jobs: Ints) -> list[tuple[tuple[int, int], ...]]:
        """(node, GPUs) of each of these jobs, which have been given devices."""
        held = list(zip(self._node.tolist(), self._count.tolist(), strict=True))
        rows = self._row[jobs]
        spans = zip(self._first[rows].tolist(), self._first[rows + 1].tolist(), strict=True)
        return [tuple(held[begin:end]) for begin, end in spans]


@njit
def give(
    gang: Any,
    chosen: Any,
    pool: Any,
    free: Any,
    row: Any,
    held_first: Any,
    held_node: Any,
    held_count: Any,
    first: Any,
    node: Any,
    count: Any,
    kept: Any,
) -> None:
    """Jobs of one gang size after the other, largest first: those that keep their devices, then the others."""
    begin, entry = 0, 0
    start = np.zeros(pool.max() + 1, dtype=np.int64)  # nodes of a pool before this one are full
    while begin < gang.size:
        end = begin
        while end < gang.size and gang[end] == gang[begin]:
            end += 1
        for i in range(begin, end):
            kept[i] = row[i] >= 0
            if kept[i]:
                for e in range(held_first[row[i]], held_first[row[i] + 1]):
                    h = held_node[e]
                    kept[i] = kept[i] and pool[h] == chosen[i] and free[h] >= held_count[e]
            if kept[i]:
                for e in range(held_first[row[i]], held_first[row[i] + 1]):
                    free[held_node[e]] -= held_count[e]
        for i in range(begin, end):
            if kept[i]:
                for e in range(held_first[row[i]], held_first[row[i] + 1]):
                    node[entry], count[entry] = held_node[e], held_count[e]
                    entry += 1
            else:
                entry = spread_out(gang[i], chosen[i], pool, free, start, node, count, entry)
            first[i + 1] = entry
        begin = end


@njit
def spread_out(gang: int, t: int, pool: Any, free: Any, start: Any, node: Any, count: Any, entry: int) -> int:
    """GPUs of type t for one gang, written from ``entry`` on; where the next entry goes."""
    while start[t] < pool.size and (pool[start[t]] != t or free[start[t]] == 0):
        start[t] += 1
    begin = start[t]
    for h in range(begin, pool.size):
        if pool[h] == t and free[h] >= gang:
            begin = h
            break
    for h in range(begin, pool.size):
        if gang == 0:
            break
        if pool[h] == t and free[h] > 0:
            part = min(gang, free[h])
            node[entry], count[entry] = h, part
            entry += 1
            free[h] -= part
            gang -= part
    return entry
