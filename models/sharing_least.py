"""Lower bounds for jobs that may share GPUs in pairs: three simple bounds, for any kind of numbers.

**Problem**: each job still takes a seconds alone on m of G GPUs, from ``now`` or its release on; minimise sum C_j. Let
S = max(1, 1/xi_{j|k} + 1/xi_{k|j} over pairs of these jobs that may share). A job advances at a speed v_j <= 1 and at no
more than its speed on each of its GPUs, so that sum_j m_j v_j <= G S at any time. Hence

* **LB1** sum C_j of SRPT on one machine with processing times m_j a_j / (G S),
* **LB2** sum (r_j + a_j),
* **LB3** sum of the mean busy times of the preemptive schedule of that machine which always runs the shortest job, plus
  a_j / 2: the mean time at which j advances is at most C_j - a_j / 2.

**Reference**: derived here; certified forms of the same are in `optsched.bounds`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from optsched.models.shared_jobs import SharedJobs

Number = Any  # float or Fraction


def work_rate(jobs: SharedJobs, some: Iterable[int], xi: list[list[Number]]) -> Number:
    """Return S of the given jobs.

    Parameters
    ----------
    jobs
        All jobs.
    some
        Numbers of the jobs that count.
    xi
        Slow-downs ``xi[j][k]`` in the kind of numbers to compute with.
    """
    listed = sorted(some)
    best = max((xi[j][j] * 0 + 1 for j in listed if xi[j][j] < float("inf")), default=1)
    for a, j in enumerate(listed):
        for k in listed[a + 1 :]:
            need = sum(min(jobs.memory(i, o) for o in jobs.options[i]) for i in (j, k))
            rooms = zip(jobs.node_memory, jobs.suits[j], jobs.suits[k], strict=True)
            if jobs.pairs(j, k) and any(need <= room and one and other for room, one, other in rooms):
                best = max(best, 1 / xi[j][k] + 1 / xi[k][j])
    return best


def least_total(now: Number, rows: list[tuple[Number, Number, Number]]) -> Number:
    """Return a lower bound on sum C_j, the largest of the three. O(n^2).

    Parameters
    ----------
    now
        Current time in seconds.
    rows
        For each job (release, a, m a / (G S)) in seconds.
    """
    return least_stay(now, rows) + sum((release for release, _, _ in rows), now * 0)


def least_stay(now: Number, rows: list[tuple[Number, Number, Number]]) -> Number:
    """Return the same bound on sum (C_j - release), which floats compute without a sum of clock times. O(n^2).

    Parameters
    ----------
    now
        Current time in seconds.
    rows
        For each job (release, a, m a / (G S)) in seconds.
    """
    if not rows:
        return now * 0
    # waiting time that has passed by now
    waited = sum((max(now - release, now * 0) for release, _, _ in rows), now * 0)
    alone = sum(a for _, a, _ in rows)
    work = [(max(now, release), p) for release, _, p in rows]
    busy = _mean_busy_times(sorted(work)) + sum(a for _, a, _ in rows) / 2
    return waited + max(alone, srpt_stay(sorted(work)), busy)


def srpt_stay(work: list[tuple[Number, Number]]) -> Number:
    """Return sum (C_j - release) of SRPT on one machine. O(n^2).

    Parameters
    ----------
    work
        (release, seconds) of each job, rising.
    """
    if not work:
        return 0
    zero = work[0][0] * 0
    total, now, k = zero, work[0][0], 0
    waiting: list[tuple[Number, Number]] = []  # (seconds left, seconds since its release)
    while waiting or k < len(work):
        if not waiting:
            now = work[k][0]
        while k < len(work) and work[k][0] <= now:
            waiting.append((work[k][1], zero))
            k += 1
        waiting.sort(reverse=True)
        left, stayed = waiting.pop()
        step = left if k == len(work) else min(left, work[k][0] - now)
        waiting = [(p, stay + step) for p, stay in waiting]
        if step >= left:
            total += stayed + step
            now += step
        else:
            waiting.append((left - step, stayed + step))
            now = work[k][0]
    return total


def _mean_busy_times(work: list[tuple[Number, Number]]) -> Number:
    """Return the sum over jobs of the mean time, from their release, at which the machine works on them.

    The shortest job always runs.
    """
    zero = work[0][0] * 0
    total, now, k = zero, work[0][0], 0
    waiting: list[list[Number]] = []  # [-p, left, time since its release]
    while waiting or k < len(work):
        if not waiting:
            now = work[k][0]
        while k < len(work) and work[k][0] <= now:
            waiting.append([-work[k][1], work[k][1], zero])
            k += 1
        waiting.sort(key=lambda job: job[0])
        job = waiting[-1]
        # seconds are added up, not computed from two clock times: for a late job that would lose p to rounding
        step = job[1] if k == len(work) else min(job[1], work[k][0] - now)
        total += step * (job[2] + step / 2) / -job[0]
        ends = step >= job[1]
        job[1] -= step
        for other in waiting:
            other[2] += step
        if ends:
            waiting.pop()
            now += step
        else:
            now = work[k][0]
    return total
