"""The part of verify_on_clusters.py for max_fair_slowdown: flow times on an equal share of all GPUs, and what they prove.

**Problem**: max (C_j - r_j) / d_j; d_j is how long j would stay if every job that is there had as many of G GPUs as every
other, but no more than its gang, at x of its g GPUs x / g times as fast as alone at best.
**Rule in integers**: ticks of 2^-k s from the first arrival on, k such that the shortest job has 2^60 to 2^61 of them, times
rounded down. From one event (arrivals, ends) to the next: the first end, rounded up; what is done until then, rounded down.
**Theorem** fair-share: the last of some jobs on the machine ends after their first release plus their work: of
(that end + tail_j - r_j) / d_j the least. fair-alone: a job's seconds alone / d_j.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from optsched.check.verify_case import Data, need, the
else:  # copied
    from verify_case import Data, need, the

BITS = 60  # of the shortest job


def equal_share(release: list[Fraction], length: list[Fraction], gangs: list[int], total: int) -> list[float]:
    """d_j of every job, in seconds, at least its length."""
    shortest = min(length, default=Fraction(1))
    k = BITS - math.floor(math.log2(shortest))
    k += 1 if shortest * Fraction(2) ** k < 2**BITS else -1 if shortest * Fraction(2) ** k >= 2 ** (BITS + 1) else 0
    second, first = Fraction(2) ** k, min(release, default=Fraction(0))
    come = sorted(((r - first) * second // 1, j) for j, r in enumerate(release))[::-1]
    found, now = [0.0] * len(release), 0
    work, there = [p * second // 1 for p in length], {gang: list[tuple[int, int]]() for gang in set(gangs)}
    offset = dict.fromkeys(there, 0)  # jobs of a gang have (work, job) as at this much work done before
    while come or any(there.values()):
        count = {gang: len(jobs) for gang, jobs in there.items() if jobs}
        speed = {gang: min(Fraction(1), share / gang) for share in (level(count, total),) for gang in count}
        ends = [now + math.ceil((there[gang][0][0] - offset[gang]) / x) for gang, x in speed.items()]
        until = min([*ends, *(moment for moment, _ in come[-1:])])
        for gang, x in speed.items():
            offset[gang] += math.floor((until - now) * x)
            over = bisect_right(there[gang], (offset[gang], len(found)))
            for _, j in there[gang][:over]:
                found[j] = max(float((until - (release[j] - first) * second // 1) / second), float(length[j]))
            del there[gang][:over]
        now = until
        while come and come[-1][0] <= now:
            j = come.pop()[1]
            insort(there[gangs[j]], (offset[gangs[j]] + work[j], j))
    return found


def level(count: dict[int, int], total: int) -> Fraction:
    """The GPUs that everybody has who can use so many, of jobs counted by gang: no choice of who cannot gives more."""
    jobs, used, shares = sum(count.values()), 0, [Fraction(0)]
    if sum(gang * k for gang, k in count.items()) <= total:
        return Fraction(max(count, default=1))
    for gang in sorted(count):
        shares.append(Fraction(total - used, jobs))
        used, jobs = used + gang * count[gang], jobs - count[gang]
    return max(shares)


def share_of(case: Any) -> list[Fraction]:
    """d_j of every job of a case, in seconds; jobs hold their gangs there, whatever else their class allows."""
    if case.fair is None:
        release, length = [Fraction(r, case.unit) for r in case.release], list(map(Fraction, case.gang_seconds))
        case.fair = list(map(Fraction, equal_share(release, length, case.gpus, case.total)))
    return list(case.fair)


def fair_alone(case: Any, data: Data) -> tuple[Fraction, Data]:
    """The one job that is named."""
    columns = zip(case.ids, case.length, share_of(case), strict=True)
    named = [Fraction(p, case.unit) / d for name, p, d in columns if name == data.get("job")]
    need(named or (not case.ids and data.get("job") is None), "data.job must be the id of a job")
    return max(named, default=Fraction(0)), {"job": data.get("job")}


def fair_share(case: Any, data: Data) -> tuple[Fraction, Data]:
    """The jobs that are named, on a machine: the last of them ends when all their work is done, and its tail."""
    on, named = case.machine(data), the(list, data, "jobs")
    some = [j for j, name in enumerate(case.ids) if name in set(map(str, named))]
    legal = named == [case.ids[j] for j in some] and all(on.work[j] > 0 for j in some)
    need(legal, "data.jobs must be ids of jobs in their order, each with work on the machine")
    end = (min((on.release[j] for j in some), default=0) + sum(on.work[j] for j in some)) / on.second
    share, tail = share_of(case), on.tail or [Fraction(0)] * len(case.ids)
    ratios = ((end + tail[j] - Fraction(case.release[j], case.unit)) / share[j] for j in some)
    return min(ratios, default=Fraction(0)), {**on.stated, "jobs": named}
