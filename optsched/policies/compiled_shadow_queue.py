"""`optsched.policies.shadow_queue`, compiled, for queues of any length: the same answers from two searches a question.

Let T_k be the first moment from now on at which running jobs and all reservations take more than k of G GPUs. Job j of g
GPUs, reserved from F to F + d, may start now at F or later; before F, where others take at most G - g GPUs until now + d.
Its own reservation is among those counted, and now + d <= F + d, so that this says: now + d <= T_(G-g), or F <= T_(G-g) and
now + d <= T_G. (T_G is finite only where a job has started later than its F, for want of a place.)

Jobs of one kind join in order of F. Of each kind a tournament of the d of those that wait finds the first one that may
start, so that overtaking costs nothing for those that may not: `first_to_start`, O(log n) a kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit, record
from optsched.compiled.heap import ENTRY, INNER, KERNEL, insert, remove
from optsched.policies.usage_profile import Usage, first_above, new_usage, take, take_back

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

QUEUED = record(
    start="real",  # F
    longest="real",  # d
    gpus="int",
    joined="int",  # its place in the queue, counted from the first job ever
    kind="short",
    nth="short",  # of its kind
    ends="short",  # its place among the ends
)
KIND = record(
    gpus="int",
    first="int",  # of its members; twice that: its tournament
    leaves="int",  # a power of two
    joined="int",  # members so far
    full="int",  # it was offered no place at this instant
)
SHADOW = record(
    total="int",  # G
    free="int",
    last="real",  # F of the job that came last
    pending="int",  # ends of the strict schedule
    joined="int",
    safe="int",  # 0: nobody is protected, whoever waits may start
)


class Shadow(NamedTuple):
    """n jobs of K kinds."""

    state: Any  # SHADOW[1]
    jobs: Any  # QUEUED[n]
    kinds: Any  # KIND[K]
    ends: Any  # ENTRY[n]: of the strict schedule, a heap
    members: Ints  # the jobs of every kind in the order in which they joined
    shortest: Floats  # tournaments: least d of those that wait
    usage: Usage  # change j: the end of job j; change n + j: its reserved start


def new_shadow(gpus: Ints, kind: Ints, total: int, *, safe: bool) -> Shadow:
    """An empty queue for jobs of ``gpus`` i64[n] and ``kind`` i64[n], on ``total`` GPUs."""
    n = gpus.size
    kinds = np.zeros(int(kind.max(initial=0)) + 1, dtype=KIND)
    kinds["gpus"][kind] = gpus
    leaves = 2 ** np.ceil(np.log2(np.maximum(np.bincount(kind, minlength=kinds.size), 1))).astype(np.int64)
    kinds["leaves"], kinds["first"][1:] = leaves, np.cumsum(leaves)[:-1]
    jobs, state = np.zeros(n, dtype=QUEUED), np.zeros(1, dtype=SHADOW)
    jobs["gpus"], jobs["kind"], jobs["ends"] = gpus, kind, -1
    state["total"], state["free"], state["safe"] = total, total, safe
    members = np.zeros(int(leaves.sum()), dtype=np.int64)
    ends = np.zeros(n if safe else 0, dtype=ENTRY)
    return Shadow(state, jobs, kinds, ends, members, np.full(2 * members.size, np.inf), new_usage(2 * n if safe else 0))


@njit(**KERNEL)
def _pop_end(s: Shadow) -> float:
    q, first = s.state[0], s.ends[0]
    end, job = first.key, first.number
    q.pending = remove(s.ends, 0, q.pending, job, s.jobs["ends"])
    q.free += s.jobs[job].gpus
    return float(end)


@njit(**INNER)
def _reserve(s: Shadow, job: int, now: float, delay: float) -> None:
    q, own = s.state[0], s.jobs[job]
    start = max(now, q.last)
    while q.pending > 0 and (s.ends[0].key <= start or q.free < own.gpus):
        start = max(start, _pop_end(s))
    start += delay
    while q.pending > 0 and s.ends[0].key <= start:
        _pop_end(s)
    q.free -= own.gpus
    q.last = own.start = start
    q.pending = insert(s.ends, 0, q.pending, 0, start + own.longest, job, s.jobs["ends"])
    take(s.usage, s.jobs.size + job, start, own.gpus)
    take(s.usage, job, start + own.longest, -own.gpus)


@njit(**KERNEL)
def _set_shortest(s: Shadow, job: int, seconds: float) -> None:
    own, kind = s.jobs[job], s.kinds[s.jobs[job].kind]
    base, i = 2 * kind.first, kind.leaves + own.nth
    s.shortest[base + i] = seconds
    while i > 1:
        i >>= 1
        s.shortest[base + i] = min(s.shortest[base + 2 * i], s.shortest[base + 2 * i + 1])


@njit(**INNER)
def join(s: Shadow, job: int, now: float, longest: float, delay: float) -> None:
    """A job joins the queue: at most ``longest`` seconds on its GPUs, ``delay`` seconds of patience."""
    q, own, kind = s.state[0], s.jobs[job], s.kinds[s.jobs[job].kind]
    own.longest, own.joined, own.nth = longest, q.joined, kind.joined
    q.joined += 1
    s.members[kind.first + kind.joined] = job
    kind.joined += 1
    _set_shortest(s, job, longest)
    if q.safe != 0:
        _reserve(s, job, now, delay)


@njit(**KERNEL)
def leave(s: Shadow, job: int, now: float) -> None:
    """The job starts: its reservation becomes a running job that ends by its bound."""
    own = s.jobs[job]
    _set_shortest(s, job, np.inf)
    if s.state[0].safe != 0:
        take_back(s.usage, s.jobs.size + job)
        take_back(s.usage, job)
        s.usage.present[0].taken += own.gpus
        take(s.usage, job, now + own.longest, -own.gpus)


@njit(**INNER)
def end(s: Shadow, job: int) -> None:
    """The job has completed."""
    take_back(s.usage, job)
    s.usage.present[0].taken -= s.jobs[job].gpus


@njit(**INNER)
def may_start(s: Shadow, job: int, now: float) -> bool:
    """Would starting ``job`` now leave every reservation in its place?"""
    own, total = s.jobs[job], s.state[0].total
    if now >= own.start:
        return True
    over, until = now + own.longest, first_above(s.usage, total - own.gpus)
    return bool(over <= until or (own.start <= until and over <= first_above(s.usage, total)))


@njit(**KERNEL)
def _first_within(s: Shadow, k: int, i: int, now: float, until: float) -> int:
    # The first job of kind k, from its i-th on, that waits and would be over by `until`; -1: none.
    kind = s.kinds[k]
    base = 2 * kind.first
    if i >= kind.joined:
        return -1
    i += kind.leaves
    while not (s.shortest[base + i] < np.inf and now + s.shortest[base + i] <= until):
        while i & 1:
            i >>= 1
        if i == 0:
            return -1
        i += 1
    while i < kind.leaves:
        i *= 2
        if not (s.shortest[base + i] < np.inf and now + s.shortest[base + i] <= until):
            i += 1
    return int(s.members[kind.first + i - kind.leaves])


@njit(**KERNEL)
def _first_behind(s: Shadow, k: int, joined: int) -> int:
    # Which member of kind k is the first one behind that place in the queue?
    kind = s.kinds[k]
    low, high = 0, kind.joined
    while low < high:
        middle = (low + high) // 2
        if s.jobs[s.members[kind.first + middle]].joined > joined:
            high = middle
        else:
            low = middle + 1
    return int(low)


@njit(**KERNEL)
def _first_of_kind(s: Shadow, k: int, joined: int, now: float) -> int:
    i = _first_behind(s, k, joined)
    j = _first_within(s, k, i, now, np.inf)
    if j < 0 or s.state[0].safe == 0 or s.jobs[j].start <= now:
        return j
    until = first_above(s.usage, s.state[0].total - s.kinds[k].gpus)
    most = first_above(s.usage, s.state[0].total)
    j = _first_within(s, k, i, now, until)
    if until >= most:
        return j
    # reserved by then: it meets itself only
    other = _first_within(s, k, i, now, most)
    if other >= 0 and s.jobs[other].start <= until and (j < 0 or s.jobs[other].joined < s.jobs[j].joined):
        return other
    return j


@njit(**INNER)
def first_to_start(s: Shadow, joined: int, now: float, free: int) -> int:
    """The first job behind that place in the queue that may start, of ``free`` GPUs and a kind not ``full``; -1: none."""
    best = -1
    for k in range(s.kinds.size):
        if s.kinds[k].gpus <= free and s.kinds[k].full == 0 and s.kinds[k].joined > 0:
            j = _first_of_kind(s, k, joined, now)
            if j >= 0 and (best < 0 or s.jobs[j].joined < s.jobs[best].joined):
                best = j
    return best
