"""The times at which a policy asked to be asked again, and the end of a policy that does nothing else."""

from __future__ import annotations

import heapq
import math

from optsched.errors import SimulationError

PATIENCE = 10_000  # times in a row that a policy is woken, and nothing happens; ten times as often if nothing else will
HOPELESS = 1e7  # times more until the next event, as often as it was woken lately


class Wakes:
    """A heap of times. ``due`` drops what has passed and counts how often a wake alone brought the policy on.

    A policy may wake often: every minute of a job that runs for a year, or while it lets a job wait. It does so for ever if
    no event will come, or if the events to come are out of reach at its pace: it wakes ever sooner, or every nanosecond.
    """

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._times: list[float] = []
        self._woken = 0
        self._since = 0.0

    def add(self, time: float) -> None:
        """Ask again at ``time``."""
        heapq.heappush(self._times, time)

    def of_instant(self, last: float) -> float:
        """The last of the times up to ``last``, one instant and one question, which are over; inf where there is none."""
        time = math.inf
        while self._times and self._times[0] <= last:
            time = heapq.heappop(self._times)
        return time

    def due(self, now: float, event: float, *, quiet: bool, acted: bool) -> float:
        """The next time to ask at, inf where there is none, after the policy has been asked at ``now``.

        ``quiet``: a wake alone had brought it on, and ``event`` is when the next thing happens by itself (inf: never);
        ``acted``: it started or stopped a job. Raises `SimulationError` for a policy that would go on for ever.
        """
        while self._times and self._times[0] <= now:
            heapq.heappop(self._times)
        if not quiet or not self._times:
            self._woken, self._since = 0, now
            return self._times[0] if self._times else math.inf
        self._woken += 1
        if self._woken % PATIENCE == 0 and not (
            acted and event == math.inf
        ):  # it may be about to start what it stopped
            self._judge(now, event)
        return self._times[0]

    def _judge(self, now: float, event: float) -> None:
        step = (now - self._since) / self._woken
        if event == math.inf and self._woken < 10 * PATIENCE:
            return
        if event - now > HOPELESS * step:
            what = "nothing else will happen" if event == math.inf else f"the next event is at {event:g} s"
            raise SimulationError(
                f"policy {self._policy} at {now:g} s: it was woken {self._woken:,} times in a row, every {step:.3g} s "
                f"on average, while nothing happened; {what}"
            )
        self._woken, self._since = 0, now
