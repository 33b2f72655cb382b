"""The next event, and the next job of a queue: compiled heaps, clocks and trees of times in preallocated arrays.

**Instants.** Times that differ by the rounding of a few sums are the same moment: 0.1 + 0.2 and 0.3 are two floats and
one time. If they were two events, the engine would ask a policy between them, which could stop a job, or charge a
restart, for an interval that does not exist. The instant that begins at t therefore holds every event up to t (1 +
2**-47): some forty units in the last place of a clock that counts from the first arrival. Each event happens at its own
time; the policy is asked once, after the last of them. In the same way keys that grow or fall with work are compared on
`KEY_BITS` significant bits. Both rules scale with the unit of time, and neither depends on jobs to come.

**An indexed heap** (`insert`, `remove`) holds `ENTRY` records in order of (level, key, item). ``slot[item]`` is the
place of an item, so that any item can leave or move in O(log n). For the reverse order insert (-level, -key, ~item);
its place is ``slot[item]``, too.

**Clocks** say when the state of each running job changes next. They are a tournament in one array of records,
``clocks`` ENTRY[2 P], with P the least power of two >= R. The clock of execution x is ``clocks[P + x]``; every other
entry is the first of its two children in order of (time, job), so that ``clocks[1]`` is the next change. Setting a
clock walks at most log2 P levels and touches neither jobs nor an index: half the cost of leaving and entering an
indexed heap.

**A tree of times** serves loops in which every event sets its clock again and clocks need no order except that of their
numbers: ``tree`` f64[2 P], leaf i is ``tree[P + i]``, and every other node is the least of its two children, so that
``tree[1]`` is the next time. It is two to three times as fast as an indexed heap.
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
    """Return the last moment of the instant that begins at ``t``.

    Parameters
    ----------
    t
        Time in seconds, >= 0.
    """
    return t + t * INSTANT


end_of_instant = njit(forceinline=True)(last_of_instant)  # the same, for compiled loops


@njit(forceinline=True)
def next_tick(t: float, first: float, period: float) -> float:
    """Return the earliest of first, first + period, ... whose instant is not over before ``t``.

    Parameters
    ----------
    t
        Time in seconds, >= ``first``.
    first
        First tick, in seconds.
    period
        Seconds between ticks.
    """
    k = np.rint((t - first) / period)
    tick = first + k * period
    return tick if end_of_instant(tick) >= t else first + (k + 1.0) * period


@njit(forceinline=True)
def shortened(key: float) -> float:
    """Return a key rounded to `KEY_BITS` significant bits, so that keys that differ by rounding alone become equal.

    Parameters
    ----------
    key
        Any float.

    Notes
    -----
    The method is Veltkamp's splitting. Two equal keys that rounding puts on both sides of the middle of two such
    numbers, one pair in some 10**5, remain different.
    """
    if not abs(key) < _HUGE:
        return key
    c = _SPLIT * key
    return c - (c - key)


def shortened_keys(keys: Floats) -> Floats:
    """Return `shortened` of every key.

    Parameters
    ----------
    keys
        Keys, f64[n].
    """
    small = np.abs(keys) < _HUGE
    c = _SPLIT * np.where(small, keys, 0.0)
    return np.where(small, c - (c - np.where(small, keys, 0.0)), keys)


# --- an indexed heap --------------------------------------------------------------------------------------------------


@njit(**NESTED)
def before(level: int, key: float, item: int, other: Any) -> bool:
    """Return whether (level, key, item) is served before an entry of an indexed heap.

    Parameters
    ----------
    level, key, item
        The entry that is compared.
    other
        An ENTRY record.
    """
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
    """Add (level, key, item) to an indexed heap, and return its new size. Complexity O(log size).

    Parameters
    ----------
    heap
        ENTRY[]; the heap is ``heap[base : base + size]``.
    base
        Place of its first entry.
    size
        Number of its entries.
    level, key, item
        The new entry; ``~item`` in the reverse order.
    slot
        Place of every item in the heap, i64[n]; it is kept up to date.
    """
    i = _rise(heap, base, size, level, key, item, slot)
    _put(heap, base + i, level, key, item)
    slot[max(item, ~item)] = i
    return size + 1


@njit(**KERNEL)
def remove(heap: Any, base: int, size: int, item: int, slot: Ints) -> int:
    """Remove an item from the indexed heap that holds it, and return the new size. Complexity O(log size).

    Parameters
    ----------
    heap
        ENTRY[]; the heap is ``heap[base : base + size]``.
    base
        Place of its first entry.
    size
        Number of its entries.
    item
        The item; ``~item`` in the reverse order.
    slot
        Place of every item in the heap, i64[n]; it is kept up to date.
    """
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
    """Give the first entry of an indexed heap a later (level, key). Complexity O(log size).

    Parameters
    ----------
    heap
        ENTRY[]; the heap is ``heap[base : base + size]``.
    base
        Place of its first entry.
    size
        Number of its entries.
    level, key
        The new level and key.
    slot
        Place of every item in the heap, i64[n]; it is kept up to date.
    """
    item = heap[base].number
    i = _sink(heap, base, size, 0, level, key, item, slot)
    _put(heap, base + i, level, key, item)
    slot[max(item, ~item)] = i


# --- clocks -----------------------------------------------------------------------------------------------------------


def leaves(clocks: int) -> int:
    """Return the least power of two >= ``clocks``, and at least 1.

    Parameters
    ----------
    clocks
        Number of clocks.
    """
    return 1 << max(clocks - 1, 0).bit_length()


def new_clocks(executions: int) -> Any:
    """Return clocks of which none is set, ENTRY[2 P].

    Parameters
    ----------
    executions
        Number R of executions at once at most.
    """
    clocks = np.zeros(2 * leaves(executions), dtype=ENTRY)
    clocks["key"] = np.inf
    return clocks


@njit(**NESTED)
def set_clock(clocks: Any, x: int, time: float, job: int) -> None:
    """Set the clock of an execution: the state of its job changes next at ``time``. Complexity O(log R).

    Parameters
    ----------
    clocks
        Clocks, ENTRY[2 P].
    x
        Index of the execution.
    time
        Time of the change, in seconds; inf for never.
    job
        Index of the job.
    """
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
    """Clear the clock of an execution that is over.

    Parameters
    ----------
    clocks
        Clocks, ENTRY[2 P].
    x
        Index of the execution.
    """
    set_clock(clocks, x, np.inf, np.int64(0))


@njit(**KERNEL)
def is_set(clocks: Any, x: int) -> bool:
    """Return whether the clock of an execution is set, so that the execution runs.

    Parameters
    ----------
    clocks
        Clocks, ENTRY[2 P].
    x
        Index of the execution.
    """
    return bool(clocks[(clocks.size >> 1) + x].key < np.inf)


@njit(**INNER)
def set_finish(s: State, x: int) -> None:
    """Compute the time at which an execution will have done the work that is left, at its present speed.

    Parameters
    ----------
    s
        State of the run.
    x
        Index of the execution.
    """
    run = s.executions[x]
    least = np.nextafter(s.engine[0].now, np.inf)  # work that is shorter than the rounding of time still takes time
    run.finish = max(run.paid + run.left * (run.pace * run.slow), least)


@njit(**INNER)
def first_finish(s: State, j: int) -> float:
    """Return the time at which a running job, or the first of its copies, has done its work.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of the job.
    """
    t, x = s.executions[s.jobs[j].execution].finish, s.executions[s.jobs[j].execution].other
    while x >= 0:
        t = min(t, s.executions[x].finish)
        x = s.executions[x].other
    return float(t)


@njit(**INNER)
def set_change(s: State, j: int) -> None:
    """Set the clock of a running job to its next change: it finishes, or its service reaches the next threshold.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of the job.
    """
    job = s.jobs[j]
    t = first_finish(s, j)
    if job.level < s.engine[0].levels:
        t = min(t, job.mark + (s.numbers[job.level] - job.attained) / service(s, j))
    set_clock(s.clocks, job.execution, max(t, s.engine[0].now), j)  # rounding must not turn time back


@njit(**INNER)
def rise_later(s: State, j: int) -> None:
    """Plan the promotion of a waiting job: it returns to level 0 after ``starvation`` times as long as it ran.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of the job.
    """
    w, job = s.engine[0], s.jobs[j]
    if w.starvation > 0.0 and job.level > 0:
        t = job.mark + w.starvation * job.attained / service(s, j)
        w.rising = insert(s.heap, w.promotion_queue, w.rising, np.int64(0), t, j, s.jobs["rises"])


@njit(**INNER)
def rise_never(s: State, j: int) -> None:
    """Cancel the promotion of a job that waits no longer or is on level 0.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of the job.
    """
    w = s.engine[0]
    if s.jobs[j].rises >= 0:
        w.rising = remove(s.heap, w.promotion_queue, w.rising, j, s.jobs["rises"])


# --- a tree of times --------------------------------------------------------------------------------------------------


def new_tree(clocks: int) -> Floats:
    """Return a tree of times in which no clock is set, f64[2 P].

    Parameters
    ----------
    clocks
        Number of clocks.
    """
    return np.full(2 * leaves(clocks), np.inf)


@njit(**NESTED)
def set_time(tree: Any, clock: int, time: float) -> None:
    """Set a clock of a tree of times.

    Parameters
    ----------
    tree
        The tree, f64[2 P].
    clock
        Number of the clock.
    time
        Time at which it rings, in seconds; inf for never.
    """
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
    """Return the number of the clock that rings first, at ``tree[1]``; the smallest of several.

    Parameters
    ----------
    tree
        The tree, f64[2 P].
    """
    leaves = tree.size >> 1
    time, i = tree[1], 1
    while i < leaves:
        i *= 2
        if tree[i] != time:
            i += 1
    return int(i - leaves)


# --- jobs that wait, and jobs that run ------------------------------------------------------------------------------------


@njit(**INNER)
def queue_of(s: State, j: int) -> Any:
    """Return the queue in which a job waits: one queue a kind of jobs, or one for all.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of the job.
    """
    return s.queues[min(s.jobs[j].kind, s.queues.size - 1)]


@njit(**INNER)
def enqueue(s: State, j: int) -> None:
    """Put a job into its queue.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of a job that waits from now on.
    """
    job, queue = s.jobs[j], queue_of(s, j)
    job.status = WAITING
    s.engine[0].queued += 1
    if s.engine[0].listed != 0:
        _list(s, j)
    else:
        queue.jobs = insert(s.heap, queue.first, queue.jobs, job.level, job.key, j, s.jobs["place"])


@njit(**INNER)
def _list(s: State, j: int) -> None:
    # Insert into the one sorted list of a run in which a rule is asked about all waiting jobs.
    key, k = s.jobs[j].key, s.engine[0].queued - 1
    while k > 0 and (s.heap[k - 1].key, s.heap[k - 1].number) > (key, j):
        s.heap[k].key, s.heap[k].number = s.heap[k - 1].key, s.heap[k - 1].number
        k -= 1
    s.heap[k].key, s.heap[k].number = key, j


@njit(**INNER)
def dequeue(s: State, j: int) -> None:
    """Take a job out of its queue; from a sorted list it is taken after all waiting jobs have been asked about.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of a job that waits no longer.
    """
    if s.engine[0].listed != 0:
        return
    queue = queue_of(s, j)
    s.engine[0].queued -= 1
    queue.jobs = remove(s.heap, queue.first, queue.jobs, j, s.jobs["place"])


@njit(**INNER)
def begin_running(s: State, j: int) -> None:
    """Add a job to the heap of running jobs, the least important first, if jobs are preempted.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of a job that starts.
    """
    w, job = s.engine[0], s.jobs[j]
    if w.preemptive != 0:
        w.ranked = insert(s.heap, w.runner, w.ranked, -job.level, -job.key, ~j, s.jobs["place"])


@njit(**INNER)
def end_running(s: State, j: int) -> None:
    """Remove a job from the heap of running jobs, if jobs are preempted.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of a job that ends or stops.
    """
    w = s.engine[0]
    if w.preemptive != 0:
        w.ranked = remove(s.heap, w.runner, w.ranked, ~j, s.jobs["place"])


@njit(**INNER)
def service(s: State, j: int) -> int:
    """Return the service that a running job receives a second: its GPUs, or 1 if service is time alone.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of the job.
    """
    return 1 if s.engine[0].by_time != 0 else s.jobs[j].gpus * max(s.jobs[j].copies, 1)


@njit(**INNER)
def to_the_end(s: State, j: int) -> None:
    """Put a job that enters a level behind the jobs that came to it before the round, or the instant, that ends now.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of the job.
    """
    w, job = s.engine[0], s.jobs[j]
    if w.requeue != 0:
        job.origin = next_tick(w.began, w.first_round, w.period) if w.period > 0.0 else w.began
        job.key = job.origin
