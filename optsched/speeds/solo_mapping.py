"""The fastest mapping of one job's replicas to the nodes of an empty cluster, by branch and bound.

Depth first over the replicas, stage after stage; alike replicas take nodes in ascending order, of alike empty nodes only
the first is tried, and a branch ends when the replicas placed so far already take as long as the best mapping known (what
is not placed only adds traffic, see `optsched.speeds.stage_graph`). Written for one job at a time; the placement rule that
maps jobs in a run is `optsched.policies.placements.exact_mapping`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from optsched.problem.profile import Profile
from optsched.speeds.stage_graph import pair_bytes, pipeline_factor, ring_bytes

TRIED = 3000  # mappings and parts of mappings that are timed for one job: about a tenth of a second
FALLS = 1 - 1e-12  # shorter by more than rounding


class Node(NamedTuple):
    """Bytes/s between its GPUs, of a GPU's part of its network interface, and its GPUs."""

    intra: float
    cross: float
    gpus: int


class _Search:
    """S stages on N nodes; ``count[s][m]`` replicas of stage s on node m, ``free[m]`` GPUs left."""

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
        """Replica ``q`` of stage ``s`` and all after it, this one on node ``least`` or a later one."""
        if s == len(self.replicas):
            self.best = self.pace()
            return
        if q == self.replicas[s]:
            self.place(s + 1, 0, 0)
            return
        for m in range(least, len(self.nodes)):
            if self.best <= self.goal or self.tried > TRIED:
                return
            if self.free[m] == 0 or self._has_a_double_before(m):
                continue
            self._move(s, m, 1)
            self.tried += 1
            if self.pace() < self.best * FALLS:
                self.place(s, q + 1, m)
            self._move(s, m, -1)

    def _has_a_double_before(self, m: int) -> bool:
        # alike nodes stand together
        return m > 0 and self.held[m] == 0 == self.held[m - 1] and self.nodes[m] == self.nodes[m - 1]

    def _move(self, s: int, m: int, n: int) -> None:
        self.free[m] -= n
        self.held[m] += n
        self.count[s][m] = self.count[s].get(m, 0) + n
        if self.count[s][m] == 0:
            del self.count[s][m]

    def pace(self) -> float:
        """Seconds of an iteration as far as replicas are placed."""
        slowest, ring = 0.0, 0.0
        for s, here in enumerate(self.count):
            if here:
                slowest = max(slowest, self.compute[s] + max(self._wait(s, m) for m in here))
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
    """Seconds of an iteration of ``profile`` alone on its best mapping to empty ``nodes``: different ones, how many of each.

    ``fastest``: no mapping takes less, so that the search ends where one takes no more. None when `TRIED` mappings, and
    parts of mappings, were not enough to prove which is the best. A stage of one replica has no ring.
    """
    search = _Search(profile, [node for node, n in nodes for _ in range(min(n, profile.gpus))], fastest)
    search.place(0, 0, 0)
    proved = search.best <= search.goal or search.tried <= TRIED
    return search.best if proved and search.best < float("inf") else None
