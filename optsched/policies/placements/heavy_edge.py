"""``heavy-edge``: replicas that exchange much data share a server, so that little goes between servers.

A greedy rule and its improvements. A job's replicas are the vertices of a graph whose edges weigh the bytes of an
iteration; servers are chosen best fit first, filled along the heaviest edges and perhaps improved by local search.

**Guarantee**: none known, and none with a constant: on 3+3+1 replicas and 4+4 free GPUs the plain greedy is 7.6 times
as slow as the best mapping (`optsched.models.gpu_mapping`), and every variant 6.3 times on 3+3 replicas and 2, 3, 4
free GPUs. Always alpha_min <= alpha <= alpha_max. **Reference**: Luo, Liu, Lee, Shroff, Prediction-assisted online
distributed deep learning workload scheduling in GPU clusters, INFOCOM 2025 (the idea); the steps are this project's
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit
from optsched.errors import InputError
from optsched.policies.placements import PLACEMENTS, SetPlacement
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
    descend,
    keep,
    mapping_pace,
    new_mapping,
    put,
    recall,
    write_entries,
)
from optsched.problem.arrays import Ints
from optsched.problem.profile import Profile
from optsched.registry import near_matches
from optsched.simulation.placement import SIGNATURE, Placement
from optsched.speeds.network import Network
from optsched.speeds.speed_tables import tables_of
from optsched.speeds.stage_graph import iteration_time


@njit(**NESTED)
def choose_servers(gpus: int, free: Any, eligible: Any, out_node: Any, out_count: Any) -> int:
    """Write the servers in the order in which they are taken, and the GPUs of each.

    While GPUs are missing, take the server with the fewest free GPUs that holds the rest; if none does, the one with
    the most. Ties go to the lowest number. Complexity O(nodes x servers taken).

    Parameters
    ----------
    gpus
        GPUs of the gang.
    free
        Free GPUs of every node, i64[N].
    eligible
        Nodes that the job may use, bool[N].
    out_node, out_count
        Output: node and GPUs of every entry.

    Returns
    -------
    int
        Number of servers; 0: too few GPUs are free.
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
def fill_servers(x: Mapping, servers: int, seed: int) -> None:
    """Fill the servers greedily along the heaviest edges.

    A server opens with both ends of the heaviest edge between unplaced replicas (if it takes two), otherwise with the
    replica that has the least weight to the other unplaced ones. Then follows, again and again, the replica with the
    most weight to those on the server. Ties go to the lowest stage. Complexity O(g (S + E)).

    Parameters
    ----------
    x
        The mapping, which is cleared first.
    servers
        Number of servers to be filled.
    seed
        Stage of the first replica; < 0: the rule above.
    """
    w, f, one = x.whole, x.real, np.int64(1)
    clear(x)
    for s in range(x.stages):
        w[LEFT, s] = w[FIRST, s + 1] - w[FIRST, s]
    for k in range(servers):
        for s in range(x.stages):
            f[GAIN, s] = 0.0
        placed = 0
        first, second = _opening(x, w[SHARE, k]) if k > 0 or seed < 0 else (seed, -1)
        while placed < w[SHARE, k]:
            s = first if placed == 0 else second if placed == 1 else -1
            if s < 0:  # the closest
                for u in range(x.stages):
                    if w[LEFT, u] > 0 and (s < 0 or f[GAIN, u] > f[GAIN, s]):
                        s = u
            put(x, s, w[SERVER, k], one)
            placed += 1
            w[LEFT, s] -= one
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
    if a >= 0:
        return a, b
    lonely = x.real[LONELY]
    for s in range(x.stages):
        lonely[s] = (left[s] - 1) * x.real[TIE, s]
    for e in range(x.edges.size):
        edge = x.edges[e]
        lonely[edge.tail] += edge.pair * left[edge.head]
        lonely[edge.head] += edge.pair * left[edge.tail]
    for s in range(x.stages):
        if left[s] > 0 and (a < 0 or lonely[s] < lonely[a]):
            a = s
    return a, -1


# A variant: the greedy starts from every seed (0 or 1), local search follows (0 or 1), and the largest number of replicas
# for both. These numbers follow the state of the random numbers, at these positions.
SEEDS, SEARCH, GREATEST = 1, 2, 3
VARIANTS = {
    "auto": (1, 1, 32),
    "plain": (0, 0, 0),
    "multi-seed": (1, 0, 2**31),
    "local-search": (0, 1, 2**31),
}


