"""``heavy-edge``: replicas that exchange much data share a server, so that little goes between servers.

A greedy rule and its improvements. A job's replicas are the vertices of a graph whose edges weigh the
bytes of an iteration; servers are chosen best fit first, filled along the heaviest edges (both in `greedy_mapping`) and
perhaps improved (`local_search_mapping`).

**Guarantee**: none known, and none with a constant: on 3+3+1 replicas and 4+4 free GPUs the plain greedy is 7.6 times as
slow as the best mapping, and every greedy variant 6.3 times on 3+3 replicas and 2, 3, 4 free GPUs (``stage-moves`` finds
both). Always alpha_min <= alpha <= alpha_max.
**Reference**: Luo, Liu, Lee, Shroff, Prediction-assisted online distributed deep learning workload scheduling in GPU
clusters, INFOCOM 2025 (the idea); the steps are this project's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import KERNEL, NESTED
from optsched.errors import InputError, check_legal
from optsched.policies.placements import PLACEMENTS
from optsched.policies.placements.greedy_mapping import (
    choose_servers,
    fill_at_random,
    fill_from_every_seed,
    set_servers,
)
from optsched.policies.placements.local_search_mapping import descend
from optsched.policies.placements.mapping import (
    FALLS,
    FIRST,
    HELD,
    SERVER,
    TWIN,
    VACANT,
    Mapping,
    clear,
    keep,
    mapping_pace,
    new_mapping,
    put,
    recall,
    take,
    write_entries,
)
from optsched.problem.arrays import Ints
from optsched.problem.profile import Profile
from optsched.registry import near_matches
from optsched.simulation.placing import SIGNATURE, Placement
from optsched.speeds.network import Network
from optsched.speeds.speed_tables import tables_of
from optsched.speeds.stage_graph import iteration_time

SMALL = 32  # replicas of the largest job that `auto` takes trouble over
ANY = 2**31

# The settings of a variant follow the state of its random numbers, u64[1 + 4].
SEEDS, LEVELS, GREATEST, ENUMERATED = 1, 2, 3, 4


# Not `compiled`: a caller with reference counts would release the arrays that `new_mapping` hands out.
@njit(SIGNATURE, **KERNEL)
def _greedily(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    servers = choose_servers(gpus, free, eligible, out_node, out_count)
    if servers == 0 or tables.jobs[job].profile < 0:
        return servers
    x = new_mapping(tables, job, free, eligible)
    _fill_and_improve(x, servers, gpus, random, out_node, out_count)
    return write_entries(x, out_node, out_count)


@njit(SIGNATURE, interpreted=False, **KERNEL)  # it may take long
def _enumerating(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    servers = choose_servers(gpus, free, eligible, out_node, out_count)
    if servers == 0 or tables.jobs[job].profile < 0:
        return servers
    x = new_mapping(tables, job, free, eligible)
    _fill_and_improve(x, servers, gpus, random, out_node, out_count)
    if gpus <= np.int64(random[ENUMERATED]):
        enumerate_mappings(x)
    return write_entries(x, out_node, out_count)


@njit(SIGNATURE, **KERNEL)
def _at_random(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    servers = choose_servers(gpus, free, eligible, out_node, out_count)
    if servers == 0 or tables.jobs[job].profile < 0:
        return servers
    x = new_mapping(tables, job, free, eligible)
    fill_at_random(x, random)
    return write_entries(x, out_node, out_count)


@njit(**NESTED)
def _fill_and_improve(x: Mapping, servers: int, gpus: int, random: Any, node: Any, share: Any) -> None:
    small = gpus <= np.int64(random[GREATEST])
    set_servers(x, servers, node, share)
    fill_from_every_seed(x, servers, x.stages if random[SEEDS] > 0 and small else 0)
    if random[LEVELS] > 0 and small:
        descend(x, np.int64(random[LEVELS]))


@dataclass(frozen=True)
class Variant:
    """How a mapping is sought: by the greedy (from every seed?), then ``levels`` of local search, in ``place``.

    Seeds and local search for jobs of at most ``greatest`` replicas, enumeration for at most ``enumerated``.
    """

    seeds: bool = False
    levels: int = 0
    greatest: int = ANY
    enumerated: int = 0
    place: Callable[..., int] = _greedily


# The best mapping of a small job: every way to spread its replicas, but for those that are certainly no better.
#
# Depth first over the replicas, stage after stage; alike replicas take servers in ascending order, of alike empty servers
# with as many free GPUs only the first is tried, and a branch ends when the replicas placed so far already take as long as
# the best mapping known (what is not placed only adds traffic: `mapping_pace`).

EXACT = 8  # replicas of the largest job that a placement rule maps this way


@njit(**NESTED)
def enumerate_mappings(x: Mapping) -> float:
    """Put the best mapping into ``x``, which holds any mapping of all replicas to start from; its alpha.

    Complexity O(C^g) alphas at worst, C candidates and g replicas; far fewer when servers are alike or alpha_min is met.
    """
    best = mapping_pace(x)
    if best <= x.fastest:
        return best
    keep(x)
    clear(x)
    w, one = x.whole, np.int64(1)
    q, s = np.int64(0), np.int64(0)  # replica q, of stage s, is on candidate SERVER[q], -1: none yet
    w[SERVER, 0] = -1
    while q >= 0:
        while q < w[FIRST, s]:
            s -= 1
        if w[SERVER, q] >= 0:
            take(x, s, w[SERVER, q], one)
        w[SERVER, q] = _next_candidate(x, s, q)
        if w[SERVER, q] < 0:
            q -= 1
            continue
        put(x, s, w[SERVER, q], one)
        alpha = mapping_pace(x)
        if alpha >= best * FALLS:
            continue
        if q + 1 == w[FIRST, x.stages]:
            best = alpha
            keep(x)
            continue
        q += 1
        w[SERVER, q] = -1
        while q == w[FIRST, s + 1]:
            s += 1
    recall(x)
    return best


@njit(**NESTED)
def _next_candidate(x: Mapping, s: int, q: int) -> int:
    # The next candidate to try for replica q of stage s, -1 when there is none left.
    w = x.whole
    start = w[SERVER, q] + 1
    if start == 0 and q > w[FIRST, s]:
        start = w[SERVER, q - 1]  # alike replicas in ascending order
    for c in range(start, x.candidates):
        if w[VACANT, c] > 0 and not _has_a_double_before(x, c):
            return c
    return -1


@njit(**NESTED)
def _has_a_double_before(x: Mapping, c: int) -> bool:
    w = x.whole
    if w[HELD, c] > 0:
        return False
    d = w[TWIN, c]
    while d >= 0:
        if w[HELD, d] == 0 and w[VACANT, d] == w[VACANT, c]:
            return True
        d = w[TWIN, d]
    return False


VARIANTS = {
    "auto": Variant(seeds=True, levels=1, greatest=SMALL),
    "plain": Variant(),
    "multi-seed": Variant(seeds=True),
    "local-search": Variant(levels=1),
    "multi-seed-local-search": Variant(seeds=True, levels=1),
    "stage-moves": Variant(seeds=True, levels=2),
    "exact": Variant(seeds=True, levels=2, greatest=SMALL, enumerated=EXACT, place=_enumerating),
    "random": Variant(place=_at_random),
}


@dataclass(frozen=True)
class HeavyEdge(Placement):
    """The rule in one of its variants."""

    variant: Variant = VARIANTS["auto"]

    def random_state(self) -> Any:
        """The state of the random numbers and the settings of the variant, u64[5]."""
        v = self.variant
        settings = np.array([v.seeds, v.levels, v.greatest, v.enumerated], dtype=np.uint64)
        return np.concatenate([super().random_state(), settings])


@PLACEMENTS.register("heavy-edge")
def heavy_edge(variant: str = "auto", seed: int = 0) -> Placement:
    """A gang starts whenever enough eligible GPUs are free; its replicas go where little data crosses servers.

    ``variant``: ``plain`` greedy; ``multi-seed`` the best of the greedy's runs from every stage and without;
    ``local-search`` plain, then moves of a replica and swaps of two while alpha falls; ``multi-seed-local-search``;
    ``stage-moves`` the same with whole groups and stages too; ``exact`` the best mapping of jobs of at most 8 replicas;
    ``random`` replicas on free GPUs, drawn with ``seed``; ``auto`` multi-seed-local-search up to 32 replicas, else plain.
    Jobs without a profile: the choice of servers only. Complexity, S stages, E edges, K servers taken of N, C with free
    GPUs: plain O(N K + g (S + E) + S C); multi-seed S times as much; a pass of the local search O(g C + g^2) alphas.
    """
    if variant not in VARIANTS:
        legal = near_matches(variant, list(VARIANTS), kind="variant")
        raise InputError("there is no such variant", field="heavy-edge: variant", value=variant, legal=legal)
    check_legal(seed >= 0, "heavy-edge: seed", seed, "an integer >= 0")
    return _rule(VARIANTS[variant], seed)


def _rule(variant: Variant, seed: int = 0) -> HeavyEdge:
    return HeavyEdge("heavy-edge", variant.place, any_free=True, seed=seed, variant=variant)


def map_job(
    profile: Profile, network: Network, free: Sequence[int] | Ints, variant: str = "auto", seed: int = 0
) -> tuple[Ints, float]:
    """Where ``heavy-edge`` puts one job: the node of every replica, i64[g] stage after stage, and alpha in seconds.

    ``free`` i64[N]: free GPUs a node. Raises `InputError` for an unknown variant, and when fewer than g GPUs are free.

    >>> import optsched as osd
    >>> profile = osd.zoo_profile("vgg19", gpus=4, parallelism="pipeline")
    >>> network = osd.Network.of(osd.load("ddl-04-1").cluster)
    >>> nodes, seconds = osd.map_job(profile, network, free=[4, 4])
    >>> nodes.tolist()
    [0, 0, 0, 0]
    """
    rule = heavy_edge(variant, seed)
    offered = np.array(free, dtype=np.int64)  # a copy: the rule's type is that of an array that may be written
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
