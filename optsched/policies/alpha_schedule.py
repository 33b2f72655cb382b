"""Preemptive WSPT on one machine, beside a policy, and jobs in the order in which it has done a part of each."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator

from optsched.policies.ties import leading_of
from optsched.simulation.instant import last_of_instant
from optsched.simulation.policy import Decision, Start, View, Wake


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


class AlphaQueue:
    """Jobs queue up at their alpha points and start first in, first out, without preemption; the head blocks.

    For gangs the schedule runs on one machine as fast as the cluster, to which a job is g_j p_j / G seconds of work.
    O(log n) an event.
    """

    def __init__(self) -> None:
        self._machine, self._queue = AlphaSchedule(), deque[int]()

    def decide(self, view: View, alpha_of: Callable[[int], float]) -> Iterator[Decision]:
        """Serve preemptive WSPT until now, and start what its alpha points allow."""
        self._queue.extend(self._machine.advance(last_of_instant(view.now)))
        for job in view.arrived:
            work = view.duration(job) * view.gpus(job) / view.cluster_gpus
            self._machine.release(job, view.now, work, view.weight(job), alpha_of(job))
        while self._queue and view.fits(self._queue[0]):
            yield Start(self._queue.popleft())
        point = self._machine.next_event()
        if view.now < point < math.inf:
            yield Wake(point)
