"""What given starts of transfers lead to: the referee of every exact method of `optsched.problem.transfers`.

Plain Python over any kind of numbers, so that fractions stay fractions; it shares nothing with the searches. O(n^2 + n S)
for n transfers on S links in all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from optsched.errors import InputError
from optsched.problem.transfers import TransferProblem


def transfer_completions(problem: TransferProblem, start: Sequence[Any], *, exact: bool = False) -> list[Any]:
    """C_j of every transfer when transfer j starts at ``start[j]``, seconds; fractions with ``exact``.

    Every started transfer moves all the time at its rate. Raises `InputError` for a start before its release.
    """
    number = Fraction if exact else float
    for j, (s, r) in enumerate(zip(start, problem.release.tolist(), strict=True)):
        if not math.isfinite(s) or s < number(r):
            legal = f"a finite number, at least its release {r!r}"
            raise InputError("not legal", field=f"transfer {j}, start", value=float(s), legal=legal)
    begin = [number(s) for s in start]
    left: list[Any] = [number(M) for M in problem.size.tolist()]
    b, eta = number(problem.contention.seconds_per_byte), number(problem.contention.penalty)
    upcoming = sorted(range(problem.n), key=lambda j: begin[j], reverse=True)
    running: set[int] = set()
    end: list[Any] = [None] * problem.n
    now: Any = number(0)
    while upcoming or running:
        carried = Counter(link for j in running for link in problem.links[j])
        k = {j: max(carried[link] for link in problem.links[j]) for j in running}
        pace = {j: k[j] * b + (k[j] - 1) * eta for j in running}
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
