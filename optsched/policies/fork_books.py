"""The books of a round of HadarE: jobs, nodes and copies as arrays, and sums that are rounded as numpy's.

Jobs of a round are numbered by position, in order of arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from optsched.compiled import NESTED, njit
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.speeds.type_speeds import GroupRates

JOBS, USED, VACANT, PATH, OPEN, STARTS, ENTRIES = range(7)  # of ``counts``
BLOCK, LANES = 128, 8  # of numpy's sums
NOBODY = -1


class ForkBooks(NamedTuple):
    """Everything that `deal` reads and writes about n jobs, N nodes in M groups and G GPUs; ``counts`` i64[7].

    ``gang``, ``kind`` i64[n]: GPUs of every job, and its kind: jobs of one kind have equal gangs and run on the same groups.
    ``rates`` f64[n, M] (0: may not run), their ``mean`` over the nodes f64[n]. Of jobs that no node holds: ``spread`` rates
    f64[n, M], ``row`` i64[n] of ``eligible`` bool[C, N]. ``group``, ``size``, ``free`` i64[N], ``nodes`` in the order in
    which they are given, ``sorted`` and ``key`` to find it; ``speed`` f64[M].

    By position: ``who``, copies to ``spare``, ``plan``, ``urgency``; ``heap`` of each kind from ``base`` on, ``heaped``
    of them, ``present`` kinds, jobs ``aside``; the copies of a job from ``head`` to ``tail``, entry after entry by
    ``following``, each ``on`` a node; ``resident`` from ``offset[h]`` on: the ``held[h]`` positions on node h.
    Of augmenting paths: the path in which a position was ``seen``, the node that it is ``wanted`` on; the path in which a
    node was ``reached``, the position that would leave it (``freed``), the ``queue``; ``barren`` positions.
    Start k of the round: ``start``, its ``work``, on ``gpus`` GPUs of ``node``, entries ``first[k]`` to ``first[k + 1]``.
    ``part`` are the terms of `numpy_sum`; ``sums``, ``depth`` and ``pending`` are its scratch.
    """

    counts: Ints
    gang: Ints
    kind: Ints
    rates: Floats
    mean: Floats
    spread: Floats
    row: Ints
    eligible: Bools
    group: Ints
    size: Ints
    free: Ints
    nodes: Ints
    sorted: Ints
    key: Floats
    speed: Floats
    who: Ints
    spare: Ints
    plan: Floats
    urgency: Floats
    heap: Ints
    base: Ints
    heaped: Ints
    present: Ints
    aside: Ints
    head: Ints
    tail: Ints
    following: Ints
    on: Ints
    offset: Ints
    held: Ints
    resident: Ints
    seen: Ints
    wanted: Ints
    barren: Bools
    reached: Ints
    freed: Ints
    queue: Ints
    start: Ints
    work: Floats
    first: Ints
    node: Ints
    gpus: Ints
    part: Floats
    sums: Floats
    depth: Ints
    pending: Ints


def books(groups: GroupRates, rates: Floats) -> ForkBooks:
    """Return books without copies.

    Parameters
    ----------
    groups
        Gangs, nodes and groups of the cluster.
    rates
        Units of work a second that the policy believes in, f64[n, M]; the books share the array.
    """
    (n, count), nodes, total = rates.shape, groups.node_gpus.size, int(groups.node_gpus.sum())

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    kind = np.unique(np.column_stack([groups.gang, rates > 0]), axis=0, return_inverse=True)[1] if n else ints(0)
    kinds = int(kind.max(initial=0)) + 1
    who, spare, heap, head, tail, seen, wanted = ints(7, n)
    return ForkBooks(
        counts=ints(7), gang=groups.gang.astype(np.int64), kind=kind.reshape(-1).astype(np.int64), rates=rates,
        mean=mean_rates(rates, groups.node_group), spread=np.zeros((0, count)),
        row=np.where(groups.hosts.any(axis=1), NOBODY, 0),
        eligible=np.zeros((0, nodes), dtype=bool), group=groups.node_group.astype(np.int64),
        size=groups.node_gpus.astype(np.int64), free=ints(nodes), nodes=ints(nodes), sorted=ints(nodes),
        key=np.zeros(nodes), speed=np.zeros(count), who=who, spare=spare, plan=np.zeros(n), urgency=np.zeros(n), heap=heap,
        base=ints(kinds), heaped=ints(kinds), present=ints(kinds), aside=ints(total), head=head, tail=tail,
        following=ints(total + 1), on=ints(total + 1),
        offset=np.append(0, np.cumsum(groups.node_gpus + 1)).astype(np.int64), held=ints(nodes),
        resident=ints(total + nodes), seen=seen, wanted=wanted, barren=np.zeros(n, dtype=bool), reached=ints(nodes),
        freed=ints(nodes), queue=ints(nodes), start=ints(total), work=np.zeros(total), first=ints(total + 1),
        node=ints(total), gpus=ints(total), part=np.zeros(nodes), sums=np.zeros(64),
        depth=ints(64), pending=ints(3, 64),
    )  # fmt: skip


def mean_rates(rates: Floats, node_group: Ints) -> Floats:
    """Return the mean rate of jobs over the nodes that can host them, f64[k]; 1 for jobs without such a node.

    Parameters
    ----------
    rates
        Units of work a second on a node of each group, f64[k, M].
    node_group
        Group of every node, i64[N].
    """
    count = np.bincount(node_group, minlength=rates.shape[1])
    hosts = np.where(rates > 0, count, 0).sum(axis=1)
    mean: Floats = np.where(hosts > 0, (rates * count).sum(axis=1), 1.0) / np.maximum(hosts, 1)
    return mean


class _Groups(GroupRates):
    # One job on one node: to know the types of the books.
    def __init__(self) -> None:
        self.gang = self.node_gpus = np.ones(1, dtype=np.int64)
        self.node_group, self._real = np.zeros(1, dtype=np.int64), np.ones((1, 1))


BOOKS = numba.typeof(books(_Groups(), np.ones((1, 1))))


# --- sums -------------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _lanes(part: Floats, at: int, n: int) -> float:
    total = 0.0
    if n < LANES:
        for i in range(at, at + n):
            total += part[i]
        return total
    a, b, c, d = part[at], part[at + 1], part[at + 2], part[at + 3]
    e, f, g, h = part[at + 4], part[at + 5], part[at + 6], part[at + 7]
    i = at + LANES
    while i + LANES <= at + n:
        a, b, c, d = a + part[i], b + part[i + 1], c + part[i + 2], d + part[i + 3]
        e, f, g, h = e + part[i + 4], f + part[i + 5], g + part[i + 6], h + part[i + 7]
        i += LANES
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    while i < at + n:
        total += part[i]
        i += 1
    return total


@njit(**NESTED)
def numpy_sum(b: ForkBooks, n: int) -> float:
    """Return the sum of the first ``n`` terms in ``part``, rounded as `numpy.sum` does: by halves, in eight lanes.

    Parameters
    ----------
    b
        The books.
    n
        Number of terms.
    """
    if n <= BLOCK:
        return _lanes(b.part, 0, n)
    # Halves that are left to add, and sums of halves with their depths; two sums of one depth are added.
    pending, sums, waiting = b.pending, 0, 1
    pending[0, 0], pending[1, 0], pending[2, 0] = 0, n, 0
    while waiting > 0:
        waiting -= 1
        at, size, level = pending[0, waiting], pending[1, waiting], pending[2, waiting]
        if size > BLOCK:
            half = size // 2
            half -= half % LANES
            pending[0, waiting], pending[1, waiting], pending[2, waiting] = at + half, size - half, level + 1
            waiting += 1
            pending[0, waiting], pending[1, waiting], pending[2, waiting] = at, half, level + 1
            waiting += 1
            continue
        value = _lanes(b.part, at, size)
        while sums > 0 and b.depth[sums - 1] == level:
            sums -= 1
            level -= 1
            value = b.sums[sums] + value
        b.sums[sums], b.depth[sums] = value, level
        sums += 1
    return float(b.sums[0])
