"""Gavel's round mechanism: from shares of time to the jobs of the next round, with their types and devices.

priority_mr = X_mr / f_mr, f_mr = time of job m on type r since the last reset / time of all jobs on r since then. At a
reset every job starts with half a round on every type. Type by type, jobs take GPUs in decreasing order of (priority,
deficit, X); a job that does not fit is passed over. Then larger gangs are given their devices first; a job that ran on
the type keeps its devices if they are free. All state is in arrays over the jobs of the instance; the loops are
compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.policies.ties import leading_of
from optsched.problem.arrays import Floats, Ints

FIRST = 1e9  # priority X_mr * FIRST of a job without a recorded second: before all others


class ServiceAccount:
    """Service that every job received since the last reset.

    Parameters
    ----------
    n
        Number of jobs of the instance.
    types
        Number of GPU types, T.
    length
        Length of a round, in seconds.
    """

    def __init__(self, n: int, types: int, length: float) -> None:
        self.length = length
        self.share = np.zeros((n, types))  # X
        self.received = np.zeros((n, types))  # seconds, including the half round at the start
        self.total = np.zeros(types)
        self.deficit = np.zeros((n, types))
        self.settled = np.zeros(n, dtype=np.bool_)  # it has been present at a reset

    def arrive(self, job: int) -> None:
        """Add a new job, without a share until the next reset.

        Parameters
        ----------
        job
            Number of the job.
        """
        self.received[job] = self.length / 2

    def record(self, jobs: Ints, types: Ints, seconds: Floats) -> None:
        """Record the time for which jobs ran; a job counts once, whatever the size of its gang.

        A type below 0 means several types. Such a run is not recorded: there is no share to compare it with.

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[k], no job twice.
        types
            Type on which each ran, i64[k].
        seconds
            Time for which each ran, f64[k].
        """
        one = types >= 0
        jobs, types, seconds = jobs[one], types[one], seconds[one]
        self.received[jobs, types] += seconds
        np.add.at(self.total, types, seconds)

    def reset(self, active: Ints, share: Floats, elapsed: float) -> None:
        """Settle the deficits under the old shares and begin with new ones.

        Parameters
        ----------
        active
            Numbers of the active jobs, i64[m].
        share
            New shares X, f64[m, T].
        elapsed
            Seconds since the last reset.
        """
        owed = self.share[active] * elapsed - (self.received[active] - self.length / 2)
        self.deficit[active] += owed
        self.received[active] = self.length / 2
        self.total[:] = active.size * self.length / 2
        self.share[:] = 0.0
        self.share[active] = share
        self.settled[active] = True

    def selection(self, active: Ints, rate: Floats, gang: Ints, capacity: Ints, order: Ints) -> Ints:
        """Return the type on which every active job runs in the next round, i64[m]; -1: it does not run.

        Parameters
        ----------
        active
            Numbers of the active jobs, i64[m].
        rate
            Rates f64[m, T]; 0 if a job may not run.
        gang
            GPUs of each job, i64[m].
        capacity
            GPUs of each type, i64[T].
        order
            Types in the order in which they are served, i64[T].
        """
        book = (self.share, self.received, self.total, self.deficit)
        types: Ints = choose(active, *book, rate, gang, capacity, order)
        return types


@njit
def choose(
    active: Any, share: Any, received: Any, total: Any, deficit: Any, rate: Any, gang: Any, capacity: Any, order: Any
) -> Any:
    """Choose the jobs of a round, compiled; see `ServiceAccount.selection`.

    O(T (m + k log m)) for k jobs that are looked at before a type is full: the other jobs stay unsorted in a heap.

    Parameters
    ----------
    active
        Numbers of the active jobs, i64[m].
    share
        Shares X of all jobs, f64[n, T].
    received
        Seconds that all jobs received since the last reset, f64[n, T].
    total
        Seconds of all jobs on each type since the last reset, f64[T].
    deficit
        Seconds that all jobs are behind their earlier shares, f64[n, T].
    rate
        Rates f64[m, T]; 0 if a job may not run.
    gang
        GPUs of each job, i64[m].
    capacity
        GPUs of each type, i64[T].
    order
        Types in the order in which they are served, i64[T].

    Returns
    -------
    i64[m]
        Type of each job; -1: it does not run.
    """
    chosen, queue = np.full(active.size, -1, np.int64), np.empty(active.size, np.int64)
    keys = np.empty((active.size, 3))
    for t in order:
        left, size = capacity[t], 0
        for i in range(active.size):
            j = active[i]
            if chosen[i] >= 0 or rate[i, t] <= 0 or gang[i] > left:
                continue
            x = share[j, t]
            urgency = priority(x, received[j, t], total[t])
            keys[i, 0], keys[i, 1], keys[i, 2] = leading_of(urgency), leading_of(deficit[j, t]), leading_of(x)
            queue[size] = i
            size += 1
        for place in range(size // 2 - 1, -1, -1):
            sink(queue, size, place, keys)
        while size > 0 and left > 0:
            i = queue[0]
            if gang[i] <= left:
                chosen[i] = t
                left -= gang[i]
            size -= 1
            queue[0] = queue[size]
            sink(queue, size, 0, keys)
    return chosen


@njit
def priority(share: float, received: float, total: float) -> float:
    """Return the priority X/f of a job on a type; 0 without a share.

    Parameters
    ----------
    share
        Share X of the job.
    received
        Seconds that it received on the type since the last reset.
    total
        Seconds of all jobs on the type since the last reset.
    """
    if share <= 0:
        return 0.0
    return share * total / received if received > 0 and total > 0 else share * FIRST


@njit
def sink(queue: Any, size: int, place: int, keys: Any) -> None:
    """Restore the heap below a place: largest keys first, then in the order of jobs.

    Parameters
    ----------
    queue
        Heap of positions of jobs, i64[]; changed in place.
    size
        Number of entries of the heap.
    place
        Entry that may be out of order.
    keys
        Priority, deficit and share of each job, f64[m, 3].
    """
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and goes_first(queue[child + 1], queue[child], keys):
            child += 1
        if not goes_first(queue[child], queue[place], keys):
            break
        queue[place], queue[child] = queue[child], queue[place]
        place = child


@njit
def goes_first(i: int, k: int, keys: Any) -> bool:
    """Return True if job i is served before job k.

    Parameters
    ----------
    i, k
        Positions of two jobs.
    keys
        Priority, deficit and share of each job, f64[m, 3].
    """
    for c in range(3):
        if keys[i, c] != keys[k, c]:
            return bool(keys[i, c] > keys[k, c])
    return i < k


class RoundDevices:
    """Nodes of the jobs of a round; the gangs of one round lie in flat arrays.

    Parameters
    ----------
    n
        Number of jobs of the instance.
    pool
        Type of every node, i64[N].
    size
        GPUs of every node, i64[N].
    """

    def __init__(self, n: int, pool: Ints, size: Ints) -> None:
        self._pool, self._size = pool, size
        self.free = size.copy()
        self._row = np.full(n, -1, dtype=np.int64)  # of a job among the entries of the last round
        self._jobs = np.zeros(0, dtype=np.int64)
        self._first = np.zeros(1, dtype=np.int64)
        self._node = np.zeros(0, dtype=np.int64)
        self._count = np.zeros(0, dtype=np.int64)

    def give(self, jobs: Ints, chosen: Ints, gang: Ints) -> tuple[Ints, Ints]:
        """Give devices to the jobs of a round, larger gangs first.

        A gang that moves goes to the first node with GPUs for all of it; if there is none, server by server. A job of
        the last round has at most the devices that it is given now. Afterwards ``free`` holds the free GPUs of every
        node.

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[k].
        chosen
            Type of each, i64[k].
        gang
            GPUs of each, i64[k].

        Returns
        -------
        tuple
            Jobs that keep their devices, and the others, larger gangs first.
        """
        order = np.argsort(-gang, kind="stable")
        jobs = jobs[order]
        self.free = self._size.copy()
        held = (self._row[jobs], self._first, self._node, self._count)
        stays, *gangs = give(gang[order], chosen[order], self._pool, self.free, *held, int(gang.sum()))
        self._row[self._jobs] = -1
        self._row[jobs] = np.arange(jobs.size)
        self._jobs, (self._first, self._node, self._count) = jobs, gangs
        return jobs[stays], jobs[~stays]

    def leave(self, jobs: Ints) -> None:
        """Record that jobs have no devices to keep.

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[k].
        """
        self._row[jobs] = -1

    def places(self, jobs: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the places of jobs that have been given devices.

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[k].

        Returns
        -------
        tuple
            First entry of each job i64[k + 1], node i64[] and GPUs i64[] of each entry.
        """
        rows = self._row[jobs]
        begin = self._first[rows]
        sizes = self._first[rows + 1] - begin
        first = np.zeros(jobs.size + 1, dtype=np.int64)
        np.cumsum(sizes, out=first[1:])
        entry = np.repeat(begin - first[:-1], sizes) + np.arange(first[-1])
        return first, self._node[entry], self._count[entry]


