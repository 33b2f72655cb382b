"""What happens at an event, compiled: the same functions serve compiled orders, rules and policies in plain Python.

Events of one instant (`optsched.simulation.next_event`): running jobs that finish or drop a level and waiting jobs
that are promoted, in order of (time, job), each at its own time; then arrivals, in order of (time, job). A job whose last
work and whose threshold fall into one instant finishes. The decisions that follow are taken at the last of these times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import INLINED, INNER, njit
from optsched.simulation.executions import complete
from optsched.simulation.next_event import before, end_of_instant
from optsched.simulation.queues import (
    begin_running,
    dequeue,
    end_running,
    enqueue,
    first_finish,
    rise_never,
    set_change,
    to_the_end,
)
from optsched.simulation.records import ASKED, LOG_FULL, PAUSED, THRASHES, WAITING
from optsched.simulation.state import RunContext, State


@njit(**INNER)
def next_time(s: State) -> float:
    """The time of the next event, with which an instant begins; inf when there is none."""
    w = s.engine[0]
    t = w.tick
    if w.next < s.jobs.size:
        t = min(t, s.jobs[s.jobs[w.next].nth].arrival)
    return float(min(t, _next_change(s).key))


@njit(**INNER)
def _next_change(s: State) -> Any:
    # (time, job) of the first that runs, or rises.
    first, w = s.clocks[1], s.engine[0]
    if w.rising > 0 and not before(0, first.key, first.number, s.heap[w.promotion_queue]):
        first = s.heap[w.promotion_queue]
    return first


@njit(**INNER)
def may_go_on(s: State, pause: int) -> int:
    """May events go on: `ASKED`? Else why not: `LOG_FULL`, `THRASHES`, or `PAUSED` after ``pause`` of them."""
    w = s.engine[0]
    # what one instant may add to the log: every running job ends, and as many start
    if w.segments > s.segments.size - s.executions.size - 2 or w.logged > s.parts.size - 4 * w.gpus - 2:
        return LOG_FULL
    if w.livelock >= w.livelock_limit:
        return THRASHES
    return PAUSED if w.events >= pause else ASKED


@njit(**INLINED)
def apply_events(s: State, context: RunContext, t: float) -> None:
    """Apply every event of the instant that begins at ``t``, the next event; then a policy may be asked, at ``now``."""
    w, last = s.engine[0], end_of_instant(t)
    w.now = w.began = t
    w.last = last
    w.stop_record = 0
    change = _next_change(s)
    while change.key <= last:
        j = change.number
        w.now = max(w.now, change.key)
        w.events += 1
        job = s.jobs[j]
        if job.status == WAITING:
            _promote(s, j)
        elif first_finish(s, j) <= last:
            complete(s, context, j)
        else:
            _demote(s, j)
        change = _next_change(s)
    while w.next < s.jobs.size and s.jobs[s.jobs[w.next].nth].arrival <= last:
        j = s.jobs[w.next].nth
        w.now = max(w.now, s.jobs[j].arrival)
        w.next += 1
        w.events += 1
        enqueue(s, j)
    if w.tick <= last:
        w.now = max(w.now, w.tick)
        w.tick = np.inf
        w.events += 1
    w.last = -np.inf


@njit(**INNER)
def _demote(s: State, j: int) -> None:
    w, job = s.engine[0], s.jobs[j]
    job.attained = s.numbers[job.level]
    job.mark = w.now
    job.level += 1
    to_the_end(s, j)
    end_running(s, j)
    begin_running(s, j)
    set_change(s, j)


@njit(**INNER)
def _promote(s: State, j: int) -> None:
    job = s.jobs[j]
    dequeue(s, j)
    job.level = 0
    job.attained = 0.0
    to_the_end(s, j)
    rise_never(s, j)
    enqueue(s, j)
