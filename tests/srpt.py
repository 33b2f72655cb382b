"""One machine that serves a job at a time, from event to event in fractions: who ends when, and when each is served."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

Jobs = Iterable[tuple[Any, Any]]  # (release >= 0, work > 0)


def served(jobs: Jobs, rank: Callable[[int, Fraction], Any], part: Any = 1) -> tuple[list[Fraction], list[Fraction]]:
    """When a ``part`` of every job is done, and its mean moment of service; the least ``rank(job, work left)`` is served."""
    jobs = list(jobs)
    behind = [(1 - Fraction(part)) * Fraction(work) for _, work in jobs]
    upcoming = sorted(range(len(jobs)), key=lambda j: jobs[j][0], reverse=True)
    left, now = [Fraction(work) for _, work in jobs], Fraction(0)
    done, moment, here = [Fraction(0)] * len(jobs), [Fraction(0)] * len(jobs), list[int]()
    while upcoming or here:
        if not here:
            now = max(now, Fraction(jobs[upcoming[-1]][0]))
        while upcoming and jobs[upcoming[-1]][0] <= now:
            here.append(upcoming.pop())
        j = min(here, key=lambda k: (rank(k, left[k]), k))
        until = min([now + left[j], *(Fraction(jobs[k][0]) for k in upcoming[-1:])])
        moment[j] += (until * until - now * now) / 2
        if left[j] - (until - now) <= behind[j] < left[j]:
            done[j] = now + left[j] - behind[j]
        left[j] -= until - now
        now = until
        if left[j] == 0:
            here.remove(j)
    return done, [part / Fraction(work) for part, (_, work) in zip(moment, jobs, strict=True)]


def srpt(jobs: Jobs) -> list[Fraction]:
    """Completion times where the job with the least work left is always served."""
    return served(jobs, lambda _, left: left)[0]


def mean_busy_times(jobs: Jobs, priority: Sequence[Any]) -> list[Fraction]:
    """Mean moments of service where the job of the least priority value is always served."""
    return served(jobs, lambda j, _: priority[j])[1]
