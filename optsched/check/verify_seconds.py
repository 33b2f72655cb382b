"""Seconds that an iteration takes at least, for verifiers without optsched: on graphs of stages, at scaling profiles.

Beside verify_on_clusters.py; the same float operations as optsched's, since bounds take their result as exact.
**Graphs of stages**: all traffic has the best bandwidth between any two GPUs. A gang that no node holds cuts a ring or a
pair of neighbouring replicas: the cheapest such cut, at the best bandwidth between nodes; a stage that no node holds its own
ring. **Scaling profiles**: any number of GPUs, any batch, any sub-batch. An iteration of b samples on r GPUs gives each of
them B = ceil(b / r), in s sub-steps of m samples, and takes

    T(m, s, r) = (s - 1) C + (C^gamma + N^gamma)^(1 / gamma),   C = compute + per_sample m,

N seconds of communication, other ones over several nodes than on one. A sub-batch of m samples needs `memory` +
`memory_per_sample` m bytes on each GPU. A gang works with the largest that its memory allows. An elastic job (class elastic)
may have r GPUs and any batch of the table `iterations`: I(own) / (I(b) T) of its own iterations a second, I linear between
rows. (optsched/problem/scaling.py, optsched/speeds/goodput_rates.py.) Measured steps are not known here: between what was
measured optsched interpolates on a triangulation that only it makes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from optsched.check.verify_case import UNJUDGED, Data, Few, need, the
else:  # copied
    from verify_case import UNJUDGED, Data, Few, need, the

MOST_STAGES = 300  # and edges
CUT = 1 - 1e-13  # the same terms, added in another order, must not be below a time with a cut
SECONDS = ("within", "within_growth", "across", "across_growth")
MOST_SAMPLES, MOST_ROWS = 10**6, 1000  # of a GPU's part of a batch; of a table of iterations
MOST_RATES = 10**5  # of all elastic jobs of all profiles
SubBatch = tuple[int, int, float]  # samples, sub-steps, bytes


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


class ScalingProfile:
    """A scaling profile; `document`: as optsched writes it."""

    def __init__(self, given: Data, spent: list[int], few: Few) -> None:
        self.spent, self.few = spent, few  # rates so far, of all profiles of an instance
        need(given.get("measured") is None, "measured steps are not known here: use optsched verify", UNJUDGED)
        self.compute, self.per_sample = (
            the(float, given, "compute", UNJUDGED),
            the(float, given, "per_sample", UNJUDGED),
        )
        self.network = [the(float, given, name, UNJUDGED, 0.0) for name in SECONDS]
        self.overlap, self.most_local = the(float, given, "overlap", UNJUDGED, 1.0, 1), given.get("most_local")
        self.memory = the(float, given, "memory", UNJUDGED, 0.0)
        self.per_sample_memory = the(float, given, "memory_per_sample", UNJUDGED, 0.0)
        rows: list[tuple[int, float]] = [
            (the(int, {"b": b}, "b", UNJUDGED, None, 1), the(float, {"i": i}, "i", UNJUDGED))
            for b, i in given.get("iterations") or ()
        ]
        self.rows, self.known = rows, dict[Any, dict[int, float]]()
        legal = len(rows) <= MOST_ROWS and all(a[0] < b[0] for a, b in pairwise(rows)) and all(i > 0 for _, i in rows)
        need(legal and self.compute + self.per_sample > 0, "this is no scaling profile", UNJUDGED)
        stated: Data = dict(zip(SECONDS, self.network, strict=True))
        stated |= {"overlap": self.overlap if self.overlap != 1 else 0.0}
        stated |= {"most_local": the(int, given, "most_local", UNJUDGED, 0, 1), "memory": self.memory}
        stated |= {"memory_per_sample": self.per_sample_memory, "iterations": [list(row) for row in rows]}
        self.document = {"compute": self.compute, "per_sample": self.per_sample}
        self.document |= {name: value for name, value in stated.items() if value}
        self.sub_batches = lru_cache(maxsize=1 << 17)(self._sub_batches)

    @property
    def knows_memory(self) -> bool:
        """Does it say what a sub-batch needs?"""
        return bool(self.memory + self.per_sample_memory > 0)

    def _sub_batches(self, batch: int, replicas: int) -> list[SubBatch]:
        # the largest first; then always the largest divisor that is at most half of the one before
        local = -(-batch // replicas)
        need(0 < local <= MOST_SAMPLES, f"a batch of more than {MOST_SAMPLES} samples a GPU", UNJUDGED)
        steps = 1 if self.most_local is None else -(-local // self.most_local)
        largest = -(-local // steps)
        small = [m for m in range(1, math.isqrt(largest) + 1) if largest % m == 0]
        divisors, chain = {*small, *(largest // m for m in small)}, [largest]
        while chain[-1] > 1:
            chain.append(max(m for m in divisors if m <= chain[-1] // 2))
        return [(m, steps * (largest // m), self.memory + self.per_sample_memory * m) for m in chain]

    def options(self, batch: int, gang: int, memory: float) -> list[SubBatch]:
        """Those of a gang whose job is allowed so many bytes, with the bytes that it needs."""
        found = self.sub_batches(batch, gang)
        if not self.knows_memory:
            return [(m, steps, memory) for m, steps, _ in found]
        fits = [each for each in found if each[2] <= memory] or found
        return [(m, steps, memory - self.per_sample_memory * (fits[0][0] - m)) for m, steps, _ in fits]

    def seconds(self, size: int, steps: int, replicas: int, spans: bool) -> float:
        """T(m, s, r) on one node, or over several."""
        first, growth = self.network[2:] if spans else self.network[:2]
        network = 0.0 if replicas == 1 else first + growth * max(replicas - 2, 0)
        computing = self.compute + self.per_sample * size
        larger, smaller = max(computing, network), min(computing, network)
        last = larger * (1.0 + (smaller / larger) ** self.overlap) ** (1.0 / self.overlap) if larger > 0 else 0.0
        return float((steps - 1) * computing + last)

    def stretches(self, batch: int, gang: int, memory: float) -> set[tuple[Fraction, Fraction]]:
        """(bytes, how many times as long an iteration takes at least) of every sub-batch."""
        options = self.options(batch, gang, memory)
        whole = [self.seconds(*options[0][:2], gang, spans) for spans in (False, True)]
        found = set()
        for m, steps, needed in options:
            times = (self.seconds(m, steps, gang, spans) / whole[spans] for spans in (False, True))
            found.add((Fraction(needed), Fraction(min(max(x, 1.0) for x in times))))
        return found

    def iterations(self, batch: int) -> float | None:
        """I(b), linear between the rows; None where they do not reach."""
        if not self.rows or not self.rows[0][0] <= batch <= self.rows[-1][0]:
            return None
        for (low, some), (high, more) in pairwise([*self.rows, (self.rows[-1][0] + 1, 0.0)]):
            if low == batch:
                return some
            if batch < high:
                return (more - some) / (high - low) * (batch - low) + some
        raise AssertionError("between the rows")

    def rates(self, batch: int, gang: int, memory: float, nodes: tuple[int, ...]) -> dict[int, float]:
        """The most own iterations a second on any number of GPUs of nodes of these sizes, the largest first."""
        key = batch, gang, memory, nodes
        if key in self.known:
            return self.known[key]
        own, worth, found = self.iterations(batch), {batch: 1.0}, dict[int, float]()
        if own is not None:
            worth |= {b: own / count for b, count in self.rows if b != batch}
        self.spent[0] += sum(nodes) * len(worth)
        self.few(self.spent[0], MOST_RATES, "rates of elastic jobs")
        for r in range(1, sum(nodes) + 1):
            spans = [False] * (nodes[0] >= r) + [True] * (r > 1 and len(nodes) > 1)
            for b, value in worth.items():
                if r <= b or (b, r) == (batch, gang):
                    fits = [each for each in self.sub_batches(b, r) if each[2] <= memory or not self.knows_memory]
                    m, steps, _ = (fits or self.sub_batches(b, r))[0]
                    rate = value / min(self.seconds(m, steps, r, each) for each in spans)
                    found[r] = max(found.get(r, 0.0), rate)
        self.known[key] = found
        return found


def with_memory(job: Data, scaling: ScalingProfile, nodes: list[Data]) -> Data:
    """A job that does not state its memory needs that of the largest sub-batch whose memory its gang has."""
    if job.get("gpu_memory") is not None or not scaling.knows_memory:
        return job
    types = None if job.get("gpu_types") is None else {name.casefold() for name in job["gpu_types"]}
    groups = [(node.get("gpu_memory") or math.inf, node) for node in nodes]
    suits = [(room, node) for room, node in groups if types is None or node.get("gpu", "GPU").casefold() in types]
    suits.sort(key=lambda group: -float(group[0]))
    gpus = accumulate(node.get("count", 1) * node["gpus"] for _, node in suits)
    rooms = [room for (room, _), held in zip(suits, gpus, strict=True) if held >= job["gpus"]]
    room = rooms[0] if rooms else max(room for room, _ in groups)
    options = scaling.sub_batches(job["batch_size"], job["gpus"])
    return {**job, "gpu_memory": next((x for _, _, x in options if x <= room), options[-1][2])}
