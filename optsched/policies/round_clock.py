"""When rounds begin: every ``length`` seconds from the first arrival in an idle cluster on."""

from __future__ import annotations

import math

SHORTEST = 1e-3  # seconds of a round: shorter ones would be no more than the rounding of late clocks


class RoundClock:
    """Boundaries anchor + k * length, k = 0, 1, ...; the anchor is set anew after every `stop`."""

    def __init__(self, length: float) -> None:
        self.length = length
        self._anchor = math.nan
        self._index = 0  # of the next boundary

    def boundary(self, now: float) -> float:
        """When the round that is due was to begin; ``now`` in an idle cluster."""
        return now if math.isnan(self._anchor) else self._anchor + self._index * self.length

    def stop(self) -> None:
        """The cluster is idle: the next arrival begins a round."""
        self._anchor = math.nan

    def due(self, now: float) -> bool:
        """Does a round begin now?"""
        return now >= self.boundary(now)

    def begin(self, now: float) -> float:
        """A round begins; when the next one does."""
        if math.isnan(self._anchor):
            self._anchor, self._index = now, 0
        self._index += 1
        return self.next(now)

    def next(self, now: float) -> float:
        """The next boundary after ``now``; those that were slept through are gone."""
        return self.upcoming(math.nextafter(now, math.inf))

    def upcoming(self, now: float) -> float:
        """The next boundary at ``now`` or later; those that were slept through are gone."""
        self._index = max(self._index, math.floor((now - self._anchor) / self.length))
        while self._anchor + self._index * self.length < now:
            self._index += 1
        return self._anchor + self._index * self.length
