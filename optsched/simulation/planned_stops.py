"""Stops that a policy plans: jobs that are stopped at a time to come, without the policy being asked then."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from optsched.simulation.entry_points import EntryPoints


class PlannedStops:
    """Which running jobs are stopped when. What is planned for a job ends with its present run."""

    def __init__(self, engine: EntryPoints) -> None:
        self._engine = engine
        self._until: dict[int, float] = {}
        self._times, self._jobs, self._at = np.zeros(0), np.zeros(0, dtype=np.int64), 0
        self._sorted = True

    def add_all(self, jobs: list[int], times: list[float]) -> None:
        """These running jobs stop at these times to come, and not at others."""
        self._until.update(zip(jobs, times, strict=True))
        self._sorted = False

    def drop_all(self, jobs: Iterable[int]) -> None:
        """These run no longer."""
        if self._until:
            for job in jobs:
                self._sorted = self._until.pop(job, None) is None and self._sorted

    def next_time(self) -> float:
        """When the next stop is planned, once all that can be have been carried out before anything else happens."""
        if not self._until:
            return math.inf
        if not self._sorted:
            planned = sorted((time, job) for job, time in self._until.items())
            self._times = np.array([time for time, _ in planned])
            self._jobs = np.array([job for _, job in planned], dtype=np.int64)
            self._at, self._sorted = 0, True
        before = self._at
        self._at = self._engine.stop_as_planned(self._times, self._jobs, before)
        for job in self._jobs[before : self._at].tolist():
            del self._until[job]
        return float(self._times[self._at]) if self._at < self._times.size else math.inf

    @property
    def first(self) -> float:
        """When the first one is planned, inf where there is none."""
        return min(self._until.values(), default=math.inf)

    def with_wake(self, wake: float, last: float) -> float:
        """The last of the times up to ``last``, of which there are some; and of ``wake``, if it is one of them."""
        times = [time for time in (wake, *self._until.values()) if time <= last]
        return max(times)

    def carry_out(self, last: float) -> None:
        """Stop whom it is time to stop when an instant ends at ``last``."""
        over = sorted((time, job) for job, time in self._until.items() if time <= last)
        for _, job in over:
            self._engine.stop(job)
        self.drop_all(job for _, job in over)
