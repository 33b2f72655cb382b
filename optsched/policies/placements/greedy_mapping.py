"""Which servers a gang takes, and its replicas on them, by the Heavy-Edge greedy.

The servers: best fit for the rest, else the most free GPUs. The greedy fills one after the other, ends of the heaviest edge
first, then the closest replica.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import NESTED
from optsched.policies.placements.mapping import (
    FALLS,
    FIRST,
    GAIN,
    LEFT,
    LONELY,
    NODE,
    SERVER,
    SHARE,
    TIE,
    Mapping,
    clear,
    keep,
    mapping_pace,
    put,
    recall,
)


@njit(**NESTED)
def choose_servers(gpus: int, free: Any, eligible: Any, out_node: Any, out_count: Any) -> int:
    """Write the servers in the order in which they are taken and the GPUs of each; their number, 0: too few are free.

    While GPUs are missing: the server with the fewest free GPUs that holds the rest, else the one with the most. Ties:
    the lowest number. Complexity O(nodes x servers taken).
    """
    left, entries = gpus, 0
    # The servers taken so far are the first in order of (most free, lowest number); this is the last one of them.
    last_free, last = -1, -1
    while left > 0:
        fitting, fullest = -1, -1
        for m in range(free.size):
            if not eligible[m] or free[m] <= 0:
                continue
            if entries > 0 and (free[m] > last_free or (free[m] == last_free and m <= last)):
                continue
            if free[m] >= left and (fitting < 0 or free[m] < free[fitting]):
                fitting = m
            if fullest < 0 or free[m] > free[fullest]:
                fullest = m
        m = fitting if fitting >= 0 else fullest
        if m < 0:
            return 0
        out_node[entries] = m
        out_count[entries] = min(left, free[m])
        left -= out_count[entries]
        last_free, last = free[m], m
        entries += 1
    return entries


@njit(**NESTED)
def set_servers(x: Mapping, servers: int, node: Any, share: Any) -> None:
    """Fill ``share[k]`` GPUs of ``node[k]``, k < ``servers``, in this order."""
    for k in range(servers):
        c = 0
        while x.whole[NODE, c] != node[k]:
            c += 1
        x.whole[SERVER, k] = c
        x.whole[SHARE, k] = share[k]


@njit(**NESTED)
def fill_servers(x: Mapping, servers: int, seed: int) -> None:
    """The greedy; ``seed`` >= 0: a replica of that stage is placed first.

    A server opens with both ends of the heaviest edge between replicas that are left (if it takes two), else with the
    replica that has the least weight to the others left; then comes, again and again, the replica with the most weight to
    those on the server. Ties: the lowest stage. Complexity O(g (S + E)).
    """
    w, f = x.whole, x.real
    clear(x)
    for s in range(x.stages):
        w[LEFT, s] = w[FIRST, s + 1] - w[FIRST, s]
    for k in range(servers):
        for s in range(x.stages):
            f[GAIN, s] = 0.0
        placed = 0
        first, second = _opening(x, w[SHARE, k]) if k > 0 or seed < 0 else (seed, -1)
        while placed < w[SHARE, k]:
            s = first if placed == 0 else second if placed == 1 and second >= 0 else _closest(x)
            _settle(x, s, w[SERVER, k])
            placed += 1


@njit(**NESTED)
def fill_from_every_seed(x: Mapping, servers: int, seeds: int) -> float:
    """The best of the greedy's mappings without a seed and from stages 0..seeds-1; its alpha. The first of equals."""
    best, seed = 0.0, np.int64(-1)  # typed: a literal would have fill_servers compiled once more
    while seed < seeds:
        fill_servers(x, servers, seed)
        alpha = mapping_pace(x)
        if seed < 0 or alpha < best * FALLS:
            best = alpha
            keep(x)
        if best <= x.fastest:
            break
        seed += 1
    recall(x)
    return best


@njit(**NESTED)
def _settle(x: Mapping, s: int, c: int) -> None:
    f, one = x.real, np.int64(1)
    put(x, s, c, one)
    x.whole[LEFT, s] -= one
    f[GAIN, s] += f[TIE, s]
    for e in range(x.edges.size):
        edge = x.edges[e]
        if edge.tail == s:
            f[GAIN, edge.head] += edge.pair
        elif edge.head == s:
            f[GAIN, edge.tail] += edge.pair


@njit(**NESTED)
def _opening(x: Mapping, share: int) -> tuple[int, int]:
    # The ends of the heaviest edge between two replicas that are left, of one stage or of neighbours; the lowest pair of
    # equals. Without such an edge or two free GPUs: the loneliest replica, and -1.
    left, a, b, weight = x.whole[LEFT], -1, -1, -1.0
    if share >= 2:
        for s in range(x.stages):
            if left[s] >= 2 and x.real[TIE, s] > weight:
                a, b, weight = s, s, x.real[TIE, s]
        for e in range(x.edges.size):
            edge = x.edges[e]
            s, u = min(edge.tail, edge.head), max(edge.tail, edge.head)
            if left[s] == 0 or left[u] == 0:
                continue
            if edge.pair > weight or (edge.pair == weight and (s < a or (s == a and u < b))):
                a, b, weight = s, u, edge.pair
    return (a, b) if a >= 0 else (_loneliest(x), -1)


@njit(**NESTED)
def _loneliest(x: Mapping) -> int:
    left, lonely = x.whole[LEFT], x.real[LONELY]
    for s in range(x.stages):
        lonely[s] = (left[s] - 1) * x.real[TIE, s]
    for e in range(x.edges.size):
        edge = x.edges[e]
        lonely[edge.tail] += edge.pair * left[edge.head]
        lonely[edge.head] += edge.pair * left[edge.tail]
    chosen = -1
    for s in range(x.stages):
        if left[s] > 0 and (chosen < 0 or lonely[s] < lonely[chosen]):
            chosen = s
    return chosen


@njit(**NESTED)
def _closest(x: Mapping) -> int:
    left, gain, chosen = x.whole[LEFT], x.real[GAIN], -1
    for s in range(x.stages):
        if left[s] > 0 and (chosen < 0 or gain[s] > gain[chosen]):
            chosen = s
    return chosen
