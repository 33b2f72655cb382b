"""`ReservationPlan`: beliefs and reservations of a run, as arrays for compiled code, with the profile of free GPUs.

The *profile* is the number of free GPUs over time, as the policy believes: ``free[k]`` from ``time[k]`` until
``time[k + 1]``, and ``free`` of the last step for ever. No two consecutive steps are equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import NESTED, njit, record
from optsched.problem.arrays import Floats, Ints

KEPT, EARLIER, WRONG = 0, 1, 2  # what was believed happened; a job ended before; a job runs longer, or cannot start
EVERY = -1  # the depth at which every waiting job has a reservation that it keeps

PLAN = record(
    depth="int",  # jobs with a reservation, or `EVERY`
    by_length="int",  # 1: jobs behind those with a reservation are considered the shortest first
    forecasts="int",  # 1: every job is promised a start at its arrival, by a plan for the whole queue
    doubles="int",  # 1: a job beyond its believed end is believed to run twice as long; 0: a second more
    arrived="int",  # jobs that the loop has seen
    listed="int",  # of `ReservationPlan.shortest`
    running="int",
    steps="int",
    decisions="int",  # so far
    changed="int",  # beliefs at this decision: `KEPT`, `EARLIER` or `WRONG`
)


class ReservationPlan(NamedTuple):
    """The beliefs and reservations of a run of n jobs; a run changes them."""

    facts: Any  # PLAN[1]
    seconds: Floats  # f64[n] seconds that a job is believed to run
    limit: Floats  # f64[n] seconds that it runs at most, inf: not known
    promised: Floats  # f64[n] start of its first reservation; nan: it has had none
    begin: Floats  # f64[n] start of its reservation at depth `EVERY`
    until: Floats  # f64[n] believed end of a running job
    running: Ints  # i64[n] running jobs, the first believed end first
    shortest: Ints  # i64[n] waiting jobs in order of (seconds, key, index)
    considered: Ints  # i64[n] the last decision in which it was considered in the order of the queue
    time: Floats  # f64[2 n + 4] of the profile
    free: Ints  # i64[2 n + 4]


def new_plan(
    seconds: Floats,
    limit: Floats,
    gpus: int,
    depth: int,
    *,
    by_length: bool = False,
    doubles: bool = False,
    forecasts: bool = False,
) -> ReservationPlan:
    """Return the plan of a run before the first event.

    Parameters
    ----------
    seconds
        Seconds that every job is believed to run, f64[n].
    limit
        Seconds that every job runs at most, f64[n]; inf if not known.
    gpus
        GPUs of the cluster.
    depth
        Number of waiting jobs with a reservation, or `EVERY`.
    by_length
        Whether jobs behind those with a reservation are considered in order of (seconds, key, index).
    doubles
        Whether a job beyond its believed end is believed to run twice as long as so far; otherwise a second more.
    forecasts
        Whether every job is promised a start at its arrival, by a plan for the whole queue.
    """
    n = seconds.size
    facts = np.zeros(1, dtype=PLAN)
    facts["depth"], facts["steps"] = depth, 1
    facts["by_length"], facts["doubles"], facts["forecasts"] = by_length, doubles, forecasts
    return ReservationPlan(
        facts,
        seconds=np.array(seconds, dtype=np.float64),
        limit=np.array(limit, dtype=np.float64),
        promised=np.full(n, np.nan),
        begin=np.full(n, np.nan),
        until=np.full(n, np.nan),
        running=np.zeros(n, dtype=np.int64),
        shortest=np.zeros(n, dtype=np.int64),
        considered=np.zeros(n, dtype=np.int64),
        time=np.zeros(2 * n + 4),
        free=np.full(2 * n + 4, gpus, dtype=np.int64),
    )


# --- the profile ------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _step_at(plan: ReservationPlan, t: float) -> int:
    # The step that begins at t; it is made if there is none.
    w, time, free = plan.facts[0], plan.time, plan.free
    low, high = 0, w.steps
    while low < high:
        middle = (low + high) >> 1
        if time[middle] < t:
            low = middle + 1
        else:
            high = middle
    if low == w.steps or time[low] != t:
        for k in range(w.steps, low, -1):
            time[k], free[k] = time[k - 1], free[k - 1]
        time[low], free[low] = t, free[low - 1]
        w.steps += 1
    return low


@njit(**NESTED)
def _merge(plan: ReservationPlan, k: int) -> None:
    # With the step before it, if both have as many free GPUs.
    w, time, free = plan.facts[0], plan.time, plan.free
    if 0 < k < w.steps and free[k] == free[k - 1]:
        w.steps -= 1
        for i in range(k, w.steps):
            time[i], free[i] = time[i + 1], free[i + 1]


@njit(**NESTED)
def add_gpus(plan: ReservationPlan, begin: float, end: float, gpus: int) -> None:
    """Add free GPUs from ``begin`` until ``end``; a negative number takes them.

    Parameters
    ----------
    plan
        Plan of the run.
    begin, end
        Times in seconds, not before the first step; nothing changes if the end is not later.
    gpus
        Number of GPUs.
    """
    if begin < end:
        first, last = _step_at(plan, begin), _step_at(plan, end)
        for k in range(first, last):
            plan.free[k] += gpus
        _merge(plan, last)
        _merge(plan, first)


@njit(**NESTED)
def forget_past(plan: ReservationPlan, now: float) -> None:
    """Let the profile begin at ``now``.

    Parameters
    ----------
    plan
        Plan of the run.
    now
        Time in seconds, not before the first step.
    """
    w, time, free, past = plan.facts[0], plan.time, plan.free, 0
    while past + 1 < w.steps and time[past + 1] <= now:
        past += 1
    if past > 0:
        w.steps -= past
        for k in range(w.steps):
            time[k], free[k] = time[k + past], free[k + past]
    time[0] = now


@njit(**NESTED)
def earliest(plan: ReservationPlan, seconds: float, gpus: int) -> float:
    """Return the first time from which on a number of GPUs is free for some seconds.

    Parameters
    ----------
    plan
        Plan of the run.
    seconds
        Length of the interval.
    gpus
        Number of GPUs, at most those of the cluster.
    """
    w, time, free = plan.facts[0], plan.time, plan.free
    begin, k = time[0], 0
    while k < w.steps and time[k] < begin + seconds:
        if free[k] < gpus and k + 1 < w.steps:
            begin = time[k + 1]
        k += 1
    return float(begin)


@njit(**NESTED)
def stays_free(plan: ReservationPlan, end: float, gpus: int) -> bool:
    """Return whether a number of GPUs is free from the beginning of the profile until ``end``.

    Parameters
    ----------
    plan
        Plan of the run.
    end
        Time in seconds.
    gpus
        Number of GPUs.
    """
    for k in range(plan.facts[0].steps):
        if plan.time[k] >= end:
            return True
        if plan.free[k] < gpus:
            return False
    return True
