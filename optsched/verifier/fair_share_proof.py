"""Theorems fair-share and fair-alone, of the largest slowdown: flow times relative to those on an equal share of all GPUs.

The objective is max (C_j - r_j) / d_j; d_j is the flow time of j if every job that is in the system had as many of G GPUs
as every other, but no more than its gang, and ran on x of its g GPUs x / g times as fast as alone at best.

d_j in integers: ticks of 2^-k s from the first arrival on, k such that the shortest job has 2^60 to 2^61 of them, times
rounded down. Between two events (arrivals, ends) the first end is rounded up, and the work until then down.

fair-share: the last of some jobs on a machine ends after their first release plus their work; of (that end + tail_j - r_j)
/ d_j the least. fair-alone: the seconds of a job alone over d_j.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from fractions import Fraction

from .certified_case import Case, Proof
from .document_fields import Data, read_field
from .exact_numbers import floors, integers
from .refusal import need

BITS = 60  # of the shortest job


def equal_share(release: list[int], unit: int, length: Sequence[float], gangs: list[int], total: int) -> list[float]:
    """Return d_j of every job, in seconds, at least its length.

    Parameters
    ----------
    release
        Releases in parts of a second.
    unit
        Parts of a second.
    length
        Lengths in seconds, positive.
    gangs
        GPUs of the gangs.
    total
        GPUs of the cluster.
    """
    lengths, parts = integers(length)
    shortest = Fraction(min(lengths, default=1), parts)
    k = BITS - math.floor(math.log2(shortest))
    k += 1 if shortest * Fraction(2) ** k < 2**BITS else -1 if shortest * Fraction(2) ** k >= 2 ** (BITS + 1) else 0
    up, down, first = 1 << max(k, 0), 1 << max(-k, 0), min(release, default=0)
    begin = floors([r - first for r in release], unit, k)
    ends = _shared_ends(begin, floors(lengths, parts, k), gangs, total)
    return [max((end - start) * down / up, float(p)) for end, start, p in zip(ends, begin, length, strict=True)]


def _shared_ends(begin: list[int], work: list[int], gangs: list[int], total: int) -> list[int]:
    # the end of every job on an equal share, in ticks
    coming, ends, now = sorted(range(len(begin)), key=lambda j: (begin[j], j))[::-1], [0] * len(begin), 0
    queues = {gang: list[tuple[int, int]]() for gang in set(gangs)}
    offset = dict.fromkeys(queues, 0)  # jobs of a gang have (work, job) as with this much work done before
    speeds = dict[int, tuple[int, int]]()
    counts = dict[int, int]()
    while coming or any(queues.values()):
        present = {gang: len(jobs) for gang, jobs in queues.items() if jobs}
        if present != counts:
            counts, (share, parts) = present, level(present, total)
            speeds = {gang: (share, parts * gang) if share < parts * gang else (1, 1) for gang in present}
        moments = [now - (offset[gang] - queues[gang][0][0]) * q // p for gang, (p, q) in speeds.items()]
        until = min(moments + [begin[j] for j in coming[-1:]])
        for gang, (p, q) in speeds.items():
            queue = queues[gang]
            done = offset[gang] = offset[gang] + (until - now) * p // q
            while queue and queue[0][0] <= done:
                ends[queue.pop(0)[1]] = until
        now = until
        while coming and begin[coming[-1]] <= now:
            j = coming.pop()
            insort(queues[gangs[j]], (offset[gangs[j]] + work[j], j))
    return ends


def level(count: dict[int, int], total: int) -> tuple[int, int]:
    """Return the GPUs that every job has which can use that many, as numerator and denominator.

    Parameters
    ----------
    count
        Number of jobs by GPUs of their gang.
    total
        GPUs of the cluster.
    """
    if sum(gang * k for gang, k in count.items()) <= total:
        return max(count, default=1), 1
    jobs, used, best = sum(count.values()), 0, (0, 1)
    for gang in sorted(count):  # no choice of the jobs that get less gives more
        if (total - used) * best[1] > best[0] * jobs:
            best = total - used, jobs
        used, jobs = used + gang * count[gang], jobs - count[gang]
    return best


def share_of(case: Case) -> list[float]:
    """Return d_j of every job of a case, in seconds, where jobs hold their gangs whatever else their class allows.

    Parameters
    ----------
    case
        What the certificate is about.
    """
    if case.fair is None:
        case.fair = equal_share(case.release, case.unit, case.gang_seconds, case.gpus, case.total)
    return case.fair


def fair_alone(case: Case, data: Data) -> Proof:
    """Prove the slowdown of one job that never waits.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``job``, an id.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    job = data.get("job")
    columns = zip(case.ids, case.length, share_of(case), strict=True)
    slowdowns = [Fraction(p, case.unit) / Fraction(d) for name, p, d in columns if name == job]
    need(slowdowns or (not case.ids and job is None), "data.job must be the id of a job")
    return max(slowdowns, default=Fraction(0)), {"job": job}


def fair_share(case: Case, data: Data) -> Proof:
    """Prove the least slowdown of the last of some jobs on a machine.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``jobs``, ids in the order of the instance, and those of the machine.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    on, stated = case.machine(data), read_field(list, data, "jobs")
    names = set(map(str, stated))
    chosen = [j for j, name in enumerate(case.ids) if name in names]
    legal = stated == [case.ids[j] for j in chosen] and all(on.work[j] > 0 for j in chosen)
    need(legal, "data.jobs must be ids of jobs in their order, each with work on the machine")
    end = (min((on.release[j] for j in chosen), default=0) + sum(on.work[j] for j in chosen)) / on.second
    tails, parts = integers(on.tail or [0.0] * case.n)
    shares, units = integers(share_of(case))
    second = math.lcm(end.denominator, parts, case.unit)
    latest, each_tail, each_release = int(end * second), second // parts, second // case.unit
    least = (0, 1) if not chosen else (1, 0)  # a stay of 1 / second seconds, over a share of 1 / units seconds
    for j in chosen:
        stay = latest + tails[j] * each_tail - case.release[j] * each_release
        if stay * least[1] < least[0] * shares[j]:
            least = stay, shares[j]
    return Fraction(least[0] * units, least[1] * second), {**on.stated, "jobs": stated}
