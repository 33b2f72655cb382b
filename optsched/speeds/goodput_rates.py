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

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError
from optsched.problem.arrays import Floats, frozen
from optsched.problem.cluster import Places
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces, segment_paces
from optsched.speeds.job_goodput import Counts, JobGoodput, Options

MOST_STEPS = 10**7  # limit of the work for the rates of all elastic jobs, a few microseconds a step


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
        self._options: dict[tuple[int, int], Options] = {}
        self._within: dict[tuple[int, int, int], float] = {}
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
            goodput, sizes = self._of[job], self._sizes(job)
            table = np.zeros((self._instance.cluster.gpus + 1, 2))
            if goodput is None:
                table[self._instance.gpus[job]] = self._rigid_rates(job, sizes)
            else:
                table[1 : sum(sizes) + 1] = [goodput.rates(r, sizes) for r in range(1, sum(sizes) + 1)]
            self._tables[key] = frozen(table)
        return self._tables[key]

    def options(self, job: int) -> Options:
        """Return the numbers of GPUs that are worth considering for a job; of a rigid one, its gang if it can run.

        Parameters
        ----------
        job
            Number of the job.
        """
        key = self._key(job)
        if key not in self._options:
            goodput, sizes = self._of[job], self._sizes(job)
            if goodput is None:
                rates = np.array([self._rigid_rates(job, sizes)])
                gpus, (together, spread) = self._instance.gpus[[job]], rates[rates.any(axis=1)].T
                by_nodes = not bool(self.steady[job])
                self._options[key] = Options(gpus[: together.size], together, spread, by_nodes)
            else:
                self._options[key] = goodput.options(sizes)
        return self._options[key]

    def rate_within(self, job: int, most: int) -> float:
        """Return the best rate on the largest number of GPUs up to a limit on which a job can run; 1 if it never runs.

        A job that needs more has its rate on the smallest number on which it can run.

        Parameters
        ----------
        job
            Number of the job.
        most
            Limit.
        """
        key = *self._key(job), most
        if key not in self._within:
            self._within[key] = self._rate_within(job, most)
        return self._within[key]

    def _rate_within(self, job: int, most: int) -> float:
        goodput, sizes = self._of[job], self._sizes(job)
        if goodput is not None:
            total = sum(sizes)
            for r in [*range(min(most, total), 0, -1), *range(most + 1, total + 1)]:
                rate = max(goodput.rates(r, sizes))
                if rate > 0:
                    return rate
            return 1.0
        rates = self.options(job).rates
        return float(rates[0]) if rates.size else 1.0

    def _rigid_rates(self, job: int, sizes: Counts) -> tuple[float, float]:
        gang, rate = int(self._instance.gpus[job]), 1.0 / float(self._fastest[job])
        spreads = 2 <= gang <= sum(sizes) and len(sizes) > 1
        return rate if gang <= max(sizes, default=0) else 0.0, rate if spreads else 0.0

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
