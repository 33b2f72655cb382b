"""Flow times on an equal share, for the referee and the verifiers of bounds: a second program for the same rule.

It computes the numbers of `optsched.problem.fair_share`, whose docstring states the rule, without its code: jobs of
one width are in sorted lists, and the level of the shares is the largest that any choice of the jobs that need less
can give.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from fractions import Fraction
from functools import lru_cache

from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

BITS = 60  # of the shortest job, in ticks


@lru_cache(maxsize=4)
def equal_share_times(instance: Instance) -> tuple[Fraction, ...]:
    """Return d_j of every job, in seconds; at least the seconds alone.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    length = [Fraction(p) for p in seconds_alone(instance).tolist()]
    release, gangs = [Fraction(r) for r in instance.arrival.tolist()], instance.gpus.tolist()
    if not length:
        return ()
    shortest, first = min(length), min(release)
    second = Fraction(2) ** (BITS - math.floor(math.log2(shortest)))  # up to the rounding of the logarithm
    second *= 2 if shortest * second < 2**BITS else Fraction(1, 1 + (shortest * second >= 2 ** (BITS + 1)))
    arrival = [math.floor((r - first) * second) for r in release]
    ends = _ends(arrival, [math.floor(p * second) for p in length], gangs, instance.cluster.gpus)
    stays = (Fraction(float((end - r) / second)) for end, r in zip(ends, arrival, strict=True))
    return tuple(map(max, stays, length))


def _ends(arrival: list[int], work: list[int], gangs: list[int], total: int) -> list[int]:
    come = sorted(range(len(work)), key=lambda j: -arrival[j])
    # (work that a job of this gang has done when this job ends, job)
    queue = {gang: list[tuple[int, int]]() for gang in set(gangs)}
    done, ends, now = dict.fromkeys(queue, 0), [0] * len(work), 0
    while come or any(queue.values()):
        share = _share({gang: len(jobs) for gang, jobs in queue.items()}, total)
        speed = {gang: min(Fraction(1), share / gang) for gang, jobs in queue.items() if jobs}
        steps = [math.ceil((queue[gang][0][0] - done[gang]) / x) for gang, x in speed.items()]
        until = min([now + step for step in steps] + [arrival[j] for j in come[-1:]])
        for gang, x in speed.items():
            done[gang] += math.floor((until - now) * x)
            over = bisect_right(queue[gang], (done[gang], len(work)))
            for _, j in queue[gang][:over]:
                ends[j] = until
            del queue[gang][:over]
        now = until
        while come and arrival[come[-1]] <= now:
            j = come.pop()
            insort(queue[gangs[j]], (done[gangs[j]] + work[j], j))
    return ends


def _share(count: dict[int, int], total: int) -> Fraction:
    """Return the GPUs of each job that could use more; jobs are counted by gang."""
    if sum(gang * k for gang, k in count.items()) <= total:
        return Fraction(max(count))
    need = (c for c in [0, *count] if any(gang > c and count[gang] for gang in count))
    return max(
        Fraction(total - sum(g * k for g, k in count.items() if g <= c), sum(k for g, k in count.items() if g > c))
        for c in need
    )
