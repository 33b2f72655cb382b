"""Goodput: the speed of an elastic job on r GPUs with the best total batch, in iterations of its own batch.

**Model**: an iteration with a total batch of b samples on r GPUs takes T(b, r, placement) seconds
(`optsched.problem.scaling`, by formula or as measured: local batch ceil(b / r), split into the fewest sub-steps that
``most_local`` and the job's own memory allow), and a job needs I(b) iterations of b samples (``Scaling.iterations``,
linear between its rows). One iteration with b is worth I(b_j) / I(b) of those that the job states, b_j its own batch.
So its rate, in its own iterations a second, is

    v_j(r, placement) = max over b of  I(b_j) / (I(b) T(b, r, placement)),

over the batches b of the table and b_j itself, with at least one sample a replica (b >= r); on its own gang also b_j
without this condition. With b = b_j and r = g_j this is 1 / pace, the speed of the rigid job. In the terms of Pollux,
rate = throughput times statistical efficiency, up to a constant of the job; the efficiency is the table's, at every
stage of the training.

With such a batch it is on the network for the share p = (T - C - a) / T of its time over several nodes, C the seconds
of an iteration without communication and a the latency; `optsched.speeds.interface_sharing` uses it where jobs
contend. The batch stays the one that is best alone.

**Elastic** jobs are those at a scaling profile. If it states no iterations, or none for b_j (outside of its rows the
value of another batch is not known), a job keeps its batch and is elastic in r alone. All other jobs are rigid.

**Source**: Qiao et al., Pollux, OSDI 2021 (goodput); the public simulator of petuum/adaptdl (branch osdi21-artifact).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError
from optsched.problem.arrays import Floats, frozen
from optsched.problem.cluster import Places
from optsched.problem.instance import Instance
from optsched.problem.scaling import Scaling
from optsched.speeds.duration import paces, segment_paces
from optsched.speeds.iteration_times import computing_seconds, measured_table, seconds_of, seconds_on

MOST_STEPS = 10**7  # limit of the work for the rates of all elastic jobs, a few microseconds a step

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

    def seconds(self, batch: int, counts: Counts) -> float:
        """Return T(b, r, placement).

        Parameters
        ----------
        batch
            Total batch, in samples.
        counts
            Replicas on each node used.
        """
        if self._table is None:  # the formula depends on the replicas and on whether they are on one node
            counts = counts if len(counts) == 1 else (sum(counts) - 1, 1)
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
        key = tuple(counts)
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


class Goodputs:
    """Rates of every job of an instance, elastic or rigid. O(K G B) for K classes of jobs with B batches each.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    resized
        Jobs at scaling profiles may be resized; false: all jobs are rigid.

    Attributes
    ----------
    elastic
        Jobs that may be resized, bool[n].
    steady
        Jobs with a duration, whose rate is 1 on any GPUs, bool[n].
    by_type
        Jobs whose rate depends on GPU types, and on whether they are on one node, at most, bool[n].

    Raises
    ------
    InputError
        As in `optsched.speeds.duration.paces`.
    """

    def __init__(self, instance: Instance, *, resized: bool = True) -> None:
        self._instance = instance
        self._fastest = paces(instance)[0]
        self._of: list[JobGoodput | None] = [None] * instance.n
        for speeds in instance.speeds:
            for j in speeds.jobs.tolist() if resized and speeds.elastic else ():
                self._of[j] = speeds.goodput(j)
        self.elastic: npt.NDArray[np.bool_] = np.array([goodput is not None for goodput in self._of], dtype=np.bool_)
        self.steady: npt.NDArray[np.bool_] = ~instance.profiled
        self.by_type = self.steady.copy()
        for speeds in instance.speeds:
            self.by_type[speeds.jobs] |= speeds.sees_types and not speeds.sees_nodes
        self._tables: dict[tuple[int, int], Floats] = {}
        self._limits: dict[tuple[int, int], Floats] = {}
        self._rigid: dict[tuple[int, Places], float] = {}

    def require_few(self) -> None:
        """Raise `InputError` before the computation if all rates take too much work.

        A rate takes a step, and more steps if large batches are split.
        """
        steps = sum(goodput.steps for goodput in set(self._of) if goodput is not None) * self._instance.cluster.gpus
        if steps > MOST_STEPS:
            legal = f"at most {MOST_STEPS} steps: fewer GPUs, batches or kinds of elastic jobs"
            raise InputError("the rates of elastic jobs take too much work", field="scalings", value=steps, legal=legal)

    def of(self, job: int) -> JobGoodput | None:
        """Return the rates of an elastic job; None for a rigid one.

        Parameters
        ----------
        job
            Number of the job.
        """
        return self._of[job]

    def rate(self, job: int, on: Places) -> float:
        """Return v_j on some nodes that suit the job, in iterations a second; 0 where it cannot run.

        Parameters
        ----------
        job
            Number of the job.
        on
            (node, GPUs) of the job.
        """
        goodput = self._of[job]
        if goodput is not None:
            return goodput.rate([count for _, count in sorted(on)])
        if sum(count for _, count in on) != self._instance.gpus[job]:
            return 0.0
        if self.steady[job]:
            return 1.0
        placed = job, tuple(on)
        if placed not in self._rigid:  # policies ask for the same places of a rigid job in every round
            nodes = np.repeat(*np.array(on, dtype=np.int64).T)
            pace = float(segment_paces(self._instance, np.array([job]), np.array([0, nodes.size]), nodes)[0])
            self._rigid[placed] = 1.0 / pace if np.isfinite(pace) and pace > 0 else 0.0
        return self._rigid[placed]

    def share(self, job: int, on: Places) -> float | None:
        """Return p_j, the part of its time for which an elastic job is on the network; None for a rigid job.

        Parameters
        ----------
        job
            Number of the job.
        on
            (node, GPUs) of the job.
        """
        goodput, contention = self._of[job], self._instance.contention
        if goodput is None or contention is None:
            return None
        return goodput.share([count for _, count in sorted(on)], contention.latency)

    def table(self, job: int) -> Floats:
        """Return v_j with r GPUs on one node [r, 0] and over several [r, 1], f64[G + 1, 2]; 0 where that is impossible.

        Over several nodes, the widest nodes are filled first. A rigid job has rates on its gang only, those of its
        fastest placement.

        Parameters
        ----------
        job
            Number of the job.
        """
        key = self._key(job)
        if key not in self._tables:
            goodput, sizes, rigid = self._of[job], self._sizes(job), 1.0 / self._fastest[job]
            table = np.zeros((self._instance.cluster.gpus + 1, 2))
            for r in [int(self._instance.gpus[job])] if goodput is None else range(1, sum(sizes) + 1):
                if r <= max(sizes, default=0):
                    table[r, 0] = rigid if goodput is None else goodput.rate((r,))
                if 2 <= r <= sum(sizes) and len(sizes) > 1:
                    table[r, 1] = rigid if goodput is None else goodput.rate(_packed(sizes, r))
            self._tables[key] = frozen(table)
        return self._tables[key]

    def limits(self, job: int) -> Floats:
        """Return upper bounds on the rate of r GPUs on any placement, f64[G + 1]; 0 where the job cannot run on r.

        Parameters
        ----------
        job
            Number of the job.
        """
        key = self._key(job)
        if key not in self._limits:
            goodput, bounds = self._of[job], np.zeros(self._instance.cluster.gpus + 1)
            if goodput is None:
                bounds[int(self._instance.gpus[job])] = 1.0 / self._fastest[job]
            else:
                sizes = self._sizes(job)
                bounds[1 : sum(sizes) + 1] = [goodput.limit(r, sizes) for r in range(1, sum(sizes) + 1)]
            self._limits[key] = frozen(bounds)
        return self._limits[key]

    def _key(self, job: int) -> tuple[int, int]:
        goodput = self._of[job]
        return -1 - job if goodput is None else id(goodput), int(self._instance.job_class[job])

    def _sizes(self, job: int) -> Counts:
        """Return the GPUs of the nodes that suit the job, falling."""
        return tuple(np.sort(self._instance.cluster.node_gpus[self._instance.eligible(job)])[::-1].tolist())


def _packed(sizes: Counts, replicas: int) -> Counts:
    """Return ``replicas`` >= 2 over at least two nodes, the first ones filled first; ``sizes`` are GPUs by node."""
    counts = [
        min(size, max(replicas - before, 0)) for size, before in zip(sizes, accumulate(sizes, initial=0), strict=False)
    ]
    held = tuple(filter(None, counts))
    return held if len(held) > 1 else (replicas - 1, 1)