# Not `compiled`: a caller with reference counts would release the arrays that `new_mapping` returns.
@njit(signature=SIGNATURE, **KERNEL)
def _greedily(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    servers = choose_servers(gpus, free, eligible, out_node, out_count)
    if servers == 0 or tables.jobs[job].profile < 0:
        return servers
    x, small = new_mapping(tables, job, free, eligible), gpus <= np.int64(random[GREATEST])
    for k in range(servers):  # fill this number of GPUs of these servers, in this order
        c = 0
        while x.whole[NODE, c] != out_node[k]:
            c += 1
        x.whole[SERVER, k], x.whole[SHARE, k] = c, out_count[k]
    # The best of the greedy's mappings, the first of equals: without a seed, then from every stage.
    best, seed = 0.0, np.int64(-1)  # typed: a literal would have fill_servers compiled once more
    while seed < (x.stages if random[SEEDS] > 0 and small else 0):
        fill_servers(x, servers, seed)
        alpha = mapping_pace(x, np.inf if seed < 0 else best * FALLS)
        if seed < 0 or alpha < best * FALLS:
            best = alpha
            keep(x)
        if best <= x.fastest:
            break
        seed += 1
    recall(x)
    if random[SEARCH] > 0 and small:
        descend(x)
    return write_entries(x, out_node, out_count)


@PLACEMENTS.register("heavy-edge")
def heavy_edge(variant: str = "auto") -> Placement:
    """A gang starts whenever enough eligible GPUs are free; its replicas go where little data crosses servers.

    Variants: the ``plain`` greedy; ``multi-seed``, the best of the greedy's runs from every stage and without a seed;
    ``local-search``, plain, then moves of a replica and swaps of two while alpha falls; ``auto``, both up to 32
    replicas, otherwise plain. For jobs without a profile only servers are chosen. Complexity, S stages, E edges, K
    servers taken of N, C with free GPUs: plain O(N K + g (S + E) + S C); multi-seed S times as much; a pass of the
    local search O(g C + g^2) alphas.

    Parameters
    ----------
    variant
        ``auto``, ``plain``, ``multi-seed`` or ``local-search``.

    Raises
    ------
    InputError
        For an unknown variant.
    """
    if variant not in VARIANTS:
        legal = near_matches(variant, list(VARIANTS), kind="variant")
        raise InputError("there is no such variant", field="heavy-edge: variant", value=variant, legal=legal)
    return SetPlacement("heavy-edge", _greedily, any_free=True, settings=VARIANTS[variant])


def map_job(
    profile: Profile, network: Network, free: Sequence[int] | Ints, variant: str = "auto"
) -> tuple[Ints, float]:
    """Map the replicas of one job to nodes by ``heavy-edge``.

    Parameters
    ----------
    profile
        Graph of stages of the job.
    network
        Nodes and their bandwidths.
    free
        Free GPUs of every node, i64[N].
    variant
        Variant of `heavy_edge`.

    Returns
    -------
    tuple
        Node of every replica, i64[g] stage after stage, and the iteration time alpha in seconds.

    Raises
    ------
    InputError
        For an unknown variant, or if fewer than g GPUs are free.

    Examples
    --------
    >>> import optsched as osd
    >>> profile = osd.zoo_profile("vgg19", gpus=4, parallelism="pipeline")
    >>> network = osd.Network.of(osd.load("ddl-04-1").cluster)
    >>> nodes, seconds = osd.map_job(profile, network, free=[4, 4])
    >>> nodes.tolist()
    [0, 0, 0, 0]
    """
    rule = heavy_edge(variant)
    offered = np.array(free, dtype=np.int64)  # a copy: the rule is compiled for arrays that can be written
    # `InputError` unless ``free`` names a number of GPUs >= 0 for every node and offers enough for the job.
    if offered.shape != network.gpus.shape or (offered < 0).any():
        legal = f"a number of GPUs >= 0 for each of {network.gpus.size} nodes"
        raise InputError("invalid", field="free", value=offered.tolist(), legal=legal)
    if int(offered.sum()) < profile.gpus:
        legal = f"at least {profile.gpus} free GPUs, one for each replica"
        raise InputError("too few free GPUs", field="free", value=offered.tolist(), legal=legal)
    gang = profile.gpus
    out = np.zeros((2, gang), dtype=np.int64)
    t = tables_of([profile], np.zeros(1, dtype=np.int64), network)
    eligible, size = np.ones(offered.size, dtype=np.bool_), np.maximum(network.gpus, offered)
    entries = rule.place(0, gang, offered, size, eligible, rule.random_state(), t, out[0], out[1])
    nodes = np.repeat(out[0, :entries], out[1, :entries])
    return nodes, iteration_time(profile, network, nodes.tolist())
