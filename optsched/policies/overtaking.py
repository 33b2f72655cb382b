"""Overtaking on a budget: what may start before its turn in a queue, so that nobody's wait grows by more than a factor."""

from __future__ import annotations

import math

from optsched.policies.ties import TIE


class Overtaking:
    """GPU-seconds of jobs that started out of turn: at any time t those that still run, and all that start while a job
    that came at t waits, are charged at most ``share`` G t.

    A job joins the queue with a `limit`; a start out of turn is allowed while the charges so far and its own stay within
    the limit of the head of the queue, or where nobody waits within that of a job that joined now. Limits never fall along
    the queue, so that the head's is the least.

    Charges are predicted: g_j n^_j alpha GPU-seconds. **Guarantee** from when a job joined, at t, until it starts, jobs out
    of turn hold at most lam_u ``share`` G t GPU-seconds, if predictions are at most lam_u times too small.
    **Complexity** O(1) each.
    """

    def __init__(self, gpus: int, share: float) -> None:
        self._rate = share * gpus
        self._charged = 0.0  # all charges so far
        self._over = 0.0  # those of jobs that have completed
        self._charge: dict[int, float] = {}

    def limit(self, now: float) -> float:
        """Of a job that joins the queue now; in GPU-seconds of all charges so far."""
        return self._over + self._rate * now if self._rate < math.inf else math.inf

    def allows(self, gpu_seconds: float, limit: float) -> bool:
        """May so much start out of turn?"""
        return (self._charged + gpu_seconds) * (1 - TIE) <= limit

    def start(self, job: int, gpu_seconds: float) -> None:
        """The job starts out of turn."""
        self._charged += gpu_seconds
        self._charge[job] = gpu_seconds

    def finish(self, job: int) -> None:
        """The job has completed; nothing happens if it was in turn."""
        self._over += self._charge.pop(job, 0.0)
