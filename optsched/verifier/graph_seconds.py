"""Seconds that an iteration takes at least on a graph of stages.

All traffic gets the best bandwidth between any two GPUs. A gang that fits on no node cuts a ring or a pair of neighbouring
replicas: the cheapest such cut counts, at the best bandwidth between nodes. A stage that fits on no node cuts its own ring.
The float operations are those of optsched, since bounds take their result as exact.
"""

from __future__ import annotations

import math
from typing import Any

from .document_fields import Data, read_field
from .refusal import UNJUDGED, Few, need

MOST_STAGES = 300  # and edges
CUT = 1 - 1e-13  # the same terms, added in another order, must not be below a time with a cut
Edges = list[list[Any]]  # [stage, stage, bytes]


def read_graph(given: Data, few: Few) -> Data:
    """Return a graph of stages as optsched writes it.

    Parameters
    ----------
    given
        JSON object of the profile.
    few
        Check of counts.
    """
    stages = []
    for row in given["stages"]:
        stage: Data = {"name": row["name"]} if row.get("name") else {}
        stage["replicas"] = read_field(int, row, "replicas", UNJUDGED, None, 1)
        stage |= {name: read_field(float, row, name, UNJUDGED) for name in ("forward", "backward")}
        sizes = {name: read_field(float, row, name, UNJUDGED, 0.0) for name in ("parameters", "activations")}
        stages.append(stage | {name: size for name, size in sizes.items() if size})
    sent = [stage.get("activations", 0.0) for stage in stages]
    in_a_row = [[s, s + 1, sent[s]] for s in range(len(stages) - 1)]
    edges = given.get("edges") or ([] if given.get("edges") == [] else in_a_row)
    edges = [
        [s, u, read_field(float, {"bytes": size[0] if size else sent[s]}, "bytes", UNJUDGED)] for s, u, *size in edges
    ]
    few(len(stages) + len(edges), MOST_STAGES, "stages and edges")
    legal = all(0 <= end < len(stages) for edge in edges for end in edge[:2])
    need(legal, "an edge of a stage that does not exist", UNJUDGED)
    graph: Data = {"stages": stages, **({} if edges == in_a_row else {"edges": edges})}
    if given.get("micro_batches") is not None:
        graph["micro_batches"] = read_field(int, given, "micro_batches", UNJUDGED, None, 1)
    return graph


def least_iteration(graph: Data, nodes: list[Data]) -> float:
    """Return the seconds that an iteration takes at least.

    Parameters
    ----------
    graph
        Graph of stages, from `read_graph`.
    nodes
        Node groups of the cluster.
    """
    stages, count = graph["stages"], len(graph["stages"])
    replicas = [stage["replicas"] for stage in graph["stages"]]
    edges = graph.get("edges", [[s, s + 1, stages[s].get("activations", 0.0)] for s in range(count - 1)])
    depth, reached = _depth(edges, count)
    fill = 1.0 + (depth - 1) / graph["micro_batches"] if "micro_batches" in graph else 1.0
    inside, across = bandwidths(nodes)

    def cut(rings: set[int], pair: list[int] | None = None) -> float:
        wait = [0.0] * count
        for s, u, volume in edges:
            size = 2.0 * volume / (replicas[s] * replicas[u])
            more = size * (1.0 / across - 1.0 / inside) if pair == [s, u] else 0.0
            wait[s] += size * replicas[u] / inside + more
            wait[u] += size * replicas[s] / inside + more
        slowest = max(stage["forward"] + stage["backward"] + w for stage, w in zip(stages, wait, strict=True))
        ring = [2.0 * (k - 1) / k * stage.get("parameters", 0.0) for stage, k in zip(stages, replicas, strict=True)]
        slowest_ring: float = max(v / (across if s in rings else inside) for s, v in enumerate(ring))
        return float(fill * slowest + slowest_ring)

    largest = max(node["gpus"] for node in nodes)
    if sum(replicas) <= largest:
        return cut(set())
    wide = {s for s, k in enumerate(replicas) if k > largest}
    if wide or reached < count:
        return cut(wide) * CUT
    return min([cut({s}) for s, k in enumerate(replicas) if k > 1] + [cut(set(), [s, u]) for s, u, _ in edges]) * CUT


def _depth(edges: Edges, count: int) -> tuple[int, int]:
    # stages on the longest path, and stages that edges join to the first one
    depth, reached = [1] * count, {0}
    for _ in range(count):
        for s, u, _ in edges:
            depth[u] = max(depth[u], depth[s] + 1)
            reached |= {s, u} if {s, u} & reached else set()
    need(max(depth) <= count, "the stages form a cycle", UNJUDGED)
    return max(depth), len(reached)


def bandwidths(nodes: list[Data]) -> tuple[float, float]:
    """Return the best bandwidth between any two GPUs, and between GPUs of two nodes, in bytes/s.

    Parameters
    ----------
    nodes
        Node groups of the cluster. A node of one GPU, and a single node, need not state both bandwidths.
    """
    inner, outer, shared = list[float](), list[float](), list[float]()
    several = sum(node["count"] for node in nodes) > 1
    for node in nodes:
        share = node["nic_bandwidth"] / node["gpus"] if "nic_bandwidth" in node else None
        near = node.get("intra_bandwidth", share)
        far = near if share is None else share
        legal = (share is not None or not several) and (near is None or near >= far)
        need(legal and ("intra_bandwidth" in node or node["gpus"] == 1), "bandwidths are missing, or invalid", UNJUDGED)
        inner.append(float(near or math.inf))
        outer += [float(far or math.inf)] * min(node["count"], 2)
        shared += [inner[-1]] if node["gpus"] > 1 else []
    across = sorted(outer)[-2] if len(outer) > 1 else inner[0]
    return max([*shared, across]), across
