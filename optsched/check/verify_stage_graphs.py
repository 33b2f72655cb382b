"""How long an iteration of a graph of pipeline stages takes at least, for verifiers without optsched.

Beside verify_on_clusters.py, which describes the model; the same float operations as optsched's, since bounds take their
result as exact. All traffic has the best bandwidth between any two GPUs. A gang that no node holds cuts a ring or a pair of
neighbouring replicas: the cheapest such cut, at the best bandwidth between nodes; a stage that no node holds its own ring.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from optsched.check.verify_case import UNJUDGED, Data, Few, need, the
else:  # copied
    from verify_case import UNJUDGED, Data, Few, need, the

MOST_STAGES = 300  # and edges
CUT = 1 - 1e-13  # the same terms, added in another order, must not be below a time with a cut


def graph_of(given: Data, few: Few) -> Data:
    """A profile as optsched writes it."""
    stages = []
    for row in given["stages"]:
        stage: Data = {"name": row["name"]} if row.get("name") else {}
        stage["replicas"] = the(int, row, "replicas", UNJUDGED, None, 1)
        stage |= {name: the(float, row, name, UNJUDGED) for name in ("forward", "backward")}
        sizes = {name: the(float, row, name, UNJUDGED, 0.0) for name in ("parameters", "activations")}
        stages.append(stage | {name: size for name, size in sizes.items() if size})
    sent = [stage.get("activations", 0.0) for stage in stages]
    chain = [[s, s + 1, sent[s]] for s in range(len(stages) - 1)]
    edges = given.get("edges") or ([] if given.get("edges") == [] else chain)
    edges = [[s, u, the(float, {"bytes": size[0] if size else sent[s]}, "bytes", UNJUDGED)] for s, u, *size in edges]
    few(len(stages) + len(edges), MOST_STAGES, "stages and edges")
    need(
        all(0 <= x < len(stages) for edge in edges for x in edge[:2]), "an edge of a stage that is not there", UNJUDGED
    )
    split = (
        {}
        if given.get("micro_batches") is None
        else {"micro_batches": the(int, given, "micro_batches", UNJUDGED, None, 1)}
    )
    return {"stages": stages, **({} if edges == chain else {"edges": edges}), **split}


def least_iteration(graph: Data, nodes: list[Data]) -> float:
    """The seconds that an iteration takes at least, by the same float operations as those of optsched."""
    stages, count, k = graph["stages"], len(graph["stages"]), [stage["replicas"] for stage in graph["stages"]]
    edges = graph.get("edges", [[s, s + 1, stages[s].get("activations", 0.0)] for s in range(count - 1)])
    depth, reached = [1] * count, {0}
    for _ in stages:
        for s, u, _ in edges:
            depth[u] = max(depth[u], depth[s] + 1)
            reached |= {s, u} if {s, u} & reached else set()
    need(max(depth) <= count, "the stages form a cycle", UNJUDGED)
    fill = 1.0 + (max(depth) - 1) / graph["micro_batches"] if "micro_batches" in graph else 1.0
    inside, across = bandwidths(nodes)

    def cut(rings: set[int], pair: list[int] | None = None) -> float:
        wait = [0.0] * count
        for s, u, a in edges:
            size = 2.0 * a / (k[s] * k[u])
            more = size * (1.0 / across - 1.0 / inside) if pair == [s, u] else 0.0
            wait[s] += size * k[u] / inside + more
            wait[u] += size * k[s] / inside + more
        slowest = max(stage["forward"] + stage["backward"] + w for stage, w in zip(stages, wait, strict=True))
        volume = [2.0 * (q - 1) / q * stage.get("parameters", 0.0) for stage, q in zip(stages, k, strict=True)]
        ring: float = max(v / (across if s in rings else inside) for s, v in enumerate(volume))
        return float(fill * slowest + ring)

    largest = max(node["gpus"] for node in nodes)
    if sum(k) <= largest:
        return cut(set())
    rings = {s for s, q in enumerate(k) if q > largest}
    if rings or len(reached) < count:
        return cut(rings) * CUT
    cuts = [cut({s}) for s, q in enumerate(k) if q > 1] + [cut(set(), [s, u]) for s, u, _ in edges]
    return min(cuts) * CUT


def bandwidths(nodes: list[Data]) -> tuple[float, float]:
    """(best between any two GPUs, best between GPUs of two nodes), bytes/s."""
    inner, outer, shared, several = list[float](), list[float](), list[float](), sum(x["count"] for x in nodes) > 1
    for node in nodes:  # of one-GPU nodes and of a single node one of the two need not be stated: nothing is sent there
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
