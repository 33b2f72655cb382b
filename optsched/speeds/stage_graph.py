"""How long one iteration of distributed training takes on a placement: pipeline stages, replicas, ring all-reduce.

Every term is a function of its own (sheet of A-SRPT in the project's references; bytes, seconds):

* between neighbouring stages every pair of replicas carries ``w = 2 a / (k_s k_u)`` bytes (activations and gradients);
* the ring all-reduce of a stage moves ``2 (k-1)/k h`` bytes a replica, at the speed of the slowest link on the ring;
* a replica waits for its traffic, ``comm_v``; a stage is as slow as its slowest replica;
* ``alpha = (1 + (S-1)/m) max_s (t_s + comm_s) + max_s AR_s`` with m micro-batches on S stages (m = infinity: factor 1).

**Monotone**: moving a pair from one node to two never lowers alpha, because a GPU's share of the NIC is never faster than
the links inside a node. Hence ``alpha_min <= alpha <= alpha_max`` on every placement. This is the readable reference; the
compiled form of the same terms is `optsched.speeds.stage_pace`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from optsched.errors import InputError
from optsched.problem.profile import Profile
from optsched.speeds.network import Network

if TYPE_CHECKING:
    import networkx as nx

ROUNDING = 1 - 1e-13  # a bound must not exceed what the same terms, added in another order, come to


def pair_bytes(activations: float, replicas: int, next_replicas: int) -> float:
    """w_uv = 2 a / (k_s k_u): bytes an iteration between two replicas of neighbouring stages, both ways."""
    return 2.0 * activations / (replicas * next_replicas)


def ring_bytes(parameters: float, replicas: int) -> float:
    """V_s = 2 (k-1)/k h: bytes that every replica of a stage sends and receives in a ring all-reduce; 0 for k = 1."""
    return 2.0 * (replicas - 1) / replicas * parameters


def pipeline_factor(depth: int, micro_batches: int | None) -> float:
    """1 + (S-1)/m: what filling and draining the pipeline costs; 1 for infinitely many micro-batches."""
    return 1.0 if micro_batches is None else 1.0 + (depth - 1) / micro_batches


def stage_graph(profile: Profile) -> nx.DiGraph:
    """Stages with ``replicas``, ``compute`` (s), ``ring`` (bytes); edges with ``activations`` and ``pair`` (bytes)."""
    import networkx as nx  # imported where it is used: it takes longer than most runs

    graph = nx.DiGraph()
    for s, stage in enumerate(profile.stages):
        ring = ring_bytes(stage.parameters, stage.replicas)
        graph.add_node(s, replicas=stage.replicas, compute=stage.compute, ring=ring, parameters=stage.parameters)
    for s, u, a in profile.edges:
        here, there = profile.stages[s].replicas, profile.stages[u].replicas
        graph.add_edge(s, u, activations=a, pair=pair_bytes(a, here, there))
    return graph


def replica_graph(profile: Profile) -> nx.Graph:
    """Replicas (stage, number) with the ``weight`` of every pair in bytes an iteration.

    Between neighbouring stages w_uv; inside a stage 4 h/k, the 2 (k-1) h bytes of the ring shared by its k (k-1)/2 pairs.
    """
    import networkx as nx

    graph = nx.Graph()
    for s, stage in enumerate(profile.stages):
        graph.add_nodes_from((s, q) for q in range(stage.replicas))
        if stage.replicas > 1:
            pairs = itertools.combinations(range(stage.replicas), 2)
            weight = 4.0 * stage.parameters / stage.replicas
            graph.add_edges_from((((s, q), (s, r)) for q, r in pairs), weight=weight)
    for s, u, data in stage_graph(profile).edges(data=True):
        ends = itertools.product(range(profile.stages[s].replicas), range(profile.stages[u].replicas))
        for q, r in ends:
            known = graph.get_edge_data((s, q), (u, r), {"weight": 0.0})["weight"]
            graph.add_edge((s, q), (u, r), weight=known + data["pair"])
    return graph


def ring_seconds(volume: float, nodes: Sequence[int], network: Network) -> float:
    """AR_s: the ring of a stage whose replicas sit on ``nodes``; its slowest link sets the pace."""
    if len(nodes) == 1:
        return 0.0
    used = sorted(set(nodes))
    if len(used) == 1:
        return volume / float(network.intra[used[0]])
    return volume / float(network.cross[used].min())


def replica_seconds(node: int, neighbours: Sequence[tuple[int, float]], network: Network) -> float:
    """comm_v: what a replica on ``node`` waits for its ``neighbours``, (node, bytes) each."""
    return sum(size / network.bandwidth(node, other) for other, size in neighbours)


def iteration_time(profile: Profile, network: Network, nodes: Sequence[int]) -> float:
    """alpha of a placement: ``nodes[q]`` is the node of replica q, stage after stage. Seconds.

    Complexity O(pairs of neighbouring replicas). `InputError` when there is not one node a replica.
    """
    if len(nodes) != profile.gpus:
        raise InputError(
            "invalid", field="nodes", value=len(nodes), legal=f"one node for each of {profile.gpus} replicas"
        )
    at = list(nodes)
    graph = stage_graph(profile)
    places, first = {}, 0
    for s in graph:
        places[s] = at[first : first + graph.nodes[s]["replicas"]]
        first += graph.nodes[s]["replicas"]
    slowest, ring = 0.0, 0.0
    for s, data in graph.nodes(data=True):
        ties = [(u, graph.edges[s, u]["pair"]) for u in graph.successors(s)]
        ties += [(u, graph.edges[u, s]["pair"]) for u in graph.predecessors(s)]
        neighbours = [(node, pair) for u, pair in ties for node in places[u]]
        wait = max(replica_seconds(node, neighbours, network) for node in places[s])
        slowest = max(slowest, data["compute"] + wait)
        ring = max(ring, ring_seconds(data["ring"], places[s], network))
    return pipeline_factor(profile.depth, profile.micro_batches) * slowest + ring


def alpha_max(profile: Profile, network: Network) -> float:
    """No placement is slower: all traffic at the slowest bandwidth of the cluster (every replica on its own node)."""
    return _uniform(profile, network.slowest)


def alpha_min(profile: Profile, network: Network) -> float:
    """No placement is faster. Exact when the gang fits on one of alike nodes; else some tie must cross, the cheapest does.

    A gang that no node can hold cuts a ring or a pair of neighbouring replicas (unless its stages are not connected); a
    stage larger than any node has its ring cut in any case. By monotonicity alpha is at least the smallest value with only
    such a cut.
    """
    largest = int(network.gpus.max())
    if profile.gpus <= largest:
        return _uniform(profile, network.fastest)
    import networkx as nx

    inside, across = network.fastest, network.fastest_cross
    rings = {s for s, stage in enumerate(profile.stages) if stage.replicas > largest}
    if rings or not nx.is_weakly_connected(stage_graph(profile)):
        return _with_cuts(profile, inside, across, rings, None) * ROUNDING
    cuts = [_with_cuts(profile, inside, across, {s}, None) for s, k in enumerate(profile.stages) if k.replicas > 1]
    cuts += [_with_cuts(profile, inside, across, set(), (s, u)) for s, u, _ in profile.edges]
    return min(cuts) * ROUNDING


def _uniform(profile: Profile, bandwidth: float) -> float:
    return _with_cuts(profile, bandwidth, bandwidth, set(), None)


def _with_cuts(profile: Profile, inside: float, across: float, rings: set[int], pair: tuple[int, int] | None) -> float:
    # alpha with the rings of these stages and one pair of replicas of these neighbours at `across`, the rest at `inside`.
    wait = [0.0] * len(profile.stages)
    for s, u, a in profile.edges:
        size = pair_bytes(a, profile.stages[s].replicas, profile.stages[u].replicas)
        more = size * (1.0 / across - 1.0 / inside) if pair == (s, u) else 0.0
        wait[s] += size * profile.stages[u].replicas / inside + more
        wait[u] += size * profile.stages[s].replicas / inside + more
    slowest = max(stage.compute + wait[s] for s, stage in enumerate(profile.stages))
    ring = max(
        ring_bytes(stage.parameters, stage.replicas) / (across if s in rings else inside)
        for s, stage in enumerate(profile.stages)
    )
    return pipeline_factor(profile.depth, profile.micro_batches) * slowest + ring
