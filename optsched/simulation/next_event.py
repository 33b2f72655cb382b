"""The next event, and the next job of a queue: compiled heaps, clocks and trees of times in preallocated arrays.

**Instants.** Times that differ by the rounding of a few sums are the same moment: 0.1 + 0.2 and 0.3 mean one and are two
floats. Were they two events, a policy would be asked between them, and could stop a job, or charge a restart, for an
interval that is not there. So the instant that begins at t holds every event up to t (1 + 2**-47): some forty units in the
last place of a clock that counts from the first arrival. Each event happens at its own time; who decides is asked once,
after the last of them. In the same way keys that grow or fall with work are compared on `KEY_BITS` significant bits. Both
scale with the unit of time, and neither depends on jobs to come.

**An indexed heap** (`insert`, `remove`) holds `ENTRY` records in order of (level, key, item); ``slot[item]`` is an item's
place, so that any item can leave or move in O(log n). For the reverse order enter (-level, -key, ~item): its place is
``slot[item]``, too.

**Clocks** say when the state of each running job changes next: a tournament in one array of records. ``clocks``
ENTRY[2 P], P the least power of two >= R: that of execution x is ``clocks[P + x]``, every other one the first of its two
children in order of (time, job), so that ``clocks[1]`` is the next change. Setting a clock walks at most log2 P levels and
touches neither jobs nor an index: half of what leaving and entering an indexed heap costs.

**A tree of times** serves loops in which every event sets its clock anew and clocks need no order but that of their
numbers: ``tree`` f64[2 P], leaf i is ``tree[P + i]``, every other node the least of its two children, so that ``tree[1]``
is the next time. Two to three times as fast as an indexed heap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import INNER, KERNEL, NESTED, njit, record
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.records import WAITING, State

ENTRY = record(key="real", level="int", number="int")
INSTANT = 2.0**-47  # relative
KEY_BITS = 32  # 53 less those that sums of times may have lost: equal up to 1e-10, relative
_SPLIT = 2.0 ** (53 - KEY_BITS) + 1.0
_HUGE = 2.0**990  # beyond it splitting a float overflows


# --- instants ---------------------------------------------------------------------------------------------------------


def last_of_instant(t: float) -> float:
    """The last moment, in seconds >= 0, of the instant that begins at ``t``."""
    return t + t * INSTANT


end_of_instant = njit(forceinline=True)(last_of_instant)  # the same, for compiled loops


@njit(forceinline=True)
def next_tick(t: float, first: float, period: float) -> float:
    """The earliest of first, first + period, ... whose instant is not over before ``t`` >= first."""
    k = np.rint((t - first) / period)
    tick = first + k * period
    return tick if end_of_instant(tick) >= t else first + (k + 1.0) * period


@njit(forceinline=True)
def shortened(key: float) -> float:
    """``key`` rounded to `KEY_BITS` significant bits (Veltkamp's splitting): one number for keys that rounding tells apart.

    A tie that straddles the middle of two such numbers, one in some 10**5, stays broken.
    """
    if not abs(key) < _HUGE:
        return key
    c = _SPLIT * key
    return c - (c - key)


def shortened_keys(keys: Floats) -> Floats:
    """`shortened` of every one of f64[n]."""
    small = np.abs(keys) < _HUGE
    c = _SPLIT * np.where(small, keys, 0.0)
    return np.where(small, c - (c - np.where(small, keys, 0.0)), keys)


# --- an indexed heap --------------------------------------------------------------------------------------------------


@njit(**NESTED)
def before(level: int, key: float, item: int, other: Any) -> bool:
    """Is (level, key, item) served before the entry ``other`` of an indexed heap?"""
    if level != other.level:
        return bool(level < other.level)
    if key != other.key:
        return bool(key < other.key)
    return bool(item < other.number)


@njit(**INNER)
def _put(heap: Any, i: int, level: int, key: float, item: int) -> None:
    entry = heap[i]
    entry.level = level
    entry.key = key
    entry.number = item


@njit(**INNER)
def _rise(heap: Any, base: int, i: int, level: int, key: float, item: int, slot: Ints) -> int:
    # Where an entry that is at most at place i belongs; those that it passes move down.
    while i > 0:
        parent = (i - 1) >> 1
        over = heap[base + parent]
        if not before(level, key, item, over):
            break
        _put(heap, base + i, over.level, over.key, over.number)
        slot[max(over.number, ~over.number)] = i
        i = parent
    return i


@njit(**INNER)
def _sink(heap: Any, base: int, size: int, i: int, level: int, key: float, item: int, slot: Ints) -> int:
    # Where an entry that is at least at place i belongs; those that pass it move up.
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        under = heap[base + child]
        if child + 1 < size and before(
            heap[base + child + 1].level, heap[base + child + 1].key, heap[base + child + 1].number, under
        ):
            child += 1
            under = heap[base + child]
        if before(level, key, item, under):
            break
        _put(heap, base + i, under.level, under.key, under.number)
        slot[max(under.number, ~under.number)] = i
        i = child
    return i


@njit(**KERNEL)
def insert(heap: Any, base: int, size: int, level: int, key: float, item: int, slot: Ints) -> int:
    """Add (level, key, item) to the indexed heap in ``heap[base : base + size]``; the new size. O(log size)."""
    i = _rise(heap, base, size, level, key, item, slot)
    _put(heap, base + i, level, key, item)
    slot[max(item, ~item)] = i
    return size + 1


@njit(**KERNEL)
def remove(heap: Any, base: int, size: int, item: int, slot: Ints) -> int:
    """Take ``item`` out of the indexed heap that holds it; the new size. O(log size)."""
    i = slot[max(item, ~item)]
    slot[max(item, ~item)] = -1
    last = heap[base + size - 1]
    level, key, moved = last.level, last.key, last.number
    if moved != item:
        i = _rise(heap, base, i, level, key, moved, slot)
        i = _sink(heap, base, size - 1, i, level, key, moved, slot)
        _put(heap, base + i, level, key, moved)
        slot[max(moved, ~moved)] = i
    return size - 1


@njit(**KERNEL)
def lower(heap: Any, base: int, size: int, level: int, key: float, slot: Ints) -> None:
    """Give the first entry of an indexed heap another (level, key), with which it is served later. O(log size)."""
    item = heap[base].number
    i = _sink(heap, base, size, 0, level, key, item, slot)
    _put(heap, base + i, level, key, item)
    slot[max(item, ~item)] = i


# --- clocks -----------------------------------------------------------------------------------------------------------


def leaves(clocks: int) -> int:
    """The least power of two >= ``clocks``, and at least 1."""
    return 1 << max(clocks - 1, 0).bit_length()


def new_clocks(executions: int) -> Any:
    """Clocks of so many executions, none of which is set."""
    clocks = np.zeros(2 * leaves(executions), dtype=ENTRY)
    clocks["key"] = np.inf
    return clocks


@njit(**NESTED)
def set_clock(clocks: Any, x: int, time: float, job: int) -> None:
    """The state of ``job`` changes next at ``time``, says its execution ``x``. O(log R)."""
    i = (clocks.size >> 1) + x
    clocks[i].key, clocks[i].number = time, job
    while i > 1:
        key, number = clocks[i ^ 1].key, clocks[i ^ 1].number
        sooner = (key < time) | ((key == time) & (number < job))
        time, job = min(key, time), number if sooner else job  # half of the time either: not a branch
        i >>= 1
        if clocks[i].key == time and clocks[i].number == job:
            return  # nothing changes further up
        clocks[i].key, clocks[i].number = time, job


@njit(**NESTED)
def clear_clock(clocks: Any, x: int) -> None:
    """The execution ``x`` is over."""
    set_clock(clocks, x, np.inf, np.int64(0))


@njit(**KERNEL)
def is_set(clocks: Any, x: int) -> bool:
    """Does the execution ``x`` run?"""
    return bool(clocks[(clocks.size >> 1) + x].key < np.inf)


@njit(**INNER)
def set_finish(s: State, x: int) -> None:
    """When execution ``x`` will have done what is left, at its present speed."""
    run = s.executions[x]
    least = np.nextafter(s.engine[0].now, np.inf)  # work that is shorter than the rounding of time still takes time
    run.finish = max(run.paid + run.left * (run.pace * run.slow), least)


@njit(**INNER)
def first_finish(s: State, j: int) -> float:
    """When the running job, or the first of its copies, has done its work."""
    t, x = s.executions[s.jobs[j].execution].finish, s.executions[s.jobs[j].execution].other
    while x >= 0:
        t = min(t, s.executions[x].finish)
        x = s.executions[x].other
    return float(t)


@njit(**INNER)
def set_change(s: State, j: int) -> None:
    """The next change of a running job: it finishes, or its service reaches the next threshold."""
    job = s.jobs[j]
    t = first_finish(s, j)
    if job.level < s.engine[0].levels:
        t = min(t, job.mark + (s.numbers[job.level] - job.attained) / service(s, j))
    set_clock(s.clocks, job.execution, max(t, s.engine[0].now), j)  # rounding must not turn time back


@njit(**INNER)
def rise_later(s: State, j: int) -> None:
    """Starvation: a job that waits is back on level 0 after ``starvation`` times as long as it ran."""
    w, job = s.engine[0], s.jobs[j]
    if w.starvation > 0.0 and job.level > 0:
        t = job.mark + w.starvation * job.attained / service(s, j)
        w.rising = insert(s.heap, w.promotion_queue, w.rising, np.int64(0), t, j, s.jobs["rises"])


@njit(**INNER)
def rise_never(s: State, j: int) -> None:
    """It waits no longer, or is on level 0."""
    w = s.engine[0]
    if s.jobs[j].rises >= 0:
        w.rising = remove(s.heap, w.promotion_queue, w.rising, j, s.jobs["rises"])


# --- a tree of times --------------------------------------------------------------------------------------------------


def new_tree(clocks: int) -> Floats:
    """A tree for that many clocks, none of which is set."""
    return np.full(2 * leaves(clocks), np.inf)


@njit(**NESTED)
def set_time(tree: Any, clock: int, time: float) -> None:
    """Clock ``clock`` rings at ``time`` (inf: never)."""
    i = (tree.size >> 1) + clock
    tree[i] = time
    i >>= 1
    while i >= 1:
        least = min(tree[2 * i], tree[2 * i + 1])
        if tree[i] == least:
            return  # nothing changes further up
        tree[i] = least
        i >>= 1


@njit(**NESTED)
def ringing(tree: Any) -> int:
    """The clock that rings at ``tree[1]``; of several the one with the smallest number."""
    leaves = tree.size >> 1
    time, i = tree[1], 1
    while i < leaves:
        i *= 2
        if tree[i] != time:
            i += 1
    return int(i - leaves)


# --- who waits, and who runs ------------------------------------------------------------------------------------------


@njit(**INNER)
def queue_of(s: State, j: int) -> Any:
    """Where ``j`` waits: one queue a kind of jobs, or one for all."""
    return s.queues[min(s.jobs[j].kind, s.queues.size - 1)]


@njit(**INNER)
def enqueue(s: State, j: int) -> None:
    """Job ``j`` waits from now on."""
    job, queue = s.jobs[j], queue_of(s, j)
    job.status = WAITING
    s.engine[0].queued += 1
    if s.engine[0].listed != 0:
        _list(s, j)
    else:
        queue.jobs = insert(s.heap, queue.first, queue.jobs, job.level, job.key, j, s.jobs["place"])


@njit(**INNER)
def _list(s: State, j: int) -> None:
    # Into the one sorted list of a run in which everybody is asked about.
    key, k = s.jobs[j].key, s.engine[0].queued - 1
    while k > 0 and (s.heap[k - 1].key, s.heap[k - 1].number) > (key, j):
        s.heap[k].key, s.heap[k].number = s.heap[k - 1].key, s.heap[k - 1].number
        k -= 1
    s.heap[k].key, s.heap[k].number = key, j


@njit(**INNER)
def dequeue(s: State, j: int) -> None:
    """Job ``j`` waits no longer; from a sorted list it is taken when all have been asked about."""
    if s.engine[0].listed != 0:
        return
    queue = queue_of(s, j)
    s.engine[0].queued -= 1
    queue.jobs = remove(s.heap, queue.first, queue.jobs, j, s.jobs["place"])


@njit(**INNER)
def begin_running(s: State, j: int) -> None:
    """Job ``j`` is among those that run: where jobs are preempted a heap, the least important first."""
    w, job = s.engine[0], s.jobs[j]
    if w.preemptive != 0:
        w.ranked = insert(s.heap, w.runner, w.ranked, -job.level, -job.key, ~j, s.jobs["place"])


@njit(**INNER)
def end_running(s: State, j: int) -> None:
    """It is no longer."""
    w = s.engine[0]
    if w.preemptive != 0:
        w.ranked = remove(s.heap, w.runner, w.ranked, ~j, s.jobs["place"])


@njit(**INNER)
def service(s: State, j: int) -> int:
    """What a second of a running job counts for as service."""
    return 1 if s.engine[0].by_time != 0 else s.jobs[j].gpus * max(s.jobs[j].copies, 1)


@njit(**INNER)
def to_the_end(s: State, j: int) -> None:
    """Behind the others of the level that ``j`` enters: those that came before the round, or the instant, that ends now."""
    w, job = s.engine[0], s.jobs[j]
    if w.requeue != 0:
        job.origin = next_tick(w.began, w.first_round, w.period) if w.period > 0.0 else w.began
        job.key = job.origin
