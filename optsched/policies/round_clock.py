"""Beginnings of rounds: every ``length`` seconds from the first arrival in an idle cluster on."""

from __future__ import annotations

import math

from optsched.compiled import NESTED, njit

SHORTEST = 1e-3  # seconds of a round: shorter ones are within the rounding errors of late clocks


class RoundClock:
    """Boundaries ``zero`` + k ``length`` of rounds; ``number`` is the next k, and `stop` forgets ``zero``.

    Parameters
    ----------
    length
        Length of a round, in seconds.
    """

    def __init__(self, length: float) -> None:
        self.length = length
        self.zero = math.nan
        self.number = 0

    def begins(self, number: int) -> float:
        """Return the time at which a round begins, in seconds.

        Parameters
        ----------
        number
            Number of the round.
        """
        return self.zero + number * self.length

    def boundary(self, now: float) -> float:
        """Return the planned beginning of the next round; ``now`` in an idle cluster.

        Parameters
        ----------
        now
            Time in seconds.
        """
        return now if math.isnan(self.zero) else self.begins(self.number)

    def stop(self) -> None:
        """Record that the cluster is idle: the next arrival begins a round."""
        self.zero = math.nan

    def due(self, now: float) -> bool:
        """Return True if a round begins now.

        Parameters
        ----------
        now
            Time in seconds.
        """
        return now >= self.boundary(now)

    def begin(self, now: float) -> float:
        """Begin a round and return the time at which the next one begins.

        Parameters
        ----------
        now
            Time in seconds.
        """
        if math.isnan(self.zero):
            self.zero, self.number = now, 0
        self.number += 1
        return self.upcoming(math.nextafter(now, math.inf))

    def upcoming(self, now: float) -> float:
        """Return the next boundary at ``now`` or later; earlier boundaries are skipped.

        Parameters
        ----------
        now
            Time in seconds.
        """
        self.number = max(self.number, math.floor((now - self.zero) / self.length))
        while self.begins(self.number) < now:
            self.number += 1
        return self.begins(self.number)


@njit(**NESTED)
def next_round(zero: float, length: float, number: int, now: float) -> int:
    """Return the number of the first round, from ``number`` on, that begins at ``now`` or later, as `RoundClock.upcoming`.

    Parameters
    ----------
    zero
        Beginning of round 0, in seconds.
    length
        Length of a round, in seconds.
    number
        Least number of a round.
    now
        Time in seconds.
    """
    number = max(number, math.floor((now - zero) / length))
    while zero + number * length < now:
        number += 1
    return number
