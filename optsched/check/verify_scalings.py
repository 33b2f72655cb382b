"""Jobs at scaling profiles, for verifiers without optsched: any number of GPUs, any batch, any sub-batch.

Beside verify_on_clusters.py; the same float operations as optsched's, since bounds take their result as exact. An iteration
of b samples on r GPUs gives each of them B = ceil(b / r), in s sub-steps of m samples, and takes

    T(m, s, r) = (s - 1) C + (C^gamma + N^gamma)^(1 / gamma),   C = compute + per_sample m,

N seconds of communication, other ones over several nodes than on one. A sub-batch of m samples needs `memory` +
`memory_per_sample` m bytes on each GPU. A gang works with the largest that its memory allows. An elastic job (class elastic)
may have r GPUs and any batch of the table `iterations`: I(own) / (I(b) T) of its own iterations a second, I linear between
rows. (optsched/problem/scaling.py, optsched/speeds/goodput.py.) Measured steps are not known here: between what was measured
optsched interpolates on a triangulation that only it makes.
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

SECONDS = ("within", "within_growth", "across", "across_growth")
MOST_SAMPLES, MOST_ROWS = 10**6, 1000  # of a GPU's part of a batch; of a table of iterations
MOST_RATES = 10**5  # of all elastic jobs of all profiles
SubBatch = tuple[int, int, float]  # samples, sub-steps, bytes


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
