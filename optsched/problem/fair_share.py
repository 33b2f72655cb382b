"""The fair flow time of every job: how long it would stay if the cluster were shared equally at every moment.

**Problem**: G GPUs that can be divided without end (egalitarian processor sharing). Every job that is there has as many as
every other, but no more than its gang, what others cannot use being shared again; at x of its g GPUs it runs at x / g of its
best speed. d_j is the time from its arrival to its end there: a number of the instance alone, whatever is scheduled, at
least its seconds alone, and exactly these where it never meets more work than GPUs. Weights count for nothing; neither do
nodes, types and memory: all GPUs are as good as those on which a job is fastest, as in its seconds alone.
**Rule in integers**, so that whoever computes it again has the same numbers: ticks count from the first arrival, 2^60 to
2^61 of them in the shortest job; times are rounded down to ticks; from one event (arrivals, ends) to the next the first end
is rounded up, what a gang gets done is rounded down. d_j is the nearest float64, at least the seconds alone.
**Reference**: Friedman and Henderson, Fairness and efficiency in web server protocols, SIGMETRICS 2003: nobody should end
later than under processor sharing; as a ratio, the finish-time fairness of Mahajan et al., Themis, NSDI 2020, where the
share is that of the jobs present in the schedule itself, so that every schedule has a yardstick of its own.
**Complexity** O(n (k + log n)) for k sizes of gangs, in Python integers.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from optsched.problem.arrays import Floats, Ints, frozen
from optsched.problem.cluster import Cluster

BITS = 60  # of the shortest job, in ticks


class Paced(Protocol):
    """Some jobs of an instance and how fast they run: an `optsched.problem.job_speeds.JobSpeeds`."""

    jobs: Ints

    def paces(self) -> tuple[Floats, Floats]:
        """Return the fewest and the most seconds that a unit of work can take, f64[k] each."""


class SharingJobs(Protocol):
    """The part of an instance that decides the fair flow times of its jobs."""

    @property
    def n(self) -> int:
        """Number of jobs."""

    @property
    def arrival(self) -> Floats:
        """Release dates r_j in seconds, f64[n]."""

    @property
    def gpus(self) -> Ints:
        """Gang sizes, i64[n]."""

    @property
    def work(self) -> Floats:
        """Units of work, f64[n]."""

    @property
    def cluster(self) -> Cluster:
        """Cluster whose GPUs are shared."""

    @property
    def speeds(self) -> Iterable[Paced]:
        """Speeds of all jobs, a part for every model of speeds."""

    def __hash__(self) -> int:
        """Return the same number for equal instances: the times are computed once for them."""


@lru_cache(maxsize=8)
def fair_flow_times(jobs: SharingJobs) -> Floats:
    """Return the fair flow times d_j of all jobs in seconds, f64[n], read-only.

    Parameters
    ----------
    jobs
        An instance.

    Raises
    ------
    InputError
        When a job has no speed on this cluster.
    """
    fastest = np.ones(jobs.n)
    for speeds in jobs.speeds:
        fastest[speeds.jobs] = speeds.paces()[0]
    alone = (jobs.work * fastest).tolist()
    scale = Fraction(2) ** (BITS + 1 - math.frexp(min(alone, default=1.0))[1])
    arrivals = [Fraction(r) for r in jobs.arrival.tolist()]
    first = min(arrivals, default=Fraction(0))
    arrival = [math.floor((r - first) * scale) for r in arrivals]
    stay = _stays(arrival, [math.floor(Fraction(p) * scale) for p in alone], jobs.gpus.tolist(), jobs.cluster.gpus)
    return frozen(np.array([max(float(x / scale), p) for x, p in zip(stay, alone, strict=True)], dtype=np.float64))


def _stays(arrival: Sequence[int], work: Sequence[int], gangs: Sequence[int], total: int) -> list[int]:
    """Ticks from arrival to end; jobs of one width are served alike, so that a heap of their ends is enough."""
    order = sorted(range(len(work)), key=arrival.__getitem__)
    waiting: dict[int, list[tuple[int, int]]] = {
        width: [] for width in sorted(set(gangs))
    }  # (served when it ends, job)
    served = dict.fromkeys(waiting, 0)  # what a job of that width has got done that was there from the beginning
    stay, now, came, present = [0] * len(work), 0, 0, 0
    while came < len(work) or present:
        rates = _rates(waiting, total, present)
        steps = [-((served[w] - waiting[w][0][0]) * per // rate) for w, rate, per in rates]
        if came < len(work):
            steps.append(arrival[order[came]] - now)
        step = min(steps)
        now += step
        for w, rate, per in rates:
            served[w] += step * rate // per
            while waiting[w] and waiting[w][0][0] <= served[w]:
                j = heapq.heappop(waiting[w])[1]
                stay[j], present = now - arrival[j], present - 1
        while came < len(work) and arrival[order[came]] <= now:
            j = order[came]
            heapq.heappush(waiting[gangs[j]], (served[gangs[j]] + work[j], j))
            came, present = came + 1, present + 1
    return stay


def _rates(waiting: dict[int, list[tuple[int, int]]], total: int, present: int) -> list[tuple[int, int, int]]:
    """(width, p, q) of all that are there: they run at p / q of their speed. Narrow gangs have what they can use first."""
    free, left, rates = total, present, []
    for width, jobs in waiting.items():
        if not jobs:
            continue
        if width * left <= free:
            rates.append((width, 1, 1))
            free, left = free - width * len(jobs), left - len(jobs)
        else:
            rates.append((width, free, left * width))
    return rates
