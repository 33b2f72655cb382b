"""How many GPUs a plan takes at every moment from now on: a search tree of its changes, compiled.

``first_above`` finds the first moment at which more than so many GPUs are taken. The tree is a treap in one array: node x is
change x of the plan, in order of (time, number), below nodes of higher rank; every node knows the sum of the changes in its
subtree and the greatest sum of some first ones of them. Changes up to the present are added up and leave the tree. Changes
that free GPUs have smaller numbers than those that take some: at one moment GPUs are freed before they are taken.
**Complexity** O(log m) expected for each, m changes to come.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit, record
from optsched.compiled.heap import INNER, KERNEL
from optsched.problem.arrays import Ints

CHANGE = record(
    time="real",
    gpus="int",  # how many more are taken from `time` on
    total="int",  # of its subtree
    highest="int",  # the greatest sum of some first changes of its subtree
    left="short",  # -1: none
    right="short",
    rank="int",
)
PRESENT = record(time="real", taken="int")
DEEPEST = 512  # of a path: with 10**7 changes some 60 are expected


class Usage(NamedTuple):
    """Changes 0 .. m - 1, and behind them one whose left child is the root."""

    changes: Any  # CHANGE[m + 1]
    present: Any  # PRESENT[1]
    path: Ints  # scratch


def new_usage(changes: int) -> Usage:
    """Nothing is taken, ever."""
    nodes, present = np.zeros(changes + 1, dtype=CHANGE), np.zeros(1, dtype=PRESENT)
    nodes["left"] = nodes["right"] = -1
    nodes["rank"][:-1] = np.random.default_rng(0).permutation(changes)
    present["time"] = -np.inf
    return Usage(nodes, present, np.zeros(DEEPEST, dtype=np.int64))


@njit(**INNER)
def _precedes(p: Usage, x: int, y: int) -> bool:
    one, two = p.changes[x].time, p.changes[y].time
    return bool(one < two or (one == two and x < y))


@njit(**INNER)
def _hang(p: Usage, over: int, left: bool, x: int) -> None:
    if left:
        p.changes[over].left = x
    else:
        p.changes[over].right = x


@njit(**KERNEL)
def _sum_up(p: Usage, depth: int) -> None:
    # Sums of the nodes on the path, the deepest first.
    while depth > 0:
        depth -= 1
        node = p.changes[p.path[depth]]
        before, highest = 0, -(2**62)
        if node.left >= 0:
            before, highest = p.changes[node.left].total, p.changes[node.left].highest
        node.total = before + node.gpus
        node.highest = max(highest, node.total)
        if node.right >= 0:
            node.highest = max(node.highest, node.total + p.changes[node.right].highest)
            node.total += p.changes[node.right].total


@njit(**KERNEL)
def _above(p: Usage, x: int) -> tuple[int, int]:
    # Who hangs over x, or would, and how many nodes there are on the path to it.
    over, y, depth = p.changes.size - 1, p.changes[p.changes.size - 1].left, 0
    while y >= 0 and y != x and p.changes[y].rank > p.changes[x].rank:
        p.path[depth] = y
        depth += 1
        over = y
        y = p.changes[y].left if _precedes(p, x, y) else p.changes[y].right
    return over, depth


@njit(**KERNEL)
def _enter(p: Usage, x: int) -> None:
    over, depth = _above(p, x)
    left = over == p.changes.size - 1 or _precedes(p, x, over)
    y = p.changes[over].left if left else p.changes[over].right
    _hang(p, over, left, x)
    p.path[depth] = x
    depth += 1
    before, after = x, x  # where the next node that precedes x hangs, and the next that follows
    while y >= 0:
        p.path[depth] = y
        depth += 1
        if _precedes(p, y, x):
            _hang(p, before, before == x, y)
            before, y = y, p.changes[y].right
        else:
            _hang(p, after, after != x, y)
            after, y = y, p.changes[y].left
    _hang(p, before, before == x, -1)
    _hang(p, after, after != x, -1)
    _sum_up(p, depth)


@njit(**KERNEL)
def _leave(p: Usage, x: int) -> None:
    over, depth = _above(p, x)
    left = over == p.changes.size - 1 or _precedes(p, x, over)
    one, two = p.changes[x].left, p.changes[x].right
    while one >= 0 and two >= 0:
        higher = one if p.changes[one].rank > p.changes[two].rank else two
        _hang(p, over, left, higher)
        p.path[depth] = higher
        depth += 1
        over, left = higher, higher == two
        if higher == one:
            one = p.changes[one].right
        else:
            two = p.changes[two].left
    _hang(p, over, left, max(one, two))
    _sum_up(p, depth)


@njit(**KERNEL)
def take(p: Usage, x: int, time: float, gpus: int) -> None:
    """Change ``x``: from ``time`` on ``gpus`` more are taken."""
    change = p.changes[x]
    change.time, change.gpus = time, gpus
    if time <= p.present[0].time:
        p.present[0].taken += gpus
    else:
        _enter(p, x)


@njit(**KERNEL)
def take_back(p: Usage, x: int) -> None:
    """Change ``x`` is none any more."""
    change = p.changes[x]
    if change.time <= p.present[0].time:
        p.present[0].taken -= change.gpus
    else:
        _leave(p, x)


@njit(**KERNEL)
def proceed(p: Usage, now: float) -> None:
    """The present is ``now``, not earlier than it was."""
    while True:
        x, y = -1, p.changes[p.changes.size - 1].left
        while y >= 0:
            x, y = y, p.changes[y].left
        if x < 0 or p.changes[x].time > now:
            break
        _leave(p, x)
        p.present[0].taken += p.changes[x].gpus
    p.present[0].time = now


@njit(**KERNEL)
def first_above(p: Usage, gpus: int) -> float:
    """The first moment from now on at which more than ``gpus`` are taken; inf: none."""
    taken, x = p.present[0].taken, p.changes[p.changes.size - 1].left
    if taken > gpus:
        return float(p.present[0].time)
    if x < 0 or taken + p.changes[x].highest <= gpus:
        return np.inf
    while True:
        node = p.changes[x]
        if node.left >= 0 and taken + p.changes[node.left].highest > gpus:
            x = node.left
            continue
        taken += node.gpus + (p.changes[node.left].total if node.left >= 0 else 0)
        if taken > gpus:
            return float(node.time)
        x = node.right
