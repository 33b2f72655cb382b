"""Gavel's round mechanism: from shares of time to the jobs of the next round, with their types and devices.

priority_mr = X_mr / f_mr, f_mr = time of job m on type r since the last reset / time of all jobs on r since then. At a
reset every job starts with half a round on every type. Type by type, jobs take GPUs in decreasing order of (priority,
deficit, X); a job that does not fit is passed over. Then larger gangs are given their devices first; a job that ran on
the type keeps its devices if they are free. All state is in arrays over the jobs of the instance; the loops are
compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from optsched.compiled import KERNEL, NESTED, njit, types
from optsched.policies.ties import leading_of
from optsched.policies.unified_gang_deals import sort_stably
from optsched.problem.arrays import Bools, Floats, Ints

FIRST = 1e9  # priority X_mr * FIRST of a job without a recorded second: before all others
SEVERAL, IDLE = -1, -2  # in place of a type: a gang on several types, a job that does not run
NOBODY = -1
MEMBERS, PAUSED, PAUSES, SIDE, ROWS, STOPS, STARTS, ENTRIES = range(8)  # of ``counts``


class RoundBooks(NamedTuple):
    """Everything that `serve` reads and writes about n jobs, T types, N nodes and G GPUs; ``counts`` i64[8].

    f64[n, T]: ``rate`` of the whole gang (0: may not run), ``whole`` seconds of its iterations that fit into a round (0:
    it runs to the end of the round), ``share`` X, ``received`` seconds, including the half round at the start, and
    ``deficit`` seconds behind earlier shares. ``total`` seconds of all jobs f64[T]. ``gang`` i64[n], ``small`` f64[n]
    (its opposite), ``number`` f64[n] of the job. ``settled`` jobs have been present at a reset. ``type`` i64[n] on which
    a job runs. ``capacity`` i64[T], ``pool`` (type), ``size`` and ``free`` i64[N]; the nodes of a type before
    ``begins`` i64[T] are full.

    Of the round: the first ``counts[MEMBERS]`` are ``member``; pauses from ``counts[PAUSED]`` to ``counts[PAUSES]``:
    job ``pause[p]`` stops at ``until[p]``; ``last[0]`` is the time of the last one if no job runs to the end of the
    round, else nan. ``row`` i64[n] of a job in the ``holder`` array (-1: none); holder r has
    entries ``first[side, r]`` to ``first[side, r + 1]`` of ``node`` and ``held``, one side a round. Scratch: ``chosen``
    type, ``queue`` and ``keys`` by position, ``wanted`` type by job, ``stays``, ``running``, ``sorted``, ``ending``.
    Moves: ``stop``; ``start`` on entries ``on`` to the next of ``start_node`` and ``start_gpus``.
    """

    counts: Ints
    rate: Floats
    whole: Floats
    share: Floats
    received: Floats
    deficit: Floats
    total: Floats
    gang: Ints
    small: Floats
    number: Floats
    settled: Bools
    type: Ints
    capacity: Ints
    pool: Ints
    size: Ints
    free: Ints
    begins: Ints
    member: Ints
    pause: Ints
    until: Floats
    last: Floats
    row: Ints
    holder: Ints
    first: Ints
    node: Ints
    held: Ints
    chosen: Ints
    queue: Ints
    keys: Floats
    wanted: Ints
    stays: Bools
    running: Ints
    sorted: Ints
    ending: Floats
    stop: Ints
    start: Ints
    on: Ints
    start_node: Ints
    start_gpus: Ints


def round_books(n: int, pool: Ints, size: Ints, capacity: Ints) -> RoundBooks:
    """Return books of jobs that have not arrived.

    Parameters
    ----------
    n
        Number of jobs of the instance.
    pool
        Type of every node, i64[N].
    size
        GPUs of every node, i64[N].
    capacity
        GPUs of every type, i64[T].
    """
    count, total, nodes = capacity.size, int(size.sum()), pool.size

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    rate, whole, share, received, deficit = np.zeros((5, n, count))
    gang, member, pause, chosen, queue, wanted, running, scratch, stop = ints(9, n)
    return RoundBooks(
        counts=ints(8), rate=rate, whole=whole, share=share, received=received, deficit=deficit, total=np.zeros(count),
        gang=gang, small=np.zeros(n), number=np.arange(n, dtype=np.float64), settled=np.zeros(n, dtype=bool),
        type=np.full(n, IDLE), capacity=capacity.astype(np.int64), pool=pool.astype(np.int64),
        size=size.astype(np.int64), free=ints(nodes), begins=ints(count), member=member, pause=pause, until=np.zeros(n),
        last=np.full(1, np.nan),
        row=np.full(n, NOBODY), holder=ints(total), first=ints(2, total + 1), node=ints(2, total), held=ints(2, total),
        chosen=chosen, queue=queue, keys=np.zeros((n, 3)), wanted=wanted, stays=np.zeros(total, dtype=bool),
        running=running, sorted=scratch, ending=np.zeros(n), stop=stop, start=ints(total), on=ints(total + 1),
        start_node=ints(total), start_gpus=ints(total),
    )  # fmt: skip


def reset(b: RoundBooks, active: Ints, share: Floats, elapsed: float, length: float) -> None:
    """Settle the deficits under the old shares and begin with new ones.

    Parameters
    ----------
    b
        The books.
    active
        Numbers of the active jobs, i64[m].
    share
        New shares X, f64[m, T].
    elapsed
        Seconds since the last reset.
    length
        Length of a round, in seconds.
    """
    owed = b.share[active] * elapsed - (b.received[active] - length / 2)
    b.deficit[active] += owed
    b.received[active] = length / 2
    b.total[:] = active.size * length / 2
    b.share[:] = 0.0
    b.share[active] = share
    b.settled[active] = True


_ONE = np.ones(1, dtype=np.int64)
_BOOKS = numba.typeof(round_books(1, np.zeros(1, dtype=np.int64), _ONE, _ONE))
_I, _F = types.int64, types.float64


# --- what has run -----------------------------------------------------------------------------------------------------


@njit(**NESTED)
def record(b: RoundBooks, j: int, seconds: float) -> None:
    """Record the time for which a job ran; a job counts once, whatever the size of its gang.

    A run on several types is not recorded: there is no share to compare it with.

    Parameters
    ----------
    b
        The books.
    j
        Number of the job.
    seconds
        Time for which it ran.
    """
    t = b.type[j]
    if t >= 0:
        b.received[j, t] += seconds
        b.total[t] += seconds


@njit(**NESTED)
def _leave(b: RoundBooks, j: int, seconds: float) -> None:
    record(b, j, seconds)
    b.type[j], b.row[j] = IDLE, NOBODY


@njit(**NESTED)
def _note_last_pause(b: RoundBooks, running: int) -> None:
    # When does the round end if no job runs to its end? nan: one does, or nobody runs.
    pausing = 0
    b.last[0] = np.nan
    if running <= b.counts[PAUSES] - b.counts[PAUSED]:
        for p in range(b.counts[PAUSED], b.counts[PAUSES]):
            if b.type[b.pause[p]] != IDLE:
                pausing += 1
                b.last[0] = b.until[p]
    if pausing != running:
        b.last[0] = np.nan


@njit(signature=_I(_BOOKS, _I[::1], _F, _F), **KERNEL)
def advance(b: RoundBooks, ended: Ints, began: float, now: float) -> int:
    """Record the runs that have ended, by a completion or a pause, and return the number of jobs that run.

    Parameters
    ----------
    b
        The books.
    ended
        Jobs that completed now, i64[k].
    began
        Beginning of the round, in seconds.
    now
        Time in seconds.
    """
    for j in ended:
        _leave(b, j, now - began)
    while b.counts[PAUSED] < b.counts[PAUSES] and b.until[b.counts[PAUSED]] <= now:
        j = b.pause[b.counts[PAUSED]]
        if b.type[j] != IDLE:
            _leave(b, j, b.until[b.counts[PAUSED]] - began)
        b.counts[PAUSED] += 1
    running = 0
    for i in range(b.counts[MEMBERS]):
        running += b.type[b.member[i]] != IDLE
    _note_last_pause(b, running)
    return running


# --- who runs ---------------------------------------------------------------------------------------------------------


@njit(**NESTED)
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


@njit(**NESTED)
def _goes_first(b: RoundBooks, i: int, k: int) -> bool:
    # Is the job in position i served before that in position k?
    for c in range(3):
        if b.keys[i, c] != b.keys[k, c]:
            return bool(b.keys[i, c] > b.keys[k, c])
    return i < k


@njit(**NESTED)
def _sink(b: RoundBooks, size: int, place: int) -> None:
    # Restore the heap below a place: largest keys first, then in the order of jobs.
    queue = b.queue
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _goes_first(b, queue[child + 1], queue[child]):
            child += 1
        if not _goes_first(b, queue[child], queue[place]):
            break
        queue[place], queue[child] = queue[child], queue[place]
        place = child


@njit(**NESTED)
def choose(b: RoundBooks, active: Ints, order: Ints) -> None:
    """Choose the jobs of a round: ``chosen`` is the type of each active job; -1: it does not run.

    O(T (m + k log m)) for k jobs that are looked at before a type is full: the other jobs stay unsorted in a heap.

    Parameters
    ----------
    b
        The books.
    active
        Numbers of the active jobs, i64[m].
    order
        Types in the order in which they are served, i64[T].
    """
    chosen = b.chosen
    chosen[: active.size] = NOBODY
    for t in order:
        left, size = b.capacity[t], 0
        for i in range(active.size):
            j = active[i]
            if chosen[i] >= 0 or b.rate[j, t] <= 0 or b.gang[j] > left:
                continue
            x = b.share[j, t]
            urgency = priority(x, b.received[j, t], b.total[t])
            b.keys[i, 0], b.keys[i, 1] = leading_of(urgency), leading_of(b.deficit[j, t])
            b.keys[i, 2] = leading_of(x)
            b.queue[size] = i
            size += 1
        for place in range(size // 2 - 1, -1, -1):
            _sink(b, size, place)
        while size > 0 and left > 0:
            i = b.queue[0]
            if b.gang[active[i]] <= left:
                chosen[i] = t
                left -= b.gang[active[i]]
            size -= 1
            b.queue[0] = b.queue[size]
            _sink(b, size, 0)


# --- on which devices -------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _spread_out(b: RoundBooks, gang: int, t: int, side: int, entry: int) -> int:
    # Write GPUs of one type for one gang, on the first node with GPUs for all of it, otherwise server by server; the next
    # free entry.
    pool, free, start = b.pool, b.free, b.begins
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
            b.node[side, entry], b.held[side, entry] = h, part
            entry += 1
            free[h] -= part
            gang -= part
    return entry


@njit(**NESTED)
def _may_stay(b: RoundBooks, j: int, side: int) -> bool:
    r = b.row[j]
    if r < 0:
        return False
    for e in range(b.first[side, r], b.first[side, r + 1]):
        h = b.node[side, e]
        if b.pool[h] != b.wanted[j] or b.free[h] < b.held[side, e]:
            return False
    return True


@njit(**NESTED)
def give(b: RoundBooks, count: int) -> None:
    """Give devices to the first jobs in ``queue``, by falling size of gang; in each size, jobs that keep theirs come first.

    A job of the last round has at most the devices that it is given now. Afterwards ``free`` holds the free GPUs of
    every node.

    Parameters
    ----------
    b
        The books; ``wanted`` has the type of each job.
    count
        Number of jobs, larger gangs first.
    """
    old, jobs, entry, begin = b.counts[SIDE], b.queue, 0, 0
    new = 1 - old
    for h in range(b.size.size):
        b.free[h] = b.size[h]
    b.begins[:] = 0
    b.first[new, 0] = 0
    while begin < count:
        end = begin
        while end < count and b.gang[jobs[end]] == b.gang[jobs[begin]]:
            end += 1
        for i in range(begin, end):
            b.stays[i] = _may_stay(b, jobs[i], old)
            if b.stays[i]:
                for e in range(b.first[old, b.row[jobs[i]]], b.first[old, b.row[jobs[i]] + 1]):
                    b.free[b.node[old, e]] -= b.held[old, e]
        for i in range(begin, end):
            j = jobs[i]
            if b.stays[i]:
                for e in range(b.first[old, b.row[j]], b.first[old, b.row[j] + 1]):
                    b.node[new, entry], b.held[new, entry] = b.node[old, e], b.held[old, e]
                    entry += 1
            else:
                entry = _spread_out(b, b.gang[j], b.wanted[j], new, entry)
            b.first[new, i + 1] = entry
        begin = end
    for r in range(b.counts[ROWS]):
        b.row[b.holder[r]] = NOBODY
    for i in range(count):
        b.holder[i], b.row[jobs[i]] = jobs[i], i
    b.counts[ROWS], b.counts[SIDE] = count, new


# --- a round ----------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _move(b: RoundBooks, count: int, running: int) -> None:
    # Jobs that run and do not keep their devices stop; jobs of the round that do not keep theirs start.
    stops, starts, entries, side = 0, 0, 0, b.counts[SIDE]
    for i in range(running):
        b.type[b.running[i]] = IDLE
    for i in range(count):
        if b.stays[i]:
            b.type[b.queue[i]] = SEVERAL  # any value other than IDLE
    for i in range(running):
        if b.type[b.running[i]] == IDLE:
            b.stop[stops] = b.running[i]
            stops += 1
    b.on[0] = 0
    for i in range(count):
        j = b.queue[i]
        b.type[j] = b.wanted[j]
        if not b.stays[i]:
            for e in range(b.first[side, i], b.first[side, i + 1]):
                b.start_node[entries], b.start_gpus[entries] = b.node[side, e], b.held[side, e]
                entries += 1
            b.start[starts], b.on[starts + 1] = j, entries
            starts += 1
    b.counts[STOPS], b.counts[STARTS], b.counts[ENTRIES] = stops, starts, entries


@njit(**NESTED)
def _plan_pauses(b: RoundBooks, began: float) -> None:
    # Iterations that fit into the round, in order of (time, job); a job too slow for one runs to the end of the round.
    pauses = 0
    for i in range(b.counts[MEMBERS]):
        j = b.member[i]
        if began + b.whole[j, b.type[j]] > began:
            b.pause[pauses], b.ending[j] = j, began + b.whole[j, b.type[j]]
            pauses += 1
    sort_stably(b.number, b.pause, 0, pauses, b.sorted)
    sort_stably(b.ending, b.pause, 0, pauses, b.sorted)
    for p in range(pauses):
        b.until[p] = b.ending[b.pause[p]]
    b.counts[PAUSES] = pauses


@njit(signature=types.void(_BOOKS, _I[::1], _I[::1], _F, types.boolean, types.boolean), **KERNEL)
def serve(b: RoundBooks, active: Ints, order: Ints, now: float, waits: bool, pauses: bool) -> None:
    """Write the moves and the pauses of a round that begins, after the last one has been closed.

    Parameters
    ----------
    b
        The books.
    active
        Numbers of the active jobs, i64[m].
    order
        Types in the order in which they are served, i64[T].
    now
        Beginning of the round, in seconds.
    waits
        Leave the GPUs idle for which jobs were chosen that have no share yet.
    pauses
        Stop jobs before an iteration that the round cuts off.
    """
    running, count = 0, 0
    for i in range(b.counts[MEMBERS]):
        if b.type[b.member[i]] != IDLE:
            b.running[running] = b.member[i]
            running += 1
    choose(b, active, order)
    for i in range(active.size):
        j = active[i]
        if b.chosen[i] >= 0 and (b.settled[j] or not waits):
            b.member[count], b.wanted[j] = j, b.chosen[i]
            count += 1
    for i in range(count):
        b.queue[i] = b.member[i]
    sort_stably(b.small, b.queue, 0, count, b.sorted)
    give(b, count)
    _move(b, count, running)
    b.counts[MEMBERS], b.counts[PAUSED], b.counts[PAUSES] = count, 0, 0
    if pauses:
        _plan_pauses(b, now)
    _note_last_pause(b, count)


@njit(signature=types.void(_BOOKS, _F), **KERNEL)
def close(b: RoundBooks, seconds: float) -> None:
    """Record the runs of the jobs that run to the end of a round.

    Parameters
    ----------
    b
        The books.
    seconds
        Length of the round, in seconds.
    """
    for i in range(b.counts[MEMBERS]):
        record(b, b.member[i], seconds)
    b.counts[PAUSED] = b.counts[PAUSES] = 0
