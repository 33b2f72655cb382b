"""The copies of a round of HadarE, in arrays: two greedy rules, and augmenting paths for the nodes that they leave idle.

Jobs of a round are numbered by position, in order of arrival. A node holds at most one copy of a job, and as many copies as
its GPUs allow.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit, types
from optsched.policies.fork_books import (
    BOOKS,
    ENTRIES,
    JOBS,
    NOBODY,
    OPEN,
    PATH,
    STARTS,
    USED,
    VACANT,
    ForkBooks,
    numpy_sum,
)
from optsched.policies.ties import leading, leading_of
from optsched.policies.unified_gang_deals import sort_stably
from optsched.problem.arrays import Floats, Ints

HERE = 1 << 40  # above the number of any path: a position that has a copy on the node that is looked at
_I, _F = types.int64, types.float64


def by_payoff(rates: Floats, left: Floats, weight: Floats) -> Ints:
    """Return pairs of position and group, position M + group, by falling payoff slope w_j X_jh / left_j, i64[].

    Greedy for max sum of the slopes: exact where a job may have a copy on every node and a node holds one.

    Parameters
    ----------
    rates
        Units of work a second, f64[J, M]; 0: may not run.
    left
        Units of work that are left, f64[J].
    weight
        Weights of the jobs, f64[J].
    """
    slope = np.where(rates > 0, weight[:, None] * rates / left[:, None], -1.0)
    order = np.argsort(-leading(slope), axis=None, kind="stable")
    return np.ascontiguousarray(order[: int((slope >= 0).sum())])


# --- copies -----------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _give(b: ForkBooks, k: int, node: int) -> None:
    # A copy of the job in position ``k`` on ``node``: the last of its copies.
    e = b.counts[VACANT]
    if e != NOBODY:
        b.counts[VACANT] = b.following[e]
    else:
        e = b.counts[USED]
        b.counts[USED] = e + 1
    b.on[e], b.following[e] = node, NOBODY
    if b.head[k] == NOBODY:
        b.head[k] = e
    else:
        b.following[b.tail[k]] = e
    b.tail[k] = e
    b.resident[b.offset[node] + b.held[node]] = k
    b.held[node] += 1
    b.spare[k] -= 1
    b.counts[OPEN] -= b.spare[k] == 0
    b.free[node] -= b.gang[b.who[k]]


@njit(**NESTED)
def _take_back(b: ForkBooks, k: int, node: int) -> None:
    before, e = NOBODY, b.head[k]
    while b.on[e] != node:
        before, e = e, b.following[e]
    after = b.following[e]
    if before == NOBODY:
        b.head[k] = after
    else:
        b.following[before] = after
    if after == NOBODY:
        b.tail[k] = before
    b.following[e], b.counts[VACANT] = b.counts[VACANT], e
    first, last = b.offset[node], b.offset[node] + b.held[node] - 1
    for i in range(first, last):
        if b.resident[i] == k:
            b.resident[i] = b.resident[last]
            break
    b.held[node] -= 1
    b.counts[OPEN] += b.spare[k] == 0
    b.spare[k] += 1
    b.free[node] += b.gang[b.who[k]]


@njit(**NESTED)
def _begin(b: ForkBooks, active: Ints, copies: int) -> None:
    # Positions of the jobs that one node can hold; all nodes are free.
    b.counts[:] = 0
    b.counts[VACANT] = NOBODY
    for h in range(b.size.size):
        b.free[h], b.held[h], b.reached[h] = b.size[h], 0, 0
    for j in active:
        if b.row[j] < 0:
            k = b.counts[JOBS]
            b.who[k], b.spare[k], b.head[k], b.tail[k] = j, copies, NOBODY, NOBODY
            b.seen[k], b.barren[k] = 0, False
            b.counts[JOBS] = k + 1
    b.counts[OPEN] = b.counts[JOBS]


@njit(**NESTED)
def _name(b: ForkBooks, node: int, count: int) -> None:
    e = b.counts[ENTRIES]
    b.node[e], b.gpus[e] = node, count
    b.counts[ENTRIES] = e + 1


@njit(**NESTED)
def _start(b: ForkBooks, j: int, work: float) -> None:
    # A copy on the GPUs that have been named since the last start.
    s = b.counts[STARTS]
    b.start[s], b.work[s], b.first[s + 1] = j, work, b.counts[ENTRIES]
    b.counts[STARTS] = s + 1


@njit(**NESTED)
def _spread(b: ForkBooks, j: int, left: float) -> None:
    # One copy over several nodes, as fast as its slowest: the fastest types, few nodes. It gets the whole round.
    may, missing, found = b.row[j], b.gang[j], 0
    for h in range(b.free.size):
        if b.eligible[may, h]:
            found += b.free[h]
    if found < missing:
        return
    for m in range(b.speed.size):
        b.speed[m] = leading_of(b.spread[j, m])
    while missing > 0:
        best = NOBODY
        for h in range(b.free.size):
            if b.eligible[may, h] and b.free[h] > 0:
                gain = 0.0 if best == NOBODY else b.speed[b.group[h]] - b.speed[b.group[best]]
                if best == NOBODY or gain > 0.0 or (gain == 0.0 and b.free[h] > b.free[best]):
                    best = h
        count = min(missing, b.free[best])
        _name(b, best, count)
        b.free[best] -= count
        missing -= count
    _start(b, j, left)


# --- the rule ``work`` ------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _order_nodes(b: ForkBooks) -> None:
    # The fastest first: the mean over jobs of the rate there relative to the job's mean rate over its nodes.
    n, speed = b.counts[JOBS], b.speed
    for m in range(speed.size):
        total, can = 0.0, 0
        for k in range(n):
            rate = b.rates[b.who[k], m]
            total += rate / b.mean[b.who[k]]
            can += rate > 0.0
        speed[m] = -leading_of(total / max(can, 1))
    for h in range(b.nodes.size):
        b.nodes[h], b.key[h] = h, speed[b.group[h]]
    sort_stably(b.key, b.nodes, 0, b.nodes.size, b.sorted)


@njit(**NESTED)
def _first_of(b: ForkBooks, i: int, k: int) -> bool:
    return b.urgency[i] > b.urgency[k] or (b.urgency[i] == b.urgency[k] and i < k)


@njit(**NESTED)
def _sift(b: ForkBooks, base: int, size: int, i: int) -> None:
    # Move the element in place ``i`` of a heap down to where it belongs.
    k = b.heap[base + i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _first_of(b, b.heap[base + child + 1], b.heap[base + child]):
            child += 1
        if _first_of(b, k, b.heap[base + child]):
            break
        b.heap[base + i] = b.heap[base + child]
        i = child
    b.heap[base + i] = k


@njit(**NESTED)
def _heap_again(b: ForkBooks, k: int) -> None:
    kind = b.kind[b.who[k]]
    base, i = b.base[kind], b.heaped[kind]
    b.heaped[kind] += 1
    while i > 0 and _first_of(b, k, b.heap[base + (i - 1) // 2]):
        b.heap[base + i] = b.heap[base + (i - 1) // 2]
        i = (i - 1) // 2
    b.heap[base + i] = k


@njit(**NESTED)
def _heap_all(b: ForkBooks, left: Floats) -> int:
    # Heaps of the jobs of each kind by urgency; the number of kinds.
    n, kinds, at = b.counts[JOBS], 0, 0
    b.heaped[:] = 0
    for k in range(n):
        j = b.who[k]
        b.plan[k] = left[j]
        b.urgency[k] = leading_of(b.plan[k] / b.mean[j])
        if b.heaped[b.kind[j]] == 0:
            b.present[kinds] = b.kind[j]
            kinds += 1
        b.heaped[b.kind[j]] += 1
    for i in range(kinds):
        kind = b.present[i]
        b.base[kind] = at
        at += b.heaped[kind]
        b.heaped[kind] = 0
    for k in range(n):
        kind = b.kind[b.who[k]]
        b.heap[b.base[kind] + b.heaped[kind]] = k
        b.heaped[kind] += 1
    for i in range(kinds):
        kind = b.present[i]
        for place in range(b.heaped[kind] // 2 - 1, -1, -1):
            _sift(b, b.base[kind], b.heaped[kind], place)
    return kinds


@njit(**NESTED)
def _by_work(b: ForkBooks, left: Floats, seconds: float) -> None:
    # Each node, the fastest first, goes to the job with the most planned work left, in seconds of its mean rate. A copy
    # takes X_jh ``seconds`` off the plan of its job. Jobs without planned work get copies only when no other job can take
    # the node.
    _order_nodes(b)
    kinds = _heap_all(b, left)
    for node in b.nodes:
        m, aside = b.group[node], 0
        while b.free[node] > 0:
            best = NOBODY
            for i in range(kinds):
                kind = b.present[i]
                if b.heaped[kind] > 0:
                    k = b.heap[b.base[kind]]
                    j = b.who[k]
                    if b.gang[j] <= b.free[node] and b.rates[j, m] > 0.0 and (best == NOBODY or _first_of(b, k, best)):
                        best = k
            if best == NOBODY:
                break
            j = b.who[best]
            kind = b.kind[j]
            b.heaped[kind] -= 1
            b.heap[b.base[kind]] = b.heap[b.base[kind] + b.heaped[kind]]
            _sift(b, b.base[kind], b.heaped[kind], 0)
            _give(b, best, node)
            b.plan[best] -= b.rates[j, m] * seconds
            b.urgency[best] = leading_of(b.plan[best] / b.mean[j])
            if b.spare[best] > 0:
                b.aside[aside] = best
                aside += 1
        for i in range(aside):
            _heap_again(b, b.aside[i])


@njit(**NESTED)
def _by_pairs(b: ForkBooks, pairs: Ints) -> None:
    count = b.rates.shape[1]
    for pair in pairs:
        k, m = pair // count, pair % count
        gang = b.gang[b.who[k]]
        for node in range(b.group.size):
            if b.spare[k] == 0:
                break
            if b.group[node] == m and b.free[node] >= gang:
                _give(b, k, node)


# --- augmenting paths -------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _fill(b: ForkBooks) -> None:
    # Copies move along augmenting paths until no further copy fits: a maximum b-matching. That is done only where all gangs
    # are alike (a node is then a number of slots); otherwise packing is another problem, and nothing is done. With it the
    # number of copies is the largest possible one, which without restrictions is min(n, x J) on n one-slot nodes.
    # O(E) for every copy gained, E pairs of job and node that fit.
    n = b.counts[JOBS]
    if n == 0:
        return
    gang = b.gang[b.who[0]]
    for k in range(n):
        if b.gang[b.who[k]] != gang:
            return
    for node in range(b.free.size):
        while b.free[node] >= gang and b.counts[OPEN] > 0:
            k = _path(b, node)
            if k == NOBODY:
                break
            # from the job that has a copy to spare back to the idle node
            to = b.wanted[k]
            _give(b, k, to)
            while to != node:
                left, k = to, b.freed[to]
                to = b.wanted[k]
                _give(b, k, to)
                _take_back(b, k, left)
            for i in range(n):
                b.barren[i] = False


@njit(**NESTED)
def _path(b: ForkBooks, root: int) -> int:
    # A position with a copy to spare, from which ``wanted`` and ``freed`` lead to a copy on ``root``. Breadth first, so no
    # path is longer than it must be. No path leads from ``barren`` jobs to a spare copy; they stay so until a copy moves.
    n, now, queued, at = b.counts[JOBS], b.counts[PATH] + 1, 1, 0
    b.counts[PATH], b.queue[0] = now, root
    while at < queued:
        node = b.queue[at]
        m = b.group[node]
        at += 1
        for i in range(b.offset[node], b.offset[node] + b.held[node]):
            b.seen[b.resident[i]] += HERE
        for k in range(n):
            if b.seen[k] >= now or b.barren[k] or b.rates[b.who[k], m] <= 0.0:
                continue
            b.seen[k], b.wanted[k] = now, node
            if b.spare[k] > 0:
                for i in range(b.offset[node], b.offset[node] + b.held[node]):
                    b.seen[b.resident[i]] -= HERE
                return k
            e = b.head[k]
            while e != NOBODY:
                other = b.on[e]
                if b.reached[other] != now and other != root:
                    b.reached[other], b.freed[other], b.queue[queued] = now, k, other
                    queued += 1
                e = b.following[e]
        for i in range(b.offset[node], b.offset[node] + b.held[node]):
            b.seen[b.resident[i]] -= HERE
    for k in range(n):
        b.barren[k] = b.barren[k] or b.seen[k] == now
    return NOBODY


# --- a round ----------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _split(b: ForkBooks, k: int, left: float, seconds: float) -> None:
    # The copies of a position start. A copy does X_h ``seconds`` units. If they would do more than is left of the job, all
    # targets shrink by one factor, so that all copies end together.
    j, e, copies = b.who[k], b.head[k], 0
    while e != NOBODY:
        b.part[copies] = b.rates[j, b.group[b.on[e]]] * seconds
        copies += 1
        e = b.following[e]
    total, factor = numpy_sum(b, copies), 1.0
    if total > left:
        factor = left / total
    e, copies = b.head[k], 0
    while e != NOBODY:
        _name(b, b.on[e], b.gang[j])
        _start(b, j, b.part[copies] * factor)
        copies += 1
        e = b.following[e]


@njit(signature=types.void(BOOKS, _I[::1], _F[::1], _I, _F, _I[::1], types.boolean), **KERNEL)
def deal(b: ForkBooks, active: Ints, left: Floats, copies: int, seconds: float, pairs: Ints, by_pairs: bool) -> None:
    """Write the copies of a round: gangs that no node holds take the fastest free nodes before the others.

    Parameters
    ----------
    b
        The books; `ForkBooks.start` and its entries are the copies.
    active
        Active jobs in order of arrival, i64[m].
    left
        Units of work that every job has left, f64[n]; used for active jobs.
    copies
        Most copies of a job.
    seconds
        Seconds of work in the round.
    pairs
        If ``by_pairs``, pairs of position and group in the order in which they get copies (`by_payoff`), i64[].
    by_pairs
        If false, the nodes go to the jobs with the most planned work left.

    Notes
    -----
    **Complexity** O(J M + copies (K + log J)) for J jobs of K kinds by planned work, then O(J N) for every copy that
    an augmenting path gains.
    """
    _begin(b, active, copies)
    for j in active:
        if b.row[j] >= 0:
            _spread(b, j, left[j])
    if by_pairs:
        _by_pairs(b, pairs)
    else:
        _by_work(b, left, seconds)
    _fill(b)
    for k in range(b.counts[JOBS]):
        _split(b, k, left[b.who[k]], seconds)


@njit(signature=types.void(_I[::1], _F[::1], _I[::1], _F[::1], _F[::1]), **KERNEL)
def tally(job: Ints, work: Floats, scratch: Ints, most: Floats, several: Floats) -> None:
    """Count the copies of each job that did something in a round.

    Parameters
    ----------
    job
        Job of every copy that ended, i64[k].
    work
        Units of work that it did, f64[k].
    scratch
        Zeros, i64[n]; they are zeros again afterwards.
    most
        Most copies of every job at once so far, f64[n]; changed.
    several
        Rounds in which every job had several copies, f64[n]; changed.
    """
    for i in range(job.size):
        if work[i] > 0.0:  # others were stopped before they had loaded anything
            scratch[job[i]] += 1
    for j in job:
        if scratch[j] > 0:
            most[j] = max(most[j], float(scratch[j]))
            several[j] += scratch[j] > 1
            scratch[j] = 0
