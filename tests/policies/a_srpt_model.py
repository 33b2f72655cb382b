"""A-SRPT a second way, in plain Python: SRPT by scanning, turns and what overtaking costs by summing up.

Shares no code with the policy. All functions work in ints, fractions or floats, whatever they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Number = Any


def srpt_points(release: Sequence[Number], length: Sequence[Number], beta: Number = 1) -> list[Number]:
    """When SRPT, smallest (remaining, job) first and preempting for strictly less only, has done beta of every job.

    From event to event, with a scan of all jobs at each.
    """
    n = len(release)
    left, point = list(length), [None] * n
    serving: int | None = None
    now = min(release, default=0)
    while any(x > 0 for x in left):
        here = [j for j in range(n) if release[j] <= now and left[j] > 0]
        coming = [r for r in release if r > now]
        if not here:
            now = min(coming)
            serving = None
            continue
        best = min(here, key=lambda j: (left[j], j))
        if (
            serving is None or left[serving] <= 0
        ):  # an end: of equal ones who waited goes before who arrives at this moment
            serving = min([j for j in here if release[j] < now] or here, key=lambda j: (left[j], j))
        if left[best] < left[serving]:
            serving = best
        done = now + left[serving]
        until = min([done, *coming])
        after = 0 if until == done else left[serving] - (until - now)
        behind = length[serving] - beta * length[serving]
        if point[serving] is None and after <= behind:
            point[serving] = now + (left[serving] - behind)
        left[serving], now = after, until
    return point


class Turns:
    """A cluster on which jobs have their turn at ``point`` B_j and others may overtake on a budget; time passes in `run`.

    Whoever decides looks at ``head``, ``waiting``, ``free`` and starts what he likes with `start`; here is counted what that
    costs: charges against limits, and the delay budget of the head while GPUs idle.
    """

    def __init__(
        self,
        total: int,
        release: Sequence[Number],
        gpus: Sequence[int],
        work: Sequence[Number],
        predicted: Sequence[Number],
        point: Sequence[Number],
        delay_budget: Sequence[Number],
        overtake: Number,
    ) -> None:
        self.total, self.release, self.gpus, self.work = total, release, gpus, work
        self.predicted, self.point, self.overtake = predicted, point, overtake
        self.delay_budget = list(delay_budget)
        self.now: Number = -1
        self.times: dict[int, tuple[Number, Number]] = {}  # start, end
        self.charge: dict[int, Number] = {}
        self._wakes: set[Number] = set()
        self._clock: tuple[int, Number, Number] | None = None  # the head that waits, since, at which rate

    def running(self) -> list[int]:
        """In the order of their starts."""
        return [j for j, (_, end) in self.times.items() if end > self.now]

    @property
    def free(self) -> int:
        """GPUs."""
        return self.total - sum(self.gpus[j] for j in self.running())

    def arrived(self) -> list[int]:
        """By number."""
        return [j for j, r in enumerate(self.release) if r <= self.now]

    def waiting(self) -> list[int]:
        """Here, and not started."""
        return [j for j in self.arrived() if j not in self.times]

    def head(self) -> int | None:
        """Whose turn it is."""
        due = [j for j in self.waiting() if self.point[j] <= self.now]
        return min(due, key=lambda j: (self.point[j], j), default=None)

    def rate(self) -> Number:
        """At which the head's delay budget is spent."""
        widest = max(self.gpus[j] for j in self.arrived())
        busy = self.total - self.free
        return max(0, 1 - busy / (self.total - widest + 1))

    def affordable(self, charge: Number) -> bool:
        """May that overtake the head?"""
        if self.overtake == float("inf"):
            return True
        head = self.head()
        since = self.now if head is None else self.point[head]
        done = {j for j in self.charge if self.times[j][1] < since or (head is None and self.times[j][1] == since)}
        over = sum(self.charge[j] for j in self.charge if j in done)
        return bool(sum(self.charge.values()) + charge <= over + self.overtake * self.total * since)

    def start(self, j: int, pace: Number) -> None:
        """In turn if it is the head, else charged."""
        if j != self.head():
            self.charge[j] = self.gpus[j] * self.predicted[j] * pace
        self.times[j] = self.now, self.now + self.work[j] * pace

    def run(self, decide: Callable[[], None], until: Callable[[], Sequence[Number]]) -> list[tuple[Number, Number]]:
        """(start, end) of every job; ``until()``: when to ask again where nobody has a turn, beside arrivals and ends."""
        while len(self.times) < len(self.release):
            moments = [*self.release, *(end for _, end in self.times.values()), *self._wakes]
            self.now = min(t for t in moments if t > self.now)
            self._spend()
            decide()
            if self.waiting() and self.free:
                self._sleep(until())
        return [self.times[j] for j in range(len(self.release))]

    def _spend(self) -> None:
        if self._clock is not None:
            j, since, rate = self._clock
            spent = self.now >= since + self.delay_budget[j] / rate
            self.delay_budget[j] = 0 if spent else self.delay_budget[j] - rate * (self.now - since)
            self._clock = None

    def _sleep(self, times: Sequence[Number]) -> None:
        head, rate = self.head(), self.rate()
        if head is None:
            later = [t for t in times if t > self.now]
            self._wakes |= {min(later)} if later else set()
        elif rate > 0 and self.delay_budget[head] > 0:
            self._clock = head, self.now, rate
            self._wakes.add(self.now + self.delay_budget[head] / rate)
