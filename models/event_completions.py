"""Completion times of jobs that slow each other down, for given starts: the check of every exact method for such jobs.

The code is plain Python over any kind of numbers, so fractions stay fractions. It shares no code with the searches.
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


def transfer_completions(problem: TransferProblem, start: Sequence[Any], *, exact: bool = False) -> list[Any]:
    """Return C_j in seconds of every transfer when transfer j starts at ``start[j]``.

    Every started transfer moves all the time at its rate. O(n^2 + n S) for n transfers that use S links in total.

    Parameters
    ----------
    problem
        Transfers and links.
    start
        Start of every transfer, in seconds.
    exact
        Compute in fractions.

    Raises
    ------
    InputError
        If a transfer starts before its release.
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
