"""The ends of jobs that slow each other down, for given starts: what judges every exact method of such jobs.

Plain Python over any kind of numbers, so that fractions stay fractions; it shares nothing with the searches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Number = Any  # float or Fraction


def event_completions(
    begin: Mapping[int, Number], work: Mapping[int, Number], slow: Callable[[set[int]], Mapping[int, Number]]
) -> dict[int, Number]:
    """C_j of jobs that start at ``begin[j]`` >= 0 and need ``work[j]``, of which ``slow(running)[j]`` seconds do one unit.

    2 n calls of ``slow``, and O(n^2) beside.
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
