"""`optsched.policies.virtual_machine`, compiled: the same calls and the same times, bit for bit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit, record
from optsched.compiled.heap import ENTRY, INNER, insert, remove

MACHINE = record(
    job="int",  # in service, -1: none, with `left` to do at the time `since`
    left="real",
    since="real",
    waiting="int",  # jobs in the heap
)
# A record, as everything else with places in heaps: else `optsched.compiled.heap` would be compiled once more.
VIRTUAL_JOB = record(
    after_point="real",  # work behind the beta point, nan: it has been reached
    place="short",  # in the heap, -1: not there
)


class Service(NamedTuple):
    """n jobs."""

    state: Any  # MACHINE[1]
    waiting: Any  # ENTRY[n]: a heap of (remaining work, job)
    jobs: Any  # VIRTUAL_JOB[n]


def new_machine(n: int) -> Service:
    """An idle machine."""
    state = np.zeros(1, dtype=MACHINE)
    state["job"] = -1
    jobs = np.zeros(n, dtype=VIRTUAL_JOB)
    jobs["after_point"], jobs["place"] = np.nan, -1
    return Service(state, np.zeros(n, dtype=ENTRY), jobs)


@njit(**INNER)
def _serve(m: Service, job: int, left: float, since: float) -> None:
    served = m.state[0]
    served.job, served.left, served.since = job, left, since


@njit(**INNER)
def _wait(m: Service, job: int, left: float) -> None:
    m.state[0].waiting = insert(m.waiting, 0, m.state[0].waiting, 0, left, job, m.jobs["place"])


@njit(**INNER)
def release(m: Service, job: int, now: float, work: float, beta: float) -> None:
    """A new job with ``work`` > 0 seconds arrives; call `next_point` first until it says that there is none."""
    m.jobs[job].after_point = (1.0 - beta) * work
    served = m.state[0]
    if served.job < 0:
        _serve(m, job, work, now)
        return
    left = served.left - (now - served.since)
    if work < left:
        _wait(m, served.job, left)
        _serve(m, job, work, now)
    else:
        _wait(m, job, work)


@njit(**INNER)
def next_event(m: Service) -> float:
    """When the job in service reaches its beta point or completes, if nothing arrives before; inf when idle."""
    served = m.state[0]
    if served.job < 0:
        return np.inf
    behind = m.jobs[served.job].after_point
    return float(served.since + (served.left - (0.0 if np.isnan(behind) else behind)))


@njit(**INNER)
def next_point(m: Service, now: float) -> int:
    """Serve until the next beta point that is reached up to ``now``: whose it is, -1: there is none."""
    served = m.state[0]
    while served.job >= 0:
        job, behind = served.job, m.jobs[served.job].after_point
        if not np.isnan(behind) and served.since + (served.left - behind) <= now:
            m.jobs[job].after_point = np.nan
            return int(job)
        done = served.since + served.left
        if done > now:
            break
        if served.waiting > 0:
            left, first = m.waiting[0].key, m.waiting[0].number
            served.waiting = remove(m.waiting, 0, served.waiting, first, m.jobs["place"])
            _serve(m, first, left, done)
        else:
            served.job = -1
    return -1
