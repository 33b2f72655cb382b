"""Completion times of jobs that slow each other down, for given starts: the check of every exact method for such jobs.

The code is plain Python over any kind of numbers, so fractions stay fractions. It shares no code with the searches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Number = Any  # float or Fraction


def event_completions(
    begin: Mapping[int, Number], work: Mapping[int, Number], slow: Callable[[set[int]], Mapping[int, Number]]
) -> dict[int, Number]:
    """Return C_j of jobs that start at ``begin[j]`` and slow each other down.

    Calls ``slow`` 2 n times and takes O(n^2) time in addition.

    Parameters
    ----------
    begin
        Start of every job, at least 0.
    work
        Work of every job, in units of work.
    slow
        ``slow(running)[j]`` is the number of seconds that one unit of work of job j takes while the jobs
        ``running`` run.
    """
    left, upcoming = dict(work), sorted(begin, key=lambda j: begin[j], reverse=True)
    running: set[int] = set()
    end: dict[int, Number] = {}
    now: Number = 0
    while upcoming or running:
        pace = slow(running)
        ends = {j: now + left[j] * pace[j] for j in sorted(running)}
        then = min([*ends.values(), *([begin[upcoming[-1]]] if upcoming else [])])
        for j, at in ends.items():
            if at <= then:
                end[j] = then
                running.remove(j)
            else:
                left[j] = left[j] - (then - now) / pace[j]
        while upcoming and begin[upcoming[-1]] <= then:
            running.add(upcoming.pop())
        now = then
    return end
