"""Contention at the job level: how whole jobs that share network interfaces slow each other.

**Formula.** A unit of work of a job on several nodes takes T seconds alone, C of them communication: the difference
between its pace there and that on the same nodes with infinitely fast interfaces, less the latency a, which does not
contend. So it is on the interfaces of its nodes for the share p = C / T of the time alone. All-reduces of other jobs
slow its own: with k - 1 of them a byte takes k b + (k - 1) eta = b (1 + (k - 1) s) seconds, s = 1 + eta / b. On an
interface with jobs 1 .. m, job j is busy for the share u_j of its time, and meets the shares of the others there on
average:

    f_j = 1 + s sum_{i != j} u_i,     u_i = p_i f_i / (1 - p_i + p_i f_i),

a fixed point, since a job that is slowed transmits longer. There is exactly one (the right side rises with f, is
concave, and positive at 0). The slowest interface of its nodes decides, so that a unit of work takes job j

    T (1 - p_j + p_j max f_j) = T (1 + p_j s max sum_{i != j} u_i)   seconds.

So the speed of a job depends only on the jobs on its own interfaces; it never gains from other jobs, and a job without
others runs at its pace alone. Jobs with a duration, or at the speeds of a table, declare no communication: they
neither slow others nor are slowed. For two jobs on one GPU, xi stretches all of an iteration, p stays, and both
factors multiply.

The task level, where every all-reduce is an event, is the reference. docs/tasks-and-network.md states the error of
this average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import NESTED, njit
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.speeds.duration import communicating
from optsched.speeds.speed_tables import SpeedTables, profile_pace, stage_tables

ROUNDS = 10_000  # limit on the fixed-point iterations; each reduces the error by a constant factor
SETTLED = 1e-15  # relative


# --- the formula, to be read ------------------------------------------------------------------------------------------


def others_met(shares: Sequence[float], step: float) -> list[float]:
    """Return sum_{i != j} u_i of every job j on one interface: the average number of other jobs that it meets there.

    The fixed point is iterated from below.

    Parameters
    ----------
    shares
        Shares p_j in [0, 1].
    step
        s = 1 + eta / b > 0.

    Examples
    --------
    >>> [round(met, 4) for met in others_met([0.5, 0.5], 1.0)]
    [0.618, 0.618]
    """
    slow = [1.0] * len(shares)
    for _ in range(ROUNDS):
        busy = [p * f / (1 - p + p * f) for p, f in zip(shares, slow, strict=True)]
        met = [math.fsum(busy[:j] + busy[j + 1 :]) for j in range(len(busy))]
        last, slow = slow, [1 + step * others for others in met]
        if all(f - before <= SETTLED * f for f, before in zip(slow, last, strict=True)):
            break
    return met if shares else []


class CommunicationShares:
    """The shares p of the jobs of an instance with contention; its ``step`` s = 1 + eta / b > 0, ``latency`` a seconds.

    Parameters
    ----------
    instance
        Jobs and a cluster, with contention.
    """

    def __init__(self, instance: Instance) -> None:
        cost = instance.contention
        assert cost is not None  # callers check this
        self.instance, self.latency = instance, cost.latency
        self.step = 1.0 + cost.penalty / cost.seconds_per_byte
        self._contends: list[bool] = communicating(instance).tolist()

    def share(self, job: int, nodes: Sequence[int], pace: float, steps: int) -> float:
        """Return the share p of the time for which a job is on the network.

        Parameters
        ----------
        job
            Number of the job.
        nodes
            Node of every replica.
        pace
            Seconds of a unit of work alone.
        steps
            Sub-steps of an iteration.
        """
        if not (self._contends[job] and len(set(nodes)) > 1 and 0 < pace < math.inf):
            return 0.0
        compute_time = self.instance.speeds_of(job).compute_time(job, tuple(nodes), steps)
        return max(0.0, pace - compute_time - self.latency) / pace


# --- compiled ---------------------------------------------------------------------------------------------------------


class CommunicationTables(NamedTuple):
    """Tables of n jobs, O sub-batches at most."""

    computing: Floats  # f64[n, O] seconds of a unit without communication; inf: it never contends, nan: by its stages
    compute_time: SpeedTables  # with infinitely fast interfaces
    numbers: Floats  # latency, step s


def communication_tables(instance: Instance) -> CommunicationTables:
    """Return the tables of an instance in which jobs contend; every node is a pool of GPUs.

    Parameters
    ----------
    instance
        Jobs and a cluster, with contention.
    """
    seconds: dict[int, Sequence[float]] = {}
    for j in np.flatnonzero(communicating(instance)).tolist():
        seconds[j] = instance.speeds_of(j).compiled_compute_time(j)
    computing = np.full((instance.n, max(map(len, seconds.values()), default=1)), np.inf)
    for j, row in seconds.items():
        computing[j, : len(row)] = row
    compute_time = stage_tables(instance, compute_time=True)
    shares = CommunicationShares(instance)
    return CommunicationTables(computing, compute_time, np.array([shares.latency, shares.step]))


@njit(**NESTED)
def communication_share(t: CommunicationTables, job: int, option: int, pace: float, pool: Any, count: Any) -> float:
    """Return p of a job on several nodes, compiled.

    Parameters
    ----------
    t
        Tables of the instance.
    job
        Number of the job.
    option
        Number of its sub-batch.
    pace
        Seconds of a unit of work alone.
    pool, count
        Entries of its placement: node and GPUs.
    """
    compute_time = t.computing[job, option]
    if np.isnan(compute_time):
        compute_time = profile_pace(t.compute_time, t.compute_time.jobs[job].profile, pool, count)
    return float(max(0.0, pace - compute_time - t.numbers[0]) / pace)


@njit(**NESTED)
def _busy(share: float, step: float, total: float) -> float:
    # u of one job where all have ``total`` together: the smaller root of p (1 + s (S - u)) (1 - u) = (1 - p) u
    most = share * (1.0 + step * total)
    middle = most + step * share + 1.0 - share
    root = np.sqrt(max(0.0, middle * middle - 4.0 * step * share * most))
    return float(2.0 * most / (middle + root))


@njit(**NESTED)
def fill_met(share: Any, step: float, met: Any) -> None:
    """Compute `others_met`, compiled.

    With S = sum u_i every u_i is the root of a square, concave in S, and so is their sum less S: Newton's method from
    S = m falls to the only root. O(m) a step, some six steps.

    Parameters
    ----------
    share
        Shares p of the jobs, f64[m].
    step
        s = 1 + eta / b.
    met
        Output, f64[m].
    """
    total = float(share.size)
    for _ in range(100):
        excess, slope = -total, -1.0
        for i in range(share.size):
            u = _busy(share[i], step, total)
            excess += u
            p = share[i] * step * (1.0 - u)
            slope += p / (p + share[i] * (1.0 + step * (total - u)) + 1.0 - share[i])
        lower = total - excess / slope
        if not lower < total * (1.0 - SETTLED):
            break
        total = lower
    together = 0.0
    for i in range(share.size):
        met[i] = _busy(share[i], step, total)
        together += met[i]
    for i in range(share.size):
        met[i] = max(0.0, together - met[i])
