"""Rates of the jobs with one scaling profile, batch, gang and memory by the number of GPUs and the placement.

`optsched.speeds.goodput_rates` has the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.problem.arrays import Floats, Ints, frozen
from optsched.problem.scaling import Scaling
from optsched.speeds.iteration_times import computing_seconds, measured_table, seconds_of, seconds_on

Counts = tuple[int, ...]  # replicas on every node used, in order of the nodes


def iterations_with(scaling: Scaling, batch: int) -> float | None:
    """Return I(b), linear between the rows of the table; None outside of the table.

    Parameters
    ----------
    scaling
        Scaling profile with a table of iterations.
    batch
        Total batch b, in samples.
    """
    rows = scaling.iterations
    if not rows or not rows[0][0] <= batch <= rows[-1][0]:
        return None
    return float(np.interp(batch, [b for b, _ in rows], [count for _, count in rows]))


def split(scaling: Scaling, batch: int, replicas: int, memory: float) -> tuple[int, int]:
    """Return (m, s): the local batch in the fewest sub-steps that ``most_local`` and the memory allow.

    This is the first of `Scaling.sub_batches` that fits (the first of all if none does), found without the whole
    chain.

    Parameters
    ----------
    scaling
        Scaling profile.
    batch
        Total batch, in samples.
    replicas
        Number of replicas.
    memory
        Bytes that the job may use on each GPU.
    """
    size, steps = scaling.first_split(batch, replicas)
    if not scaling.knows_memory or scaling.memory + scaling.memory_per_sample * size <= memory:
        return size, steps
    for option in scaling.sub_batches(batch, replicas):
        if option.memory <= memory:
            return option.size, option.steps
    return size, steps


class Steps:
    """Seconds of an iteration of one model by total batch and placement; cached.

    Parameters
    ----------
    scaling
        Scaling profile of the model.
    memory
        Bytes that a job may use on each GPU.
    """

    def __init__(self, scaling: Scaling, memory: float) -> None:
        self.scaling, self.memory = scaling, memory
        self._table = None if scaling.measured is None else measured_table(scaling.measured)
        self._known: dict[tuple[int, Counts], float] = {}
        self._least: dict[tuple[int, int, Counts], float] = {}

    @property
    def by_nodes(self) -> bool:
        """True if the seconds over several nodes depend on the replicas on each."""
        return self._table is not None

    def alike(self, counts: Counts) -> Counts:
        """Return one placement for all that are as fast: the formula sees the replicas, and one node or several.

        Parameters
        ----------
        counts
            Replicas on each node used.
        """
        return counts if self.by_nodes or len(counts) == 1 else (sum(counts) - 1, 1)

    def seconds(self, batch: int, counts: Counts) -> float:
        """Return T(b, r, placement).

        Parameters
        ----------
        batch
            Total batch, in samples.
        counts
            Replicas on each node used.
        """
        counts = self.alike(counts)
        key = batch, counts
        if key not in self._known:
            size, steps = split(self.scaling, batch, sum(counts), self.memory)
            self._known[key] = seconds_on(self.scaling, size, steps, counts)
        return self._known[key]

    def share(self, batch: int, counts: Counts, latency: float) -> float:
        """Return p of such an iteration: the part of it that communication which contends takes, between 0 and 1.

        Parameters
        ----------
        batch
            Total batch, in samples.
        counts
            Replicas on each node used.
        latency
            Latency a of an all-reduce, in seconds.
        """
        whole = self.seconds(batch, counts)
        computing = computing_seconds(self.scaling, *split(self.scaling, batch, sum(counts), self.memory))
        return max(0.0, whole - computing - latency) / whole if len(counts) > 1 else 0.0

    def least(self, batch: int, replicas: int, sizes: Counts) -> float:
        """Return a lower bound on the seconds of any placement of some replicas; inf if there is none.

        Parameters
        ----------
        batch
            Total batch, in samples.
        replicas
            Number of replicas.
        sizes
            GPUs of the nodes, falling.
        """
        key = batch, replicas, sizes
        if key not in self._least:
            nodes = range(1, min(replicas, len(sizes)) + 1)
            spreads = [k for k in nodes if sum(sizes[:k]) >= replicas]
            self._least[key] = min(self._candidates(batch, replicas, spreads), default=math.inf)
        return self._least[key]

    def _candidates(self, batch: int, replicas: int, spreads: list[int]) -> Iterator[float]:
        if self._table is None:
            yield from (self.seconds(batch, (replicas,) if k == 1 else (replicas - 1, 1)) for k in spreads)
            return
        # harmless: some measured placements may not fit these nodes, or all may be measured where this interpolates
        size, steps = split(self.scaling, batch, replicas, self.memory)
        for k in spreads:
            between = self._table.between(k, replicas, size)
            yield seconds_of(between, self.scaling, size, steps, replicas, k > 1)
        for name, placed in self._table.of_gang(replicas, size).items():
            if len(str(name)) in spreads:
                yield seconds_of(placed, self.scaling, size, steps, replicas, len(str(name)) > 1)


@dataclass(frozen=True)
class Options:
    """Numbers of GPUs that are worth considering for a job: all other numbers are as slow as two smaller ones.

    Parameters
    ----------
    gpus
        The numbers, ascending, i64[k].
    together, spread
        Rates on one node and over several, f64[k]; 0 where that is impossible. With measurements ``spread`` has the
        widest nodes filled first.
    by_nodes
        The rate over several nodes depends on the replicas on each.
    """

    gpus: Ints
    together: Floats
    spread: Floats
    by_nodes: bool

    @cached_property
    def rates(self) -> Floats:
        """Rates on one node or over several, whichever is faster, f64[k]."""
        return np.maximum(self.together, self.spread)


class JobGoodput:
    """Rates of all jobs with one profile, batch, gang and memory, in own iterations a second.

    Parameters
    ----------
    steps
        Seconds of iterations of the model.
    batch
        Batch that the jobs state, in samples.
    gang
        Gang that the jobs state.
    """

    def __init__(self, steps: Steps, batch: int, gang: int) -> None:
        self._steps, self._batch, self._gang = steps, batch, gang
        stated, rows = iterations_with(steps.scaling, batch), steps.scaling.iterations
        # value of an iteration with each total batch, in own iterations; batches ascending
        worth = {} if stated is None else {b: stated / count for b, count in rows}
        self._worth = dict(sorted({**worth, batch: 1.0}.items()))
        self._known: dict[Counts, tuple[float, int]] = {}
        self._options: dict[Counts, Options] = {}

    @property
    def by_nodes(self) -> bool:
        """True if the rate over several nodes depends on the replicas on each."""
        return self._steps.by_nodes

    @property
    def steps(self) -> int:
        """Work that the rates on one number of GPUs take, in steps."""
        knows = self._steps.scaling.knows_memory
        return sum(1 + (math.isqrt(batch) // 50 if knows else 0) for batch in self._worth)

    def best(self, counts: Sequence[int]) -> tuple[float, int]:
        """Return (v, b): the best rate on a placement, and the smallest batch that gives it; (0, 0): none.

        Parameters
        ----------
        counts
            Replicas on each node used.
        """
        key = self._steps.alike(tuple(counts))
        if key not in self._known:
            self._known[key] = self._fastest(sum(key), lambda b: self._steps.seconds(b, key))
        return self._known[key]

    def rate(self, counts: Sequence[int]) -> float:
        """Return v, the best rate on a placement.

        Parameters
        ----------
        counts
            Replicas on each node used.
        """
        return self.best(counts)[0]

    def rates(self, replicas: int, sizes: Counts) -> tuple[float, float]:
        """Return the rates on one node and over several; 0 where that is impossible.

        Parameters
        ----------
        replicas
            Number of replicas, at most as many as all nodes have GPUs.
        sizes
            GPUs of the nodes, falling. Over several nodes, the first ones are filled first.
        """
        together = self.rate((replicas,)) if replicas <= sizes[0] else 0.0
        if replicas < 2 or len(sizes) < 2:
            return together, 0.0
        return together, self.rate(_packed(sizes, replicas) if self.by_nodes else (replicas - 1, 1))

    def options(self, sizes: Counts) -> Options:
        """Return the numbers of GPUs that are worth considering, and the rates there.

        Parameters
        ----------
        sizes
            GPUs of the nodes, falling.

        Notes
        -----
        By the formula, the seconds of an iteration grow with the replicas while each has as many samples. So the first
        two numbers of GPUs with the same samples a replica are examined, O(sqrt b) for a batch of b samples.
        """
        if sizes not in self._options:
            most = sum(sizes)
            first = second = 0.0  # the greatest rates so far
            chosen = []
            for r in range(1, most + 1) if self.by_nodes else sorted(self._turns(most)):
                together, spread = self.rates(r, sizes)
                rate = max(together, spread)
                if rate > second:
                    chosen.append((r, together, spread))
                    first, second = max(first, rate), min(first, rate)
            gpus = np.array([r for r, _, _ in chosen], dtype=np.int64)
            rates = np.array([row[1:] for row in chosen], dtype=np.float64).reshape(-1, 2).T.copy()
            self._options[sizes] = Options(frozen(gpus), frozen(rates[0]), frozen(rates[1]), self.by_nodes)
        return self._options[sizes]

    def _turns(self, most: int) -> set[int]:
        # The first two numbers of replicas, up to some number, with each number of samples a replica.
        numbers = {1, 2, self._gang}
        for batch in self._worth:
            r = 1
            while r <= min(batch, most):
                numbers |= {r, r + 1}
                samples = -(-batch // r)
                r = batch + 1 if samples == 1 else -(-batch // (samples - 1))
        return {r for r in numbers if r <= most}

    def share(self, counts: Sequence[int], latency: float) -> float:
        """Return p with the best batch on a placement; 0 where the job cannot run.

        Parameters
        ----------
        counts
            Replicas on each node used.
        latency
            Latency a of an all-reduce, in seconds.
        """
        batch = self.best(counts)[1]
        return self._steps.share(batch, tuple(counts), latency) if batch else 0.0

    def limit(self, replicas: int, sizes: Counts) -> float:
        """Return an upper bound on the rate of any placement of some replicas; 0 where the job cannot run.

        Parameters
        ----------
        replicas
            Number of replicas.
        sizes
            GPUs of the nodes, falling.
        """
        return self._fastest(replicas, lambda b: self._steps.least(b, replicas, sizes))[0]

    def _fastest(self, replicas: int, seconds: Callable[[int], float]) -> tuple[float, int]:
        best = 0.0, 0
        for batch, worth in self._worth.items():
            if replicas <= batch or (batch, replicas) == (self._batch, self._gang):
                rate = worth / seconds(batch)
                if rate > best[0]:
                    best = rate, batch
        return best


def _packed(sizes: Counts, replicas: int) -> Counts:
    """Return ``replicas`` >= 2 over at least two nodes, the first ones filled first; ``sizes`` are GPUs by node."""
    counts, left = [], replicas
    for size in sizes:
        if left == 0:
            break
        counts.append(min(size, left))
        left -= counts[-1]
    return tuple(counts) if len(counts) > 1 else (replicas - 1, 1)
