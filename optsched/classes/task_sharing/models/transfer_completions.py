"""The ends of transfers for given starts: what judges every exact method for transfers.

Plain Python over floats or fractions; it shares nothing with the searches.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from optsched.classes.task_sharing.problem.transfers import TransferProblem
from optsched.errors import InputError
from optsched.models.event_completions import event_completions


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
        A transfer starts before its release.
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
