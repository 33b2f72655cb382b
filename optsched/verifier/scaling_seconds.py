"""Seconds that an iteration takes at least at a scaling profile: any number of GPUs, any batch, any sub-batch.

An iteration of b samples on r GPUs gives each of them B = ceil(b / r), in s sub-steps of m samples, and takes

    T(m, s, r) = (s - 1) C + (C^gamma + N^gamma)^(1 / gamma),   C = compute + per_sample m,

with N seconds of communication, which differ between one node and several. A sub-batch of m samples needs ``memory`` +
``memory_per_sample`` m bytes on each GPU. A gang works with the largest sub-batch that its memory allows. An elastic job
(class elastic) may have r GPUs and any batch of the table ``iterations``: it does I(own) / (I(b) T) of its own iterations a
second, I linear between rows. The float operations are those of optsched. Measured steps are not known: between what was
measured optsched interpolates on a triangulation that only it makes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from .document_fields import Data, read_field
from .refusal import UNJUDGED, Few, need

SECONDS = ("within", "within_growth", "across", "across_growth")
MOST_SAMPLES, MOST_ROWS = 10**6, 1000  # of a GPU's part of a batch; of a table of iterations
MOST_RATES = 10**5  # of all elastic jobs of all profiles
SubBatch = tuple[int, int, float]  # samples, sub-steps, bytes
Needs = set[tuple[Fraction, Fraction]]  # of the sub-batches of a job: bytes, stretch of an iteration


class ScalingProfile:
    """A scaling profile; ``document`` is the JSON object that optsched writes for it.

    Parameters
    ----------
    given
        JSON object of the profile.
    spent
        Number of rates computed so far for all profiles of the instance, in a list of one.
    few
        Check of counts.
    """

    def __init__(self, given: Data, spent: list[int], few: Few) -> None:
        self.spent, self.few = spent, few
        need(given.get("measured") is None, "measured steps are not known here: use optsched verify", UNJUDGED)
        self.compute = read_field(float, given, "compute", UNJUDGED)
        self.per_sample = read_field(float, given, "per_sample", UNJUDGED)
        self.network = [read_field(float, given, name, UNJUDGED, 0.0) for name in SECONDS]
        self.overlap = read_field(float, given, "overlap", UNJUDGED, 1.0, 1)
        self.most_local = given.get("most_local")
        self.memory = read_field(float, given, "memory", UNJUDGED, 0.0)
        self.per_sample_memory = read_field(float, given, "memory_per_sample", UNJUDGED, 0.0)
        self.rows: list[tuple[int, float]] = [
            (read_field(int, {"b": b}, "b", UNJUDGED, None, 1), read_field(float, {"i": i}, "i", UNJUDGED))
            for b, i in given.get("iterations") or ()
        ]
        self.known = dict[Any, dict[int, float]]()
        legal = len(self.rows) <= MOST_ROWS and all(a[0] < b[0] for a, b in pairwise(self.rows))
        legal = legal and all(count > 0 for _, count in self.rows) and self.compute + self.per_sample > 0
        need(legal, "this is no scaling profile", UNJUDGED)
        self.document = self._document(read_field(int, given, "most_local", UNJUDGED, 0, 1))
        self.sub_batches = lru_cache(maxsize=1 << 17)(self._sub_batches)

    def _document(self, most_local: int) -> Data:
        stated: Data = dict(zip(SECONDS, self.network, strict=True))
        stated |= {"overlap": self.overlap if self.overlap != 1 else 0.0}
        stated |= {"most_local": most_local, "memory": self.memory, "memory_per_sample": self.per_sample_memory}
        stated |= {"iterations": [list(row) for row in self.rows]}
        document: Data = {"compute": self.compute, "per_sample": self.per_sample}
        return document | {name: value for name, value in stated.items() if value}

    @property
    def knows_memory(self) -> bool:
        """True if it states the memory of a sub-batch."""
        return bool(self.memory + self.per_sample_memory > 0)

    def _sub_batches(self, batch: int, replicas: int) -> list[SubBatch]:
        # the largest first; then always the largest divisor that is at most half of the one before
        local = -(-batch // replicas)
        need(0 < local <= MOST_SAMPLES, f"a batch of more than {MOST_SAMPLES} samples a GPU", UNJUDGED)
        steps = 1 if self.most_local is None else -(-local // self.most_local)
        largest = -(-local // steps)
        small = [m for m in range(1, math.isqrt(largest) + 1) if largest % m == 0]
        divisors, sizes = {*small, *(largest // m for m in small)}, [largest]
        while sizes[-1] > 1:
            sizes.append(max(m for m in divisors if m <= sizes[-1] // 2))
        return [(m, steps * (largest // m), self.memory + self.per_sample_memory * m) for m in sizes]

    def options(self, batch: int, gang: int, memory: float) -> list[SubBatch]:
        """Return the sub-batches of a gang, with the bytes that they need.

        Parameters
        ----------
        batch
            Samples of an iteration.
        gang
            GPUs of the gang.
        memory
            Bytes that the job may use on each GPU.
        """
        options = self.sub_batches(batch, gang)
        if not self.knows_memory:
            return [(m, steps, memory) for m, steps, _ in options]
        fits = [option for option in options if option[2] <= memory] or options
        return [(m, steps, memory - self.per_sample_memory * (fits[0][0] - m)) for m, steps, _ in fits]

    def seconds(self, size: int, steps: int, replicas: int, spans: bool) -> float:
        """Return T(m, s, r), the seconds of an iteration.

        Parameters
        ----------
        size
            Samples m of a sub-batch.
        steps
            Sub-steps s.
        replicas
            GPUs r.
        spans
            True if they are on several nodes.
        """
        first, growth = self.network[2:] if spans else self.network[:2]
        network = 0.0 if replicas == 1 else first + growth * max(replicas - 2, 0)
        computing = self.compute + self.per_sample * size
        larger, smaller = max(computing, network), min(computing, network)
        last = larger * (1.0 + (smaller / larger) ** self.overlap) ** (1.0 / self.overlap) if larger > 0 else 0.0
        return float((steps - 1) * computing + last)

    def least(self, batch: int, gang: int, memory: float, reach: list[bool]) -> list[float]:
        """Return the seconds of an iteration with the largest sub-batch, on one node and over several.

        Parameters
        ----------
        batch
            Samples of an iteration.
        gang
            GPUs of the gang.
        memory
            Bytes that the job may use on each GPU.
        reach
            Which of the two are possible: False for one node, True for several.
        """
        m, steps, _ = self.options(batch, gang, memory)[0]
        return [self.seconds(m, steps, gang, spans) for spans in reach]

    def stretches(self, batch: int, gang: int, memory: float) -> Needs:
        """Return the memory of every sub-batch, and the factor by which it at least lengthens an iteration.

        Parameters
        ----------
        batch
            Samples of an iteration.
        gang
            GPUs of the gang.
        memory
            Bytes that the job may use on each GPU.
        """
        options = self.options(batch, gang, memory)
        fastest = [self.seconds(*options[0][:2], gang, spans) for spans in (False, True)]
        stretches = set()
        for m, steps, needed in options:
            times = (self.seconds(m, steps, gang, spans) / fastest[spans] for spans in (False, True))
            stretches.add((Fraction(needed), Fraction(min(max(x, 1.0) for x in times))))
        return stretches

    def iterations(self, batch: int) -> float | None:
        """Return I(b), linear between the rows; None where they do not reach.

        Parameters
        ----------
        batch
            Samples b of an iteration.
        """
        if not self.rows or not self.rows[0][0] <= batch <= self.rows[-1][0]:
            return None
        for (low, some), (high, more) in pairwise([*self.rows, (self.rows[-1][0] + 1, 0.0)]):
            if low == batch:
                return some
            if batch < high:
                return (more - some) / (high - low) * (batch - low) + some
        raise AssertionError("between the rows")

    def rates(self, batch: int, gang: int, memory: float, nodes: tuple[int, ...]) -> dict[int, float]:
        """Return the most own iterations a second on any number of GPUs.

        Parameters
        ----------
        batch
            Samples of an own iteration.
        gang
            GPUs of the gang.
        memory
            Bytes that the job may use on each GPU.
        nodes
            GPUs of the nodes that suit the job, the largest first.
        """
        key = batch, gang, memory, nodes
        if key in self.known:
            return self.known[key]
        own, worth, rates = self.iterations(batch), {batch: 1.0}, dict[int, float]()
        if own is not None:
            worth |= {b: own / count for b, count in self.rows if b != batch}
        self.spent[0] += sum(nodes) * len(worth)
        self.few(self.spent[0], MOST_RATES, "rates of elastic jobs")
        for r in range(1, sum(nodes) + 1):
            reach = [False] * (nodes[0] >= r) + [True] * (r > 1 and len(nodes) > 1)
            for b, value in worth.items():
                if r <= b or (b, r) == (batch, gang):
                    options = self.sub_batches(b, r)
                    fits = [option for option in options if option[2] <= memory or not self.knows_memory]
                    m, steps, _ = (fits or options)[0]
                    rate = value / min(self.seconds(m, steps, r, spans) for spans in reach)
                    rates[r] = max(rates.get(r, 0.0), rate)
        self.known[key] = rates
        return rates

    def usual_memory(self, batch: int, gang: int, groups: list[tuple[float, int, bool]]) -> float:
        """Return the memory of a job that states none: that of the largest sub-batch whose memory its gang has.

        Parameters
        ----------
        batch
            Samples of an iteration.
        gang
            GPUs of the gang.
        groups
            Memory of a GPU, GPUs, and True if the job may use them, of every node group.
        """
        suits = sorted([(room, gpus) for room, gpus, may in groups if may], key=lambda group: -group[0])
        held = accumulate(gpus for _, gpus in suits)
        rooms = [room for (room, _), gpus in zip(suits, held, strict=True) if gpus >= gang]
        room = rooms[0] if rooms else max(room for room, _, _ in groups)
        options = self.sub_batches(batch, gang)
        return next((needed for _, _, needed in options if needed <= room), options[-1][2])