@njit
def give(
    gang: Any, chosen: Any, pool: Any, free: Any, row: Any, held_first: Any, held_node: Any, held_count: Any, room: int
) -> Any:
    """Give devices, by falling size of gang; in each size, jobs that keep theirs come first.

    Parameters
    ----------
    gang
        GPUs of each job, i64[m], decreasing.
    chosen
        Type of each job, i64[m].
    pool
        Type of every node, i64[N].
    free
        Free GPUs of every node, i64[N]; changed in place.
    row
        Row of each job among the gangs of the last round, i64[m]; -1: none.
    held_first, held_node, held_count
        Gangs of the last round: first entry of each row, node and GPUs of each entry.
    room
        GPUs of all jobs together.

    Returns
    -------
    tuple
        Jobs that keep their devices bool[m], first entry of each job i64[m + 1], node and GPUs of each entry i64[room].
    """
    stays, first = np.zeros(gang.size, np.bool_), np.zeros(gang.size + 1, np.int64)
    node, count = np.zeros(room, np.int64), np.zeros(room, np.int64)
    start = np.zeros(pool.max() + 1, np.int64)  # the nodes of a pool before this one are full
    begin, entry = 0, 0
    while begin < gang.size:
        end = begin
        while end < gang.size and gang[end] == gang[begin]:
            end += 1
        for i in range(begin, end):
            stays[i] = row[i] >= 0
            if stays[i]:
                for e in range(held_first[row[i]], held_first[row[i] + 1]):
                    h = held_node[e]
                    stays[i] = stays[i] and pool[h] == chosen[i] and free[h] >= held_count[e]
            if stays[i]:
                for e in range(held_first[row[i]], held_first[row[i] + 1]):
                    free[held_node[e]] -= held_count[e]
        for i in range(begin, end):
            if stays[i]:
                for e in range(held_first[row[i]], held_first[row[i] + 1]):
                    node[entry], count[entry] = held_node[e], held_count[e]
                    entry += 1
            else:
                entry = spread_out(gang[i], chosen[i], pool, free, start, node, count, entry)
            first[i + 1] = entry
        begin = end
    return stays, first, node, count


@njit
def spread_out(gang: int, t: int, pool: Any, free: Any, start: Any, node: Any, count: Any, entry: int) -> int:
    """Write GPUs of one type for one gang and return the next free entry.

    Parameters
    ----------
    gang
        GPUs of the gang.
    t
        GPU type.
    pool
        Type of every node, i64[N].
    free
        Free GPUs of every node, i64[N]; changed in place.
    start
        Node of each type before which all nodes are full, i64[T]; changed in place.
    node, count
        Entries to be written, i64[].
    entry
        First entry to be written.
    """
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
