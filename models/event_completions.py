"""The ends of jobs that slow each other down, for given starts: what judges every exact method of such jobs.

Plain Python over any kind of numbers, so that fractions stay fractions; it shares nothing with the searches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from optsched.errors import InputError
from optsched.problem.transfers import TransferProblem

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


def transfer_completions(problem: TransferProblem, start: Sequence[Any], *, exact: bool = False) -> list[Any]:
    """C_j of every transfer when transfer j starts at ``start[j]``, seconds; fractions with ``exact``.

    O(n^2 + n S) for n transfers on S links in all. Every started transfer moves all the time at its rate. Raises
    `InputError` for a start before its release.
    """
    number = Fraction if exact else float
    for j, (s, r) in enumerate(zip(start, problem.release.tolist(), strict=True)):
        if not math.isfinite(s) or s < number(r):
            legal = f"a finite number, at least its release {r!r}"
            raise InputError("invalid", field=f"transfer {j}, start", value=float(s), legal=legal)
    b, eta = number(problem.contention.seconds_per_byte), number(problem.contention.penalty)

    def pace(running: set[int]) -> dict[int, Any]:
        carried = Counter(link for j in running for link in problem.links[j])
        most = {j: max(carried[link] for link in problem.links[j]) for j in running}
        return {j: k * b + (k - 1) * eta for j, k in most.items()}

    begin, size = ({j: number(x) for j, x in enumerate(given)} for given in (start, problem.size.tolist()))
    end = event_completions(begin, size, pace)
    return [end[j] for j in range(problem.n)]
