"""Resuming in place costs nothing, compiled: a job stopped and started again at one instant where it was goes on.

Where it was: on as many GPUs of each pool, where the engine counts them. It was never stopped: it goes on with its segment,
pays no restart, and is not counted as preempted.
"""

from __future__ import annotations

from optsched.compiled import njit
from optsched.compiled.heap import INNER, NESTED
from optsched.simulation.records import NOBODY
from optsched.simulation.settling import set_finish
from optsched.simulation.state import State

NEGLIGIBLE = 1e-7  # of what a job has left


@njit(**INNER)
def livelock(work: float, left: float) -> bool:
    """Did a segment bring a job that had ``left`` units no further? A thousand such in a row, and the run is stopped."""
    return work <= NEGLIGIBLE * left


@njit(**INNER)
def remember(s: State, j: int, x: int) -> None:
    """Job ``j`` stops: where its execution ``x`` was, until the instant is over."""
    w, job, run = s.engine[0], s.jobs[j], s.executions[x]
    if not _stopped_now(s, j):
        job.stop_record = s.executions.size // 2 + w.stop_record
        w.stop_record += 1
    stop_record = s.executions[job.stop_record]
    stop_record.job, stop_record.segment, stop_record.option = j, w.segments, run.option
    stop_record.begun, stop_record.paid, stop_record.finish, stop_record.left = (
        run.begun,
        run.paid,
        run.finish,
        run.left,
    )
    stop_record.slow, stop_record.left_then, stop_record.origin = run.slow, job.left, job.origin


@njit(**INNER)
def resumes_in_place(s: State, j: int, x: int) -> bool:
    """Was ``j`` stopped at this instant, where it starts now as execution ``x``?"""
    if not _stopped_now(s, j):
        return False
    run, stop_record = s.executions[x], s.executions[s.jobs[j].stop_record]
    if stop_record.segment < 0:
        return False
    segment, at = s.segments[stop_record.segment], x * s.engine[0].width
    if segment.entries != run.entries or stop_record.option != run.option:
        return False
    for i in range(run.entries):
        was, part = s.parts[segment.first + i], s.parts[at + i]
        if was.pool != part.pool or was.count != part.count:
            return False
    return True


@njit(**NESTED)
def go_on(s: State, j: int, x: int) -> None:
    """Take the stop of ``j`` back: the segment that it logged, its count, and what it changed of the job."""
    w, job, run, stop_record = s.engine[0], s.jobs[j], s.executions[x], s.executions[s.jobs[j].stop_record]
    e = stop_record.segment
    stop_record.segment = -1
    if w.livelock > 0 and livelock(s.segments[e].work, stop_record.left_then):
        w.livelock -= 1
    if e == w.segments - 1:
        w.segments = e
        w.logged = s.segments[e].first
    else:
        s.segments[e].job = NOBODY  # left out of the schedule
    w.stops -= 1
    w.starts -= 1
    job.ran -= 1
    job.left, job.origin = stop_record.left_then, stop_record.origin
    run.target, run.begun = stop_record.left_then, stop_record.begun
    run.left, run.paid, run.finish = stop_record.left, stop_record.paid, stop_record.finish
    if run.slow != stop_record.slow:  # the neighbours are others
        if w.now > run.paid:
            run.left = max(0.0, run.left - (w.now - run.paid) / (run.pace * stop_record.slow))
            run.paid = w.now
        set_finish(s, x)


@njit(**INNER)
def _stopped_now(s: State, j: int) -> bool:
    # Is the stop that it remembers one of this instant?
    k, first = s.jobs[j].stop_record, s.executions.size // 2
    return bool(first <= k < first + s.engine[0].stop_record and s.executions[k].job == j)
