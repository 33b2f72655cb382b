"""Time of one iteration of distributed training on a placement: pipeline stages, replicas, ring all-reduce.

Every term is a function (bytes, seconds). Jobs are those of Luo et al., INFOCOM 2025; the terms are this project's:

* between neighbouring stages every pair of replicas carries ``w = 2 a / (k_s k_u)`` bytes (activations and gradients);
* the ring all-reduce of a stage moves ``2 (k-1)/k h`` bytes a replica, at the speed of the slowest link on the ring;
* a replica waits for its traffic, ``comm_v``; a stage is as slow as its slowest replica;
* ``alpha = (1 + (S-1)/m) max_s (t_s + comm_s) + max_s AR_s`` with m micro-batches on S stages (m = infinity: factor 1).

**Monotone**: moving a pair from one node to two never lowers alpha, because a GPU's share of the NIC is never faster
than the links inside a node. Hence ``alpha_min <= alpha <= alpha_max`` on every placement; `best_pace` is the least
alpha of a job alone. This is the readable reference; the compiled form of the same terms is
`optsched.speeds.speed_tables`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from optsched.errors import check_legal
from optsched.problem.profile import Profile
from optsched.speeds.network import Network

if TYPE_CHECKING:
    import networkx as nx

ROUNDING = 1 - 1e-13  # a bound must not exceed the same terms added in another order
TRIED = 3000  # mappings and parts of mappings that are timed for one job: about a tenth of a second
FALLS = 1 - 1e-12  # shorter by more than rounding


def pair_bytes(activations: float, replicas: int, next_replicas: int) -> float:
    """Return w_uv = 2 a / (k_s k_u): bytes an iteration between two replicas of neighbouring stages, both ways.

    Parameters
    ----------
    activations
        Bytes a that leave the stage in an iteration.
    replicas, next_replicas
        Replicas of the two stages.
    """
    return 2.0 * activations / (replicas * next_replicas)


def ring_bytes(parameters: float, replicas: int) -> float:
    """Return V_s = 2 (k-1)/k h: bytes that every replica sends and receives in a ring all-reduce; 0 for k = 1.

    Parameters
    ----------
    parameters
        Bytes h of the stage's parameters.
    replicas
        Replicas k of the stage.
    """
    return 2.0 * (replicas - 1) / replicas * parameters


def pipeline_factor(depth: int, micro_batches: int | None) -> float:
    """Return 1 + (S-1)/m: the cost of filling and draining the pipeline; 1 for infinitely many micro-batches.

    Parameters
    ----------
    depth
        Number S of stages one after the other.
    micro_batches
        Micro-batches m of an iteration; None: infinitely many.
    """
    return 1.0 if micro_batches is None else 1.0 + (depth - 1) / micro_batches


def stage_graph(profile: Profile) -> nx.DiGraph:
    """Return the graph of stages.

    Nodes have ``replicas``, ``compute`` (s) and ``ring`` (bytes); edges have ``activations`` and ``pair`` (bytes).

    Parameters
    ----------
    profile
        The stage profile.
    """
    import networkx as nx  # imported where it is used: it takes longer than most runs

    graph = nx.DiGraph()
    for s, stage in enumerate(profile.stages):
        ring = ring_bytes(stage.parameters, stage.replicas)
        graph.add_node(s, replicas=stage.replicas, compute=stage.compute, ring=ring, parameters=stage.parameters)
    for s, u, a in profile.edges:
        tail_replicas, head_replicas = profile.stages[s].replicas, profile.stages[u].replicas
        graph.add_edge(s, u, activations=a, pair=pair_bytes(a, tail_replicas, head_replicas))
    return graph


def iteration_time(profile: Profile, network: Network, nodes: Sequence[int]) -> float:
    """Return alpha of a placement, in seconds. Complexity O(pairs of neighbouring replicas).

    Parameters
    ----------
    profile
        The stage profile.
    network
        Bandwidths of the cluster.
    nodes
        Node of every replica, stage after stage.

    Raises
    ------
    InputError
        There is not one node a replica.
    """
    check_legal(len(nodes) == profile.gpus, "nodes", len(nodes), f"one node for each of {profile.gpus} replicas")
    graph, left = stage_graph(profile), iter(nodes)
    places = {s: list(islice(left, k)) for s, k in graph.nodes(data="replicas")}
    slowest, ring = 0.0, 0.0
    for s, data in graph.nodes(data=True):
        ties = [(u, graph.edges[s, u]["pair"]) for u in graph.successors(s)]
        ties += [(u, graph.edges[u, s]["pair"]) for u in graph.predecessors(s)]
        neighbours = [(node, pair) for u, pair in ties for node in places[u]]
        # comm_v: seconds that a replica on a node waits for its neighbours
        wait = max(sum(size / network.bandwidth(node, other) for other, size in neighbours) for node in places[s])
        slowest = max(slowest, data["compute"] + wait)
        if len(places[s]) > 1:  # AR_s: the slowest link of the ring sets its pace
            used = sorted(set(places[s]))
            ring = max(ring, data["ring"] / float((network.intra if len(used) == 1 else network.cross)[used].min()))
    return pipeline_factor(profile.depth, profile.micro_batches) * slowest + ring


def alpha_max(profile: Profile, network: Network) -> float:
    """Return an upper bound on alpha: all traffic at the slowest bandwidth, every replica on its own node.

    Parameters
    ----------
    profile
        The stage profile.
    network
        Bandwidths of the cluster.
    """
    return _with_cuts(profile, network.slowest, network.slowest)


def alpha_min(profile: Profile, network: Network) -> float:
    """Return a lower bound on alpha of all placements.

    It is exact if the gang fits on one node and all nodes are alike. A gang that no node can hold cuts a ring or a
    pair of neighbouring replicas (unless its stages are not connected); a stage larger than any node has its ring cut
    in any case. By monotonicity alpha is at least the smallest value with only such a cut, the cheapest.

    Parameters
    ----------
    profile
        The stage profile.
    network
        Bandwidths of the cluster.
    """
    largest = int(network.gpus.max())
    inside, across = network.fastest, network.fastest_cross
    if profile.gpus <= largest:
        return _with_cuts(profile, inside, inside)
    rings = {s for s, stage in enumerate(profile.stages) if stage.replicas > largest}
    if rings or not _is_connected(profile):
        return _with_cuts(profile, inside, across, rings) * ROUNDING
    cuts = [_with_cuts(profile, inside, across, {s}) for s, k in enumerate(profile.stages) if k.replicas > 1]
    cuts += [_with_cuts(profile, inside, across, (), (s, u)) for s, u, _ in profile.edges]
    return min(cuts) * ROUNDING


def _is_connected(profile: Profile) -> bool:
    import networkx as nx  # imported where it is used: it takes longer than most runs

    return bool(nx.is_weakly_connected(stage_graph(profile)))


def _with_cuts(
    profile: Profile, inside: float, across: float, rings: Collection[int] = (), pair: tuple[int, int] | None = None
) -> float:
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


# --- the fastest mapping ----------------------------------------------------------------------------------------------


class Node(NamedTuple):
    """Bandwidths of a node in bytes/s, between its GPUs and of a GPU's part of the interface, and its number of GPUs."""

    intra: float
    cross: float
    gpus: int


