"""SRPT per link: a lower bound on n transfers that proves itself again, at any scale.

**Problem**: `transfers`, sum C_j or sum (C_j - r_j). **Bound**: partition the transfers so that those of a
group have a link in common; preemptive SRPT of each group on a machine that moves 1 / b bytes a second; add up.
**Proof**: of k transfers at once on a link each has a largest count of at least k, so together they move at most
k / (k b + (k - 1) eta) <= 1 / b. A schedule of the group is therefore one of the preemptive machine, for which SRPT is
optimal. Groups are disjoint. **Tight** without contention: one link, eta = 0 and releases that never make a short
transfer wait behind a long one.
**Choice of the partition**: greedily the link with the largest gain over r_j + b M_j, among transfers not yet taken; this
is at least the best single link. **Complexity** O(n log n) a link and step, in Python numbers.
**Reference**: Schrage, Operations Research 16 (1968), 687-690; the relaxation of links is derived here.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from optsched.bounds.certificate import CertificateError, rounded_down, shown
from optsched.classes.task_sharing.problem.transfers import TransferProblem
from optsched.verifier.tick_machine import srpt_ends

__all__ = ["TransferBound", "srpt_per_link"]

Number = TypeVar("Number", float, int)


@dataclass(frozen=True)
class TransferBound:
    """``value``: a lower bound on sum C_j in seconds, exact; ``group[j]``: the link on which transfer j is counted."""

    value: Fraction
    group: tuple[int, ...]

    @property
    def exact_float(self) -> float:
        """The largest float64 that is still a bound."""
        return rounded_down(self.value)

    def flow(self, problem: TransferProblem) -> Fraction:
        """Return the bound on sum (C_j - r_j), in seconds.

        Parameters
        ----------
        problem
            Problem that the bound is for.
        """
        return self.value - sum(map(Fraction, problem.release.tolist()))

    def verify(self, problem: TransferProblem) -> None:
        """Re-verify the bound in integers, by another method than the one that found it.

        Parameters
        ----------
        problem
            Problem that the bound is for.

        Raises
        ------
        CertificateError
            With the rule ``dual-feasibility`` if the number of groups is wrong or a transfer is counted on a link that
            it does not use; with the rule ``value`` if the groups prove another value.
        """
        if len(self.group) != problem.n:
            raise CertificateError("dual-feasibility", f"{len(self.group)} groups for {problem.n} transfers")
        for j, link in enumerate(self.group):
            if link not in problem.links[j]:
                raise CertificateError("dual-feasibility", f"transfer {j} does not use link {link}")
        groups, unit = _in_groups(problem, self.group)
        proved = Fraction(sum(sum(srpt_ends(*map(list, zip(*jobs, strict=True)))) for jobs in groups), unit)
        if proved != self.value:
            raise CertificateError("value", f"claimed {shown(self.value)}, the groups prove {shown(proved)}")


def srpt_per_link(problem: TransferProblem) -> TransferBound:
    """Compute the bound of the greedy partition, exact for the floats as given.

    Parameters
    ----------
    problem
        Transfers and their links.
    """
    release, alone = problem.release.tolist(), problem.alone.tolist()
    group: list[int | None] = [None] * problem.n
    users = {link: set(problem.users(link)) for link in problem.link_numbers}
    # A gain never grows when transfers are taken away, so an old gain is an upper bound on the present one.
    queue = [(-math.inf, link) for link in problem.link_numbers]
    fresh: set[int] = set()
    while queue:
        _, link = heapq.heappop(queue)
        if link not in fresh:
            fresh.add(link)
            jobs = [(release[j], alone[j]) for j in users[link]]
            heapq.heappush(queue, (sum(map(sum, jobs)) - _srpt_sum(jobs), link))
            continue
        for j in users[link]:
            group[j] = link
        for other in [other for _, other in queue if users[other] & users[link]]:
            users[other] -= users[link]
            fresh.discard(other)
    chosen = tuple(links[0] if link is None else link for link, links in zip(group, problem.links, strict=True))
    groups, unit = _in_groups(problem, chosen)
    return TransferBound(Fraction(sum(map(_srpt_sum, groups)), unit), chosen)


def _in_groups(problem: TransferProblem, group: tuple[int, ...]) -> tuple[list[list[tuple[int, int]]], int]:
    """(r_j, b M_j) of the transfers of each group, integers over one power of two, as floats are; and that."""
    b, per_b = problem.contention.seconds_per_byte.as_integer_ratio()
    release = [r.as_integer_ratio() for r in problem.release.tolist()]
    size = [M.as_integer_ratio() for M in problem.size.tolist()]
    unit = max([per for _, per in release] + [per_b * per for _, per in size], default=1)
    jobs = defaultdict(list)
    for link, (r, per), (M, per_byte) in zip(group, release, size, strict=True):
        jobs[link].append((r * (unit // per), b * M * (unit // (per_b * per_byte))))
    return list(jobs.values()), unit


def _srpt_sum(jobs: Iterable[tuple[Number, Number]]) -> Number:
    """sum C_j of SRPT: the job in service is kept apart from those waiting and gives way to a shorter one."""
    waiting: list[Number] = []
    now: Number = 0
    total: Number = 0
    left: Number | None = None
    nobody: Any = (math.inf, 0)
    for release, work in [*sorted(jobs), nobody]:
        while left is not None and now + left <= release:
            now += left
            total += now
            left = heapq.heappop(waiting) if waiting else None
        if left is None:
            left = work
        else:
            left -= release - now
            heapq.heappush(waiting, max(left, work))
            left = min(left, work)
        now = release
    return total
