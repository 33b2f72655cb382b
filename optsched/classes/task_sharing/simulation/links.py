"""Transfers on the network interfaces of the nodes, compiled: exact progress at rates that change with every start and end.

A transfer of job j moves M_j bytes and occupies the interfaces of all nodes that the gang spans. With k transfers moving on
an interface a byte takes k b + (k - 1) eta seconds; a transfer is as slow as on the worst of its nodes. What is left is
brought up to date only when a rate changes, so asking for it any number of times changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import INNER, KERNEL, NESTED, njit, record
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.next_event import new_tree, set_time

ABSENT, READY, LATENT, MOVING = 0, 1, 2, 3  # Links.state
SECONDS_PER_BYTE, PENALTY, LATENCY = 0, 1, 2  # Links.cost
NOW, WORST = 0, 1  # Links.clock: the time, and the largest relative error of what a transfer moved
STARTED, CONTENDED = 0, 1  # Links.counters: transfers, and those that found another one on one of their nodes

# A place in the list of a node, of the jobs that still send, with what a look at the list asks of them.
SENDING = record(key="real", job="int", after="int", before="int")
# Scratch of rules. Of a job: what was found of it, where a search of its nodes stands. Not of this job but of the nth: the
# jobs looked at, a stack, and what was found.
SENDER = record(verdict="int", entry="int", other="int", visited="int", stacked="int", leads="int")


class Links(NamedTuple):
    """n jobs with W workers in all on N nodes; K kinds of transfers where ratios are measured."""

    message: Floats  # f64[n] bytes
    kind: Ints  # i64[n]: row of `ratio`
    ratio: Floats  # f64[K, K]; K = 0: the linear model
    cost: Floats  # f64[3]
    state: Ints  # i64[n]
    began: Floats
    left: Floats  # bytes left at `mark`
    mark: Floats
    pace: Floats  # seconds a byte takes now
    moved: Floats  # bytes: the integral of the rate, to be compared with the message
    transfers_left: Ints  # i64[n]: all-reduces that are not finished
    key: Floats  # f64[n]: who is asked first, as of the job's last all-reduce, or of its placement
    # the nodes of job j are job_node[first[j] : first[j] + span[j]]; entry e of this array is a place in the list of a node
    first: Ints
    span: Ints
    job_node: Ints
    head: Ints  # i64[N]: first entry of a node, -1: none
    after: Ints
    before: Ints
    sends: Ints  # i64[N]: the same of jobs whose all-reduces are not all finished, whether one runs or not
    sending: Any  # SENDING[W]
    senders: Any  # SENDER[n]
    running: Ints  # i64[N]: transfers that have started, whether they move yet or not
    moving: Ints  # i64[N]
    busy: Floats  # f64[N]: seconds in which something moved, up to `busy_from`
    busy_from: Floats
    tree: Floats  # when a transfer begins to move, or ends
    waiting: Ints  # i64[n]: jobs whose transfer is ready, by (key, index)
    asks: Ints  # i64[n]: is there a reason to ask about it: it is new, or one has ended on one of its nodes?
    counters: Ints
    clock: Floats


def new_links(
    message: Floats, first: Ints, span: Ints, job_node: Ints, nodes: int, cost: Floats, kind: Ints, ratio: Floats
) -> Links:
    """Return links without any transfer. The arrays are not copied.

    Parameters
    ----------
    message
        Bytes of an all-reduce of every job, f64[n].
    first
        First entry of every job in ``job_node``, i64[n + 1].
    span
        Number of nodes of every gang, i64[n]; it may be filled in later.
    job_node
        Nodes of the gangs, i64[W]; they may be filled in later.
    nodes
        Number of nodes.
    cost
        Seconds a byte, penalty and latency, f64[3].
    kind
        Row of ``ratio`` of every job, i64[n].
    ratio
        Measured ratios of two kinds of transfers, f64[K, K]; K = 0: the linear model.
    """
    n, entries = message.size, job_node.size
    sending = np.zeros(entries, dtype=SENDING)
    sending["job"] = np.repeat(np.arange(n), np.diff(first))
    return Links(
        message=message,
        kind=kind,
        ratio=ratio,
        cost=cost,
        first=first,
        span=span,
        job_node=job_node,
        sending=sending,
        senders=np.zeros(n, dtype=SENDER),
        tree=new_tree(n),
        counters=np.zeros(2, dtype=np.int64),
        clock=np.zeros(2),
        **filled(0, n, "state transfers_left waiting asks"),
        **filled(0.0, n, "began left mark pace moved key"),
        **filled(-1, entries, "after before"),
        **filled(-1, nodes, "head sends"),
        **filled(0, nodes, "running moving"),
        **filled(0.0, nodes, "busy busy_from"),
    )


def filled(value: Any, size: int, names: str) -> dict[str, Any]:
    """Return arrays of one size, filled with a value, by their names.

    Parameters
    ----------
    value
        Value of every entry, which also gives the type.
    size
        Number of entries.
    names
        Names of the arrays, separated by blanks.
    """
    return {name: np.full(size, value) for name in names.split()}


@njit(**KERNEL)
def bytes_left(s: Any, j: int) -> float:
    """Return the bytes that are left of the transfer of a job; all of them if it does not move yet.

    Parameters
    ----------
    s
        Links.
    j
        Index of the job.
    """
    if s.state[j] != MOVING:
        return float(s.message[j])
    return max(0.0, s.left[j] - (s.clock[NOW] - s.mark[j]) / s.pace[j])


@njit(**NESTED)
def most_running(s: Any, j: int) -> int:
    """Return k_max, the largest number of transfers that run on a node of a job.

    Parameters
    ----------
    s
        Links.
    j
        Index of the job.
    """
    most = 0
    for e in range(s.first[j], s.first[j] + s.span[j]):
        most = max(most, s.running[s.job_node[e]])
    return most


@njit(**NESTED)
def _pace(s: Any, j: int) -> float:
    worst = 0.0
    if s.ratio.shape[0] == 0:
        most = 0
        for e in range(s.first[j], s.first[j] + s.span[j]):
            most = max(most, s.moving[s.job_node[e]])
        return most * s.cost[SECONDS_PER_BYTE] + (most - 1) * s.cost[PENALTY]
    for e in range(s.first[j], s.first[j] + s.span[j]):
        slowness = 1.0
        other = s.head[s.job_node[e]]
        while other >= 0:
            o = s.sending[other].job
            if o != j and s.state[o] == MOVING:
                slowness /= s.ratio[s.kind[j], s.kind[o]]
            other = s.after[other]
        worst = max(worst, slowness)
    return worst * s.cost[SECONDS_PER_BYTE]


@njit(**NESTED)
def _account(s: Any, j: int) -> None:
    # Progress since the rate changed last.
    done = (s.clock[NOW] - s.mark[j]) / s.pace[j]
    s.moved[j] += done
    s.left[j] = max(0.0, s.left[j] - done)
    s.mark[j] = s.clock[NOW]


@njit(**NESTED)
def _refresh_node(s: Any, node: int) -> None:
    e = s.head[node]
    while e >= 0:
        j = s.sending[e].job
        if s.state[j] == MOVING:
            pace = _pace(s, j)
            if pace != s.pace[j]:
                if s.pace[j] > 0.0:
                    _account(s, j)
                s.pace[j] = pace
                set_time(s.tree, j, s.clock[NOW] + s.left[j] * pace)
        e = s.after[e]


@njit(**NESTED)
def begin_sending(s: Any, j: int) -> None:
    """Enter a job, whose nodes are known, in the lists of jobs that still send.

    Parameters
    ----------
    s
        Links.
    j
        Index of the job.
    """
    for e in range(s.first[j], s.first[j] + s.span[j]):
        node = s.job_node[e]
        s.sending[e].key = s.key[j]
        s.sending[e].before, s.sending[e].after = -1, s.sends[node]
        if s.sends[node] >= 0:
            s.sending[s.sends[node]].before = e
        s.sends[node] = e


@njit(**NESTED)
def set_key(s: Any, j: int, key: float) -> None:
    """Change the key by which a job is asked about.

    Parameters
    ----------
    s
        Links.
    j
        Index of the job.
    key
        The new key; smaller keys come first.
    """
    if key != s.key[j]:
        s.key[j] = key
        for e in range(s.first[j], s.first[j] + s.span[j]):
            s.sending[e].key = key


@njit(**NESTED)
def _end_sending(s: Any, j: int) -> None:
    for e in range(s.first[j], s.first[j] + s.span[j]):
        before, after = s.sending[e].before, s.sending[e].after
        if before >= 0:
            s.sending[before].after = after
        else:
            s.sends[s.job_node[e]] = after
        if after >= 0:
            s.sending[after].before = before


@njit(**NESTED)
def begin_moving(s: Any, j: int) -> None:
    """Let the transfer of a job move, whose latency is over.

    Parameters
    ----------
    s
        Links.
    j
        Index of the job.
    """
    now = s.clock[NOW]
    s.state[j] = MOVING
    s.left[j], s.mark[j], s.pace[j], s.moved[j] = s.message[j], now, 0.0, 0.0
    for e in range(s.first[j], s.first[j] + s.span[j]):
        node = s.job_node[e]
        if s.moving[node] == 0:
            s.busy_from[node] = now
        s.moving[node] += 1
    for e in range(s.first[j], s.first[j] + s.span[j]):
        _refresh_node(s, s.job_node[e])


@njit(**NESTED)
def start_transfer(s: Any, j: int) -> None:
    """Start the all-reduce of a job now; the caller has taken it out of ``waiting``.

    Parameters
    ----------
    s
        Links.
    j
        Index of the job.
    """
    s.began[j] = s.clock[NOW]
    s.counters[STARTED] += 1
    if most_running(s, j) > 0:
        s.counters[CONTENDED] += 1
    for e in range(s.first[j], s.first[j] + s.span[j]):
        node = s.job_node[e]
        s.running[node] += 1
        s.before[e] = -1
        s.after[e] = s.head[node]
        if s.head[node] >= 0:
            s.before[s.head[node]] = e
        s.head[node] = e
    if s.cost[LATENCY] > 0.0:
        s.state[j] = LATENT
        set_time(s.tree, j, s.clock[NOW] + s.cost[LATENCY])
    else:
        begin_moving(s, j)


@njit(**NESTED)
def _ask_again(s: Any, node: int) -> None:
    # About all who wait here. (Of the others none waits before it is new.)
    e = s.sends[node]
    while e >= 0:
        s.asks[s.sending[e].job] = 1
        e = s.sending[e].after


@njit(**NESTED)
def end_transfer(s: Any, j: int) -> None:
    """End the transfer of a job: its nodes become free, and the other transfers go on at their new rates.

    Parameters
    ----------
    s
        Links.
    j
        Index of the job.
    """
    now = s.clock[NOW]
    _account(s, j)
    s.clock[WORST] = max(s.clock[WORST], abs(s.moved[j] - s.message[j]) / s.message[j])
    s.state[j], s.left[j] = ABSENT, 0.0
    s.transfers_left[j] -= 1
    if s.transfers_left[j] == 0:
        _end_sending(s, j)
    set_time(s.tree, j, np.inf)
    for e in range(s.first[j], s.first[j] + s.span[j]):
        node = s.job_node[e]
        s.running[node] -= 1
        s.moving[node] -= 1
        _ask_again(s, node)
        if s.moving[node] == 0:
            s.busy[node] += now - s.busy_from[node]
        if s.before[e] >= 0:
            s.after[s.before[e]] = s.after[e]
        else:
            s.head[node] = s.after[e]
        if s.after[e] >= 0:
            s.before[s.after[e]] = s.before[e]
    for e in range(s.first[j], s.first[j] + s.span[j]):
        _refresh_node(s, s.job_node[e])


@njit(**INNER)
def join(queue: Any, size: int, key: Any, j: int) -> int:
    """Insert a job into a queue by (key, index), and return the new length. O(size).

    Parameters
    ----------
    queue
        Jobs in order, i64[]; it has room for one more.
    size
        Length of the queue.
    key
        Key of every job, f64[n].
    j
        Index of the job.
    """
    i = size
    while i > 0:
        o = queue[i - 1]
        if key[o] < key[j] or (key[o] == key[j] and o < j):
            break
        queue[i] = o
        i -= 1
    queue[i] = j
    return size + 1


@njit(**NESTED)
def join_waiting(s: Any, j: int, size: int) -> int:
    """Insert a job into the list of those that wait, and return the new length; see `join`.

    Parameters
    ----------
    s
        Links.
    j
        Index of the job.
    size
        Number of jobs that wait.
    """
    s.state[j], s.asks[j] = READY, 1
    return join(s.waiting, size, s.key, j)


@njit(**NESTED)
def leave_waiting(s: Any, i: int, size: int) -> int:
    """Remove a job from the list of those that wait, and return the new length. O(size).

    Parameters
    ----------
    s
        Links.
    i
        Position of the job in the list.
    size
        Number of jobs that wait.
    """
    for k in range(i, size - 1):
        s.waiting[k] = s.waiting[k + 1]
    return size - 1


@njit(**NESTED)
def is_asked(s: Any, j: int) -> bool:
    """Tell if there is a new reason to ask about the transfer of a job. The reason is then used up.

    Parameters
    ----------
    s
        Links.
    j
        Index of the job.
    """
    asked = s.asks[j] != 0
    s.asks[j] = 0
    return bool(asked)
