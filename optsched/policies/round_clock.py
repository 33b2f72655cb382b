"""When rounds begin: every ``length`` seconds from the first arrival in an idle cluster on."""

from __future__ import annotations

import math

SHORTEST = 1e-3  # seconds of a round: shorter ones would be no more than the rounding of late clocks


class RoundClock:
    """Boundaries ``zero`` + k ``length``, of which ``number`` k is the next; ``zero`` is set anew after every `stop`."""

    def __init__(self, length: float) -> None:
        self.length = length
        self.zero = math.nan
        self.number = 0

    def begins(self, number: int) -> float:
        """When a round does."""
        return self.zero + number * self.length

    def boundary(self, now: float) -> float:
        """When the round that is due was to begin; ``now`` in an idle cluster."""
        return now if math.isnan(self.zero) else self.begins(self.number)

    def stop(self) -> None:
        """The cluster is idle: the next arrival begins a round."""
        self.zero = math.nan

    def due(self, now: float) -> bool:
        """Does a round begin now?"""
        return now >= self.boundary(now)

    def begin(self, now: float) -> float:
        """A round begins; when the next one does."""
        if math.isnan(self.zero):
            self.zero, self.number = now, 0
        self.number += 1
        return self.upcoming(math.nextafter(now, math.inf))

    def upcoming(self, now: float) -> float:
        """The next boundary at ``now`` or later; those that were slept through are gone."""
        self.number = max(self.number, math.floor((now - self.zero) / self.length))
        while self.begins(self.number) < now:
            self.number += 1
        return self.begins(self.number)
