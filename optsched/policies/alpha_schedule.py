"""Preemptive WSPT on one machine, beside a policy, and when it has done a part of every job."""

from __future__ import annotations

import heapq
import math

from optsched.policies.ties import leading_of


class AlphaSchedule:
    """1 | r_j, pmtn, online-r_j by the largest weight / work, and when a part ``alpha`` of every job is done.

    That is the schedule of the linear program in mean busy times. O(log n) a release or completion.
    """

    def __init__(self, alpha: float) -> None:
        self._alpha, self._since = alpha, 0.0
        self._waiting: list[tuple[float, int]] = []  # a heap of (work / weight rounded, job); the first is in service
        self._left: dict[int, float] = {}  # at the time `_since`
        self._behind: dict[int, float] = {}  # work after the alpha point of those that have not reached it

    def release(self, job: int, now: float, work: float, weight: float) -> None:
        """A new job; call `advance` (now) first."""
        if self._waiting:
            self._left[self._waiting[0][1]] -= now - self._since
        self._since = now
        self._left[job], self._behind[job] = work, (1.0 - self._alpha) * work
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
