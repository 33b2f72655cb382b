"""Alpha points: jobs without preemption, in the order in which preemptive WSPT has done a part of each, given or drawn."""

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
    """1 | r_j, pmtn, online-r_j by the largest weight / work, and when a part alpha of every job is done.

    That is the schedule of the linear program in mean busy times. O(log n) a release or completion.
    """

    def __init__(self) -> None:
        self._since = 0.0
        self._waiting: list[tuple[float, int]] = []  # a heap of (work / weight rounded, job); the first is in service
        self._left: dict[int, float] = {}  # at the time `_since`
        self._behind: dict[int, float] = {}  # work after the alpha point of those that have not reached it

    def release(self, job: int, now: float, work: float, weight: float, alpha: float) -> None:
        """A new job, with its own alpha in (0, 1]; call `advance` (now) first."""
        if self._waiting:
            self._left[self._waiting[0][1]] -= now - self._since
        self._since = now
        self._left[job], self._behind[job] = work, (1.0 - alpha) * work
        heapq.heappush(self._waiting, (leading_of(work / weight) if weight else math.inf, job))

    def next_event(self) -> float:
        """When the job in service reaches its alpha point or completes, if nothing arrives before; inf when idle."""
        if not self._waiting:
            return math.inf
        job = self._waiting[0][1]
        return self._since + (self._left[job] - self._behind.get(job, 0.0))

    def advance(self, now: float) -> list[int]:
        """Serve until ``now``; who has reached its alpha point since the last call, in that order."""
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
    """Jobs queue up at their alpha points and start first in, first out; each is given its alpha at its arrival."""

    knowledge = Knowledge.CLAIRVOYANT

    @abstractmethod
    def _alpha_of(self, job: int) -> float:
        """Of a job that has come."""

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._machine, self._queue = AlphaSchedule(), deque[int]()

    def decide(self, view: View) -> Iterator[Decision]:
        """Serve preemptive WSPT until now, and start what its alpha points allow."""
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
    """Alpha points, not preemptive: a job queues up when preemptive WSPT, alongside, has done a part ``alpha`` of it.

    The queue is first in, first out, and its head blocks. For gangs preemptive WSPT runs on one machine as fast as the
    cluster, to which a job is g_j p_j / G seconds of work.

    **Problem** P | r_j, size_j, online-r_j | sum w_j C_j. **Knowledge** clairvoyant.

    **Guarantee** 1 | r_j, online-r_j | sum w_j C_j: max(1 + 1 / alpha, 1 + 2 alpha) times the linear program, which is 1 +
    sqrt(2) for alpha = 1 / sqrt(2), the default; 1.6853 in expectation for a well-chosen random alpha. None for gangs.
    **Tight family** none known here. **Complexity** O(log n) an event.
    **Reference** Goemans, Queyranne, Schulz, Skutella and Wang, Single machine scheduling with release dates, SIAM J.
    Discrete Math. 15 (2002), 165-192; Hall, Schulz, Shmoys and Wein 1997 for the order of the program itself.
    """

    alpha: float = math.sqrt(0.5)

    name = "alpha-points"

    def __post_init__(self) -> None:
        check_legal(0 < self.alpha <= 1, "alpha-points: alpha", self.alpha, "a number in (0, 1]")

    def _alpha_of(self, job: int) -> float:
        return self.alpha


APART, COMMON = 0.8999, 0.85106  # the largest alpha, of jobs that draw for themselves and of all together


@POLICIES.register("random-alpha-points")
@dataclass
class RandomAlphaPoints(AlphaQueue):
    """Random alpha points, not preemptive: ``alpha-points`` with a part alpha_j drawn for every job.

    Each has the density e^alpha / (e^delta - 1) on [0, delta], delta = 0.8999. The k-th job that comes has
    the k-th draw of a generator seeded with ``seed``. With ``common`` there is one draw for all jobs, delta = 0.85106.

    **Problem** P | r_j, size_j, online-r_j | sum w_j C_j. **Knowledge** clairvoyant.

    **Guarantee** 1 | r_j, online-r_j | sum w_j C_j: in expectation 1.6853 times the linear program, 1.7451 with ``common``;
    every run within what its own draws allow (`optsched.guarantees.weighted_completion_times`). None for gangs. **Tight
    family** a long job of no weight, then a short one: 1.68524 in expectation (``late-short-job``). **Complexity** O(log n)
    an event.
    **Reference** Goemans, Queyranne, Schulz, Skutella and Wang, Single machine scheduling with release dates, SIAM J.
    Discrete Math. 15 (2002), 165-192.
    """

    seed: int = 0
    common: bool = False

    name = "random-alpha-points"

    def __post_init__(self) -> None:
        check_legal(self.seed >= 0, "random-alpha-points: seed", self.seed, "an integer >= 0")

    @property
    def largest(self) -> float:
        """delta."""
        return COMMON if self.common else APART

    def begin(self, view: View) -> None:
        """Forget the last run and its draws."""
        super().begin(view)
        self._random = np.random.Generator(np.random.PCG64(self.seed))
        self._drawn: dict[int, float] = {}  # alpha of those that have come, in their order

    def notes(self) -> dict[str, Floats]:
        """For audits: ``alpha`` of every job."""
        return {"alpha": np.array([self._drawn[job] for job in sorted(self._drawn)])}

    def _alpha_of(self, job: int) -> float:
        if self.common and self._drawn:
            self._drawn[job] = next(iter(self._drawn.values()))
        else:  # by inversion, never 0
            self._drawn[job] = math.log1p((1.0 - float(self._random.random())) * math.expm1(self.largest))
        return self._drawn[job]
