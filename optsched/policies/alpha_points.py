"""Alpha points: jobs without preemption, in the order in which preemptive WSPT has done a part of each."""

from __future__ import annotations

import heapq
import math
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.ties import leading_of
from optsched.problem.arrays import Floats
from optsched.simulation.next_event import last_of_instant
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, View, Wake


class AlphaSchedule:
    """1 | r_j, pmtn, online-r_j by the largest weight / work, with the time when a part alpha of every job is done.

    This is the schedule of the linear program in mean busy times. O(log n) a release or completion.
    """

    def __init__(self) -> None:
        self._since = 0.0
        self._waiting: list[tuple[float, int]] = []  # a heap of (work / weight rounded, job); the first is in service
        self._left: dict[int, float] = {}  # at the time `_since`
        self._behind: dict[int, float] = {}  # work after the alpha point of jobs that have not reached it

    def release(self, job: int, now: float, work: float, weight: float, alpha: float) -> None:
        """Release a new job; call `advance` (now) first.

        Parameters
        ----------
        job
            Number of the job.
        now
            Release date, in seconds.
        work
            Processing time on the machine, in seconds.
        weight
            Weight of the job, >= 0.
        alpha
            Part of the job at its alpha point, in (0, 1].
        """
        if self._waiting:
            self._left[self._waiting[0][1]] -= now - self._since
        self._since = now
        self._left[job], self._behind[job] = work, (1.0 - alpha) * work
        heapq.heappush(self._waiting, (leading_of(work / weight) if weight else math.inf, job))

    def next_event(self) -> float:
        """Return the next alpha point or completion of the job in service, if no job arrives before; inf when idle."""
        if not self._waiting:
            return math.inf
        job = self._waiting[0][1]
        return self._since + (self._left[job] - self._behind.get(job, 0.0))

    def advance(self, now: float) -> list[int]:
        """Serve until ``now`` and return the jobs that have since reached their alpha points, in this order.

        Parameters
        ----------
        now
            Time in seconds.
        """
        reached = []
        while self._waiting and self.next_event() <= now:
            job = self._waiting[0][1]
            if job in self._behind:
                reached.append(job)
                del self._behind[job]
                continue
            self._since += self._left.pop(job)
            heapq.heappop(self._waiting)
        return reached


@dataclass
class AlphaQueue(Policy):
    """Jobs that join a queue at their alpha points and start first in, first out; a job gets its alpha at arrival."""

    knowledge = Knowledge.CLAIRVOYANT

    @abstractmethod
    def _alpha_of(self, job: int) -> float:
        """Return alpha of a job that has arrived."""

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._machine, self._queue = AlphaSchedule(), deque[int]()

    def decide(self, view: View) -> Iterator[Decision]:
        """Serve preemptive WSPT until now; start the jobs at the head of the queue that fit.

        Parameters
        ----------
        view
            State of the run.
        """
        self._queue.extend(self._machine.advance(last_of_instant(view.now)))
        for job in view.arrived:
            work = view.duration(job) * view.gpus(job) / view.cluster_gpus
            self._machine.release(job, view.now, work, view.weight(job), self._alpha_of(job))
        while self._queue and view.fits(self._queue[0]):
            yield Start(self._queue.popleft())
        point = self._machine.next_event()
        if view.now < point < math.inf:
            yield Wake(point)


@POLICIES.register("alpha-points")
@dataclass
class AlphaPoints(AlphaQueue):
    """Alpha points, not preemptive: a job joins the queue when preemptive WSPT, run in parallel, has done a part of it.

    The queue is first in, first out, and its head blocks. For gangs preemptive WSPT runs on one machine as fast as the
    cluster, on which a job has g_j p_j / G seconds of work.

    **Problem** P | r_j, size_j, online-r_j | sum w_j C_j. **Knowledge** clairvoyant.

    **Guarantee** 1 | r_j, online-r_j | sum w_j C_j: max(1 + 1 / alpha, 1 + 2 alpha) times the linear program, which is
    1 + sqrt(2) for alpha = 1 / sqrt(2), the default; 1.6853 in expectation for a well-chosen random alpha. None for
    gangs. **Tight family** none known here. **Complexity** O(log n) an event. **Reference** Goemans, Queyranne,
    Schulz, Skutella and Wang, Single machine scheduling with release dates, SIAM J. Discrete Math. 15 (2002), 165-192;
    Hall, Schulz, Shmoys and Wein 1997 for the order of the program itself.

    Parameters
    ----------
    alpha
        Part of a job that preemptive WSPT does before the job joins the queue.
    """

    alpha: float = math.sqrt(0.5)

    name = "alpha-points"

    def __post_init__(self) -> None:
        check_legal(0 < self.alpha <= 1, "alpha-points: alpha", self.alpha, "a number in (0, 1]")

    def _alpha_of(self, job: int) -> float:
        return self.alpha


APART, COMMON = 0.8999, 0.85106  # the largest alpha with a draw for each job, and with one draw for all


@POLICIES.register("random-alpha-points")
@dataclass
class RandomAlphaPoints(AlphaQueue):
    """Random alpha points, not preemptive: ``alpha-points`` with a part alpha_j drawn for every job.

    alpha_j has the density e^alpha / (e^delta - 1) on [0, delta], delta = 0.8999. The k-th job that arrives has
    the k-th draw of a generator seeded with ``seed``. With ``common`` all jobs have the same draw, delta = 0.85106.

    **Problem** P | r_j, size_j, online-r_j | sum w_j C_j. **Knowledge** clairvoyant.

    **Guarantee** 1 | r_j, online-r_j | sum w_j C_j: in expectation 1.6853 times the linear program, 1.7451 with
    ``common``; every run is within the bound of its own draws (`optsched.guarantees.weighted_completion_times`). None
    for gangs. **Tight family** a long job of no weight, then a short one: 1.68524 in expectation (``late-short-job``).
    **Complexity** O(log n) an event. **Reference** Goemans, Queyranne, Schulz, Skutella and Wang, Single machine
    scheduling with release dates, SIAM J. Discrete Math. 15 (2002), 165-192.

    Parameters
    ----------
    seed
        Seed of the random numbers.
    common
        Draw one alpha for all jobs.
    """

    seed: int = 0
    common: bool = False

    name = "random-alpha-points"

    def __post_init__(self) -> None:
        check_legal(self.seed >= 0, "random-alpha-points: seed", self.seed, "an integer >= 0")

    @property
    def largest(self) -> float:
        """Largest alpha, delta."""
        return COMMON if self.common else APART

    def begin(self, view: View) -> None:
        """Forget the last run and its draws.

        Parameters
        ----------
        view
            State of the run.
        """
        super().begin(view)
        self._random = np.random.Generator(np.random.PCG64(self.seed))
        self._drawn: dict[int, float] = {}  # alpha of the jobs that have arrived, in their order

    def notes(self) -> dict[str, Floats]:
        """Return ``alpha`` of every job, for audits."""
        return {"alpha": np.array([self._drawn[job] for job in sorted(self._drawn)])}

    def _alpha_of(self, job: int) -> float:
        if self.common and self._drawn:
            self._drawn[job] = next(iter(self._drawn.values()))
        else:  # by inversion, never 0
            self._drawn[job] = math.log1p((1.0 - float(self._random.random())) * math.expm1(self.largest))
        return self._drawn[job]
