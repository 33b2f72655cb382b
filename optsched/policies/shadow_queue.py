"""Safe backfilling: a job may overtake only where no job ahead of it can lose its place in the strict queue."""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict

import numpy as np


class ShadowQueue:
    """The strict first-in-first-out schedule that would be, from upper bounds on durations, kept as reservations.

    F_j is when strict order would start job j at the latest: after the job before it, once its gang is free of the bounds of
    earlier jobs, and after its full budget of delay. A job may start before F_j if running jobs (with their bounds), the
    reservations [F_i, F_i + d_i) of all other queued jobs and itself never exceed G GPUs.

    Times are compared exactly: reservations meet in the very floats that they are made of, and now + d never rounds to more
    than F + d for now <= F. (A tolerance would overlook reservations that are shorter than it.)

    **Guarantee** no job starts after F_j, so that every bound for the strict order holds (A-SRPT sheet, 5.1). **Complexity**
    O(log n) to add a job; O(m log m) numpy a question, m jobs queued or running.
    """

    def __init__(self, gpus: int) -> None:
        self._total = gpus
        self._free = gpus
        self._last = 0.0  # F of the job that came last
        self._ends: list[tuple[float, int]] = []  # shadow occupancy: (end, GPUs), a heap
        self._queued: OrderedDict[int, tuple[float, float, int]] = OrderedDict()  # job -> F, F + d, GPUs
        self._longest: dict[int, float] = {}  # d
        self._running: dict[int, tuple[float, int]] = {}  # job -> end by its bound, GPUs

    def add(self, job: int, now: float, gpus: int, longest: float, delay: float) -> None:
        """A job joins the queue: at most ``longest`` seconds on ``gpus``, ``delay`` seconds of patience."""
        start = max(now, self._last)
        while self._ends and (self._ends[0][0] <= start or self._free < gpus):
            end, freed = heapq.heappop(self._ends)
            self._free += freed
            start = max(start, end)
        start += delay
        while self._ends and self._ends[0][0] <= start:
            self._free += heapq.heappop(self._ends)[1]
        self._free -= gpus
        self._last = start
        heapq.heappush(self._ends, (start + longest, gpus))
        self._queued[job], self._longest[job] = (start, start + longest, gpus), longest

    def latest_start(self, job: int) -> float:
        """F_j of a queued job."""
        return self._queued[job][0]

    def next_start(self, now: float) -> float:
        """The first F_j after ``now``; inf when there is none. (F never falls along the queue.)"""
        return next((start for start, _, _ in self._queued.values() if start > now), math.inf)

    def may_start(self, job: int, now: float) -> bool:
        """Would starting ``job`` now leave every reservation in its place?"""
        start, _, gpus = self._queued[job]
        if now >= start:
            return True
        until = now + self._longest[job]
        others = [(begin, stop, size) for k, (begin, stop, size) in self._queued.items() if k != job]
        others += [(now, stop, size) for stop, size in self._running.values()]
        if not others:
            return True
        begin, stop, size = (np.array(column) for column in zip(*others, strict=True))
        beside = (begin < until) & (stop > now)
        begin, stop, size = np.maximum(begin[beside], now), stop[beside], size[beside]
        change = np.concatenate([size, -size])
        order = np.lexsort(
            (change, np.concatenate([begin, stop]))
        )  # at one moment GPUs are freed before they are taken
        return bool(np.cumsum(change[order]).max(initial=0) + gpus <= self._total)

    def start(self, job: int, now: float) -> None:
        """The job starts: its reservation becomes a running job that ends by its bound."""
        gpus = self._queued.pop(job)[2]
        self._running[job] = (now + self._longest.pop(job), gpus)

    def finish(self, job: int) -> None:
        """The job has completed."""
        self._running.pop(job, None)
