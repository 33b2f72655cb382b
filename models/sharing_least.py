"""What jobs that may share GPUs in pairs must pay at least: three simple bounds, for any kind of numbers.

**Problem**: each job still takes a seconds alone on m of G GPUs, from ``now`` or its release on; minimise sum C_j. Let
S = max(1, 1/xi_{j|k} + 1/xi_{k|j} over pairs of these jobs that may share). A job advances at a speed v_j <= 1 and at no
more than its speed on each of its GPUs, so that sum_j m_j v_j <= G S at any time. Hence

* **LB1** sum C_j of SRPT on one machine with processing times m_j a_j / (G S),
* **LB2** sum (r_j + a_j),
* **LB3** sum of the mean busy times of the preemptive schedule of that machine which always runs the shortest job, plus
  a_j / 2: the mean time at which j advances is at most C_j - a_j / 2.

**Reference**: 4.3 of the SJF-BSBF sheet of this project; certified forms of the same are in `optsched.bounds`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from optsched.models.shared_jobs import SharedJobs

__all__ = ["least_total", "work_rate"]

Number = Any  # float or Fraction


def work_rate(jobs: SharedJobs, some: Iterable[int], xi: list[list[Number]]) -> Number:
    """S of these jobs."""
    listed = sorted(some)
    best = max((xi[j][j] * 0 + 1 for j in listed if xi[j][j] < float("inf")), default=1)
    for a, j in enumerate(listed):
        for k in listed[a + 1 :]:
            if jobs.pairs(j, k) and _room_for_both(jobs, j, k):
                best = max(best, 1 / xi[j][k] + 1 / xi[k][j])
    return best


def _room_for_both(jobs: SharedJobs, j: int, k: int) -> bool:
    need = min(jobs.memory(j, o) for o in jobs.options[j]) + min(jobs.memory(k, o) for o in jobs.options[k])
    rooms = zip(jobs.node_memory, jobs.suits[j], jobs.suits[k], strict=True)
    return any(need <= room and one and other for room, one, other in rooms)


def least_total(now: Number, rows: list[tuple[Number, Number, Number]]) -> Number:
    """The largest of the three for ``rows`` (release, a, m a / (G S)): a lower bound on sum C_j. O(n^2)."""
    if not rows:
        return now * 0
    alone = sum(max(now, release) + a for release, a, _ in rows)
    work = [(max(now, release), p) for release, _, p in rows]
    busy = _mean_busy_times(sorted(work)) + sum(a for _, a, _ in rows) / 2
    return max(alone, _srpt(sorted(work)), busy)


def _srpt(work: list[tuple[Number, Number]]) -> Number:
    """sum C_j of SRPT."""
    total, now, k = work[0][0] * 0, work[0][0], 0
    here: list[Number] = []
    while here or k < len(work):
        if not here:
            now = max(now, work[k][0])
        while k < len(work) and work[k][0] <= now:
            here.append(work[k][1])
            k += 1
        here.sort(reverse=True)
        least = here.pop()
        if k == len(work) or now + least <= work[k][0]:
            now += least
            total += now
        else:
            here.append(least - (work[k][0] - now))
            now = work[k][0]
    return total


def _mean_busy_times(work: list[tuple[Number, Number]]) -> Number:
    """sum over jobs of the mean time at which the machine works on them; the shortest released one always runs."""
    total, now, k = work[0][0] * 0, work[0][0], 0
    here: list[list[Number]] = []  # [-p, left]
    while here or k < len(work):
        if not here:
            now = max(now, work[k][0])
        while k < len(work) and work[k][0] <= now:
            here.append([work[k][1], work[k][1]])
            k += 1
        here.sort(key=lambda job: -job[0])
        p, left = here[-1]
        until = now + left if k == len(work) else min(now + left, work[k][0])
        if until >= now + left:
            here.pop()
        else:
            here[-1][1] = left - (until - now)
        total += (until - now) * (until + now) / (2 * p)
        now = until
    return total