class _Search:
    """Search for the best mapping of S stages to N nodes.

    ``count[s][m]``: replicas of stage s on node m. ``free[m]``: GPUs left. The search goes depth first over the
    replicas, stage after stage. Identical replicas take nodes in ascending order, and of identical empty nodes only
    the first is tried. A branch ends when the replicas placed so far take as long as the incumbent: unplaced replicas
    only add traffic.
    """

    def __init__(self, profile: Profile, nodes: Sequence[Node], fastest: float) -> None:
        stages = profile.stages
        self.nodes, self.replicas = nodes, [stage.replicas for stage in stages]
        self.compute = [stage.compute for stage in stages]
        self.ring = [ring_bytes(stage.parameters, stage.replicas) for stage in stages]
        self.factor = pipeline_factor(profile.depth, profile.micro_batches)
        self.ties: list[list[tuple[int, float]]] = [[] for _ in stages]
        for s, u, a in profile.edges:
            size = pair_bytes(a, stages[s].replicas, stages[u].replicas)
            self.ties[s].append((u, size))
            self.ties[u].append((s, size))
        self.count: list[dict[int, int]] = [{} for _ in stages]
        self.free, self.held = [node.gpus for node in nodes], [0] * len(nodes)
        self.best, self.goal, self.tried = float("inf"), fastest / FALLS, 0

    def place(self, s: int, q: int, least: int) -> None:
        """Place replica ``q`` of stage ``s``, on node ``least`` or a later one, and all replicas after it."""
        if s == len(self.replicas):
            self.best = self.pace()
            return
        if q == self.replicas[s]:
            self.place(s + 1, 0, 0)
            return
        for m in range(least, len(self.nodes)):
            if self.best <= self.goal or self.tried > TRIED:
                return
            # identical nodes are adjacent: of the empty ones only the first is tried
            double = m > 0 and self.held[m] == 0 == self.held[m - 1] and self.nodes[m] == self.nodes[m - 1]
            if self.free[m] == 0 or double:
                continue
            self._move(s, m, 1)
            self.tried += 1
            if self.pace() < self.best * FALLS:
                self.place(s, q + 1, m)
            self._move(s, m, -1)

    def _move(self, s: int, m: int, n: int) -> None:
        self.free[m] -= n
        self.held[m] += n
        self.count[s][m] = self.count[s].get(m, 0) + n
        if self.count[s][m] == 0:
            del self.count[s][m]

    def pace(self) -> float:
        """Return the seconds of an iteration of the replicas placed so far."""
        slowest, ring = 0.0, 0.0
        for s, nodes in enumerate(self.count):
            if nodes:
                slowest = max(slowest, self.compute[s] + max(self._wait(s, m) for m in nodes))
                ring = max(ring, self._ring(s))
        return self.factor * slowest + ring

    def _wait(self, s: int, m: int) -> float:
        node = self.nodes[m]
        return sum(
            size * replicas / (node.intra if k == m else min(node.cross, self.nodes[k].cross))
            for u, size in self.ties[s]
            for k, replicas in self.count[u].items()
        )

    def _ring(self, s: int) -> float:
        if len(self.count[s]) > 1:
            return self.ring[s] / min(self.nodes[m].cross for m in self.count[s])
        return self.ring[s] / self.nodes[next(iter(self.count[s]))].intra


def best_pace(profile: Profile, nodes: Sequence[tuple[Node, int]], fastest: float) -> float | None:
    """Return the seconds of an iteration of a profile alone on its best mapping to empty nodes.

    A stage of one replica has no ring.

    Parameters
    ----------
    profile
        The stage profile.
    nodes
        (node, number of such nodes) of different nodes.
    fastest
        Lower bound on all mappings; the search stops at a mapping that attains it.

    Returns
    -------
    float or None
        None if `TRIED` mappings, and parts of mappings, were not enough to prove the optimum.
    """
    search = _Search(profile, [node for node, n in nodes for _ in range(min(n, profile.gpus))], fastest)
    search.place(0, 0, 0)
    proved = search.best <= search.goal or search.tried <= TRIED
    return search.best if proved and search.best < float("inf") else None
