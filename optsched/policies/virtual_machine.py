"""The virtual machine of A-SRPT: one unit-speed machine that serves the shortest remaining work, preemptively."""

from __future__ import annotations

import heapq
import math


class VirtualMachine:
    """1 | r_j, pmtn, online-r_j | sum C_j by SRPT, and the beta points of its jobs.

    When a job completes, the smallest (remaining work, job) of those that wait is served; a new job preempts only with
    strictly less, also one that arrives at that very moment. ``B_j(beta)``, the beta point, is when ``beta p_j`` of job j
    has been done (beta = 1: its completion). It never looks at a real cluster: what it does follows from the calls of
    `release` alone.

    **Guarantee** optimal for its problem (Schrage 1968). **Complexity** O(log n) a release or completion, O(1) a look ahead.
    """

    def __init__(self, beta: float = 1.0) -> None:
        self._beta = beta
        self._waiting: list[tuple[float, int]] = []  # a heap of (remaining, job)
        self._job = -1  # in service, with `_left` to do at the time `_since`
        self._left = 0.0
        self._since = 0.0
        self._after_point: dict[int, float] = {}  # work behind the beta point of jobs that have not reached it

    def __len__(self) -> int:
        """Jobs that are not complete."""
        return len(self._waiting) + (self._job >= 0)

    def release(self, job: int, now: float, work: float) -> None:
        """A new job with ``work`` > 0 seconds arrives; call `advance` (now) first."""
        self._after_point[job] = (1.0 - self._beta) * work
        if self._job < 0:
            self._job, self._left, self._since = job, work, now
            return
        left = self._left - (now - self._since)
        if work < left:
            heapq.heappush(self._waiting, (left, self._job))
            self._job, self._left, self._since = job, work, now
        else:
            heapq.heappush(self._waiting, (work, job))

    def next_event(self) -> float:
        """When the job in service reaches its beta point or completes, if nothing arrives before; inf when idle."""
        if self._job < 0:
            return math.inf
        return self._since + (self._left - self._after_point.get(self._job, 0.0))

    def advance(self, now: float) -> list[tuple[float, int]]:
        """Serve until ``now``: (time, job) of the beta points reached since the last call, in order."""
        reached = []
        while self._job >= 0:
            behind = self._after_point.get(self._job)
            if behind is not None and self._since + (self._left - behind) <= now:
                reached.append((self._since + (self._left - behind), self._job))
                del self._after_point[self._job]
            done = self._since + self._left
            if done > now:
                break
            if self._waiting:
                self._left, self._job = heapq.heappop(self._waiting)
                self._since = done
            else:
                self._job = -1
        return reached
