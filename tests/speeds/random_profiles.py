"""Random profiles, clusters and placements, and the iteration time a second way: replica by replica, in fractions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import networkx as nx
from hypothesis import strategies as st

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.profile import Profile, Stage
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import stage_graph

SECONDS = st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0])
BYTES = st.sampled_from([0.0, 1.0, 7.0, 30.0, 1000.0])


@st.composite
def profiles(draw: st.DrawFn, gpus: int = 6, stages: int = 4) -> Profile:
    """Up to so many stages and replicas, any acyclic edges (also none), stages in any order."""
    count = draw(st.integers(1, stages))
    replicas = [1] * count
    for _ in range(draw(st.integers(0, gpus - count))):
        replicas[draw(st.integers(0, count - 1))] += 1
    made = [Stage(k, draw(SECONDS), draw(SECONDS) + 0.25, draw(BYTES)) for k in replicas]
    order = draw(st.permutations(range(count)))
    pairs = [pair for pair in itertools.combinations(order, 2) if draw(st.booleans())]
    edges = tuple((s, u, draw(BYTES)) for s, u in draw(st.permutations(pairs)))
    return Profile(tuple(made), edges, draw(st.sampled_from([None, 1, 2, 5])))


@st.composite
def clusters(draw: st.DrawFn, nodes: int = 3, gpus: int = 4, alike: bool = False) -> Cluster:
    """Nodes with bandwidths of their own, or all alike; inside a node never slower than a GPU's share of the NIC."""
    count = draw(st.integers(1, nodes))
    groups = []
    for _ in range(1 if alike else count):
        size = draw(st.integers(1, gpus))
        share = draw(st.sampled_from([0.5, 1.0, 3.0, 10.0]))
        inside = share * draw(st.sampled_from([1.0, 1.5, 20.0]))
        copies = count if alike else 1
        groups.append(NodeGroup(size, copies, nic_bandwidth=share * size, intra_bandwidth=inside))
    return Cluster(tuple(groups))


def placements(profile: Profile, cluster: Cluster) -> Iterator[tuple[int, ...]]:
    """Every node for every replica that the nodes have room for."""
    room = cluster.node_gpus.tolist()
    for nodes in itertools.product(range(len(room)), repeat=profile.gpus):
        if all(nodes.count(m) <= room[m] for m in set(nodes)):
            yield nodes


def exact_alpha(profile: Profile, network: Network, nodes: Sequence[int]) -> Fraction:
    """alpha from all pairs of replicas: each waits for its neighbours, a ring for its worst pair; longest path by search."""

    def bandwidth(m: int, n: int) -> Fraction:
        return Fraction(float(network.intra[m] if m == n else min(network.cross[m], network.cross[n])))

    owner = [s for s, stage in enumerate(profile.stages) for _ in range(stage.replicas)]
    wait = [Fraction(0)] * profile.gpus
    for s, u, a in profile.edges:
        for v, w in itertools.product(range(profile.gpus), repeat=2):
            if (owner[v], owner[w]) == (s, u):
                seconds = 2 * Fraction(a) / owner.count(s) / owner.count(u) / bandwidth(nodes[v], nodes[w])
                wait[v] += seconds
                wait[w] += seconds
    slowest, ring = Fraction(0), Fraction(0)
    for s, stage in enumerate(profile.stages):
        mine = [v for v in range(profile.gpus) if owner[v] == s]
        compute = Fraction(stage.forward) + Fraction(stage.backward)
        slowest = max([slowest, *(compute + wait[v] for v in mine)])
        links = [bandwidth(nodes[v], nodes[w]) for v, w in itertools.combinations(mine, 2)]
        if links:
            k = stage.replicas
            ring = max(ring, Fraction(2 * (k - 1), k) * Fraction(stage.parameters) / min(links))

    def longest(s: int) -> int:
        return 1 + max((longest(u) for tail, u, _ in profile.edges if tail == s), default=0)

    depth = max(longest(s) for s in range(len(profile.stages)))
    factor = 1 if profile.micro_batches is None else 1 + Fraction(depth - 1, profile.micro_batches)
    return factor * slowest + ring


def replica_graph(profile: Profile) -> nx.Graph:
    """Replicas (stage, number) with the ``weight`` of every pair in bytes an iteration.

    Between neighbouring stages w_uv; inside a stage 4 h/k, the 2 (k-1) h bytes of the ring shared by its k (k-1)/2 pairs.
    """
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
