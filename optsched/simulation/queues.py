"""Who waits, and when a job's state changes next by itself; compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import INNER, njit
from optsched.simulation.next_event import insert, next_tick, remove, set_clock
from optsched.simulation.records import WAITING
from optsched.simulation.state import State


@njit(**INNER)
def queue_of(s: State, j: int) -> Any:
    """Where ``j`` waits: one queue a kind of jobs, or one for all."""
    return s.queues[min(s.jobs[j].kind, s.queues.size - 1)]


@njit(**INNER)
def enqueue(s: State, j: int) -> None:
    """Job ``j`` waits from now on."""
    job, queue = s.jobs[j], queue_of(s, j)
    job.status = WAITING
    s.engine[0].queued += 1
    if s.engine[0].listed != 0:
        _list(s, j)
    else:
        queue.jobs = insert(s.heap, queue.first, queue.jobs, job.level, job.key, j, s.jobs["place"])


@njit(**INNER)
def _list(s: State, j: int) -> None:
    # Into the one sorted list of a run in which everybody is asked about.
    key, k = s.jobs[j].key, s.engine[0].queued - 1
    while k > 0 and (s.heap[k - 1].key, s.heap[k - 1].number) > (key, j):
        s.heap[k].key, s.heap[k].number = s.heap[k - 1].key, s.heap[k - 1].number
        k -= 1
    s.heap[k].key, s.heap[k].number = key, j


@njit(**INNER)
def dequeue(s: State, j: int) -> None:
    """Job ``j`` waits no longer; from a sorted list it is taken when all have been asked about (`forget_started`)."""
    if s.engine[0].listed != 0:
        return
    queue = queue_of(s, j)
    s.engine[0].queued -= 1
    queue.jobs = remove(s.heap, queue.first, queue.jobs, j, s.jobs["place"])


@njit(**INNER)
def forget_started(s: State) -> None:
    """Take jobs that have started off the sorted list of those that wait."""
    w, kept = s.engine[0], 0
    for i in range(w.queued):
        j = s.heap[i].number
        if s.jobs[j].status == WAITING:
            s.heap[kept].key, s.heap[kept].number = s.heap[i].key, j
            kept += 1
    w.queued = kept


@njit(**INNER)
def begin_running(s: State, j: int) -> None:
    """Job ``j`` is among those that run: where jobs are preempted a heap, the least important first."""
    w, job = s.engine[0], s.jobs[j]
    if w.preemptive != 0:
        w.ranked = insert(s.heap, w.runner, w.ranked, -job.level, -job.key, ~j, s.jobs["place"])


@njit(**INNER)
def end_running(s: State, j: int) -> None:
    """It is no longer."""
    w = s.engine[0]
    if w.preemptive != 0:
        w.ranked = remove(s.heap, w.runner, w.ranked, ~j, s.jobs["place"])


@njit(**INNER)
def service(s: State, j: int) -> int:
    """What a second of a running job counts for as service."""
    return 1 if s.engine[0].by_time != 0 else s.jobs[j].gpus * max(s.jobs[j].copies, 1)


@njit(**INNER)
def to_the_end(s: State, j: int) -> None:
    """Behind the others of the level that ``j`` enters: those that came before the round, or the instant, that ends now."""
    w, job = s.engine[0], s.jobs[j]
    if w.requeue != 0:
        job.origin = next_tick(w.began, w.first_round, w.period) if w.period > 0.0 else w.began
        job.key = job.origin


@njit(**INNER)
def first_finish(s: State, j: int) -> float:
    """When the running job, or the first of its copies, has done its work."""
    t, x = s.executions[s.jobs[j].execution].finish, s.executions[s.jobs[j].execution].other
    while x >= 0:
        t = min(t, s.executions[x].finish)
        x = s.executions[x].other
    return float(t)


@njit(**INNER)
def set_change(s: State, j: int) -> None:
    """The next change of a running job: it finishes, or its service reaches the next threshold."""
    job = s.jobs[j]
    t = first_finish(s, j)
    if job.level < s.engine[0].levels:
        t = min(t, job.mark + (s.numbers[job.level] - job.attained) / service(s, j))
    set_clock(s.clocks, job.execution, max(t, s.engine[0].now), j)  # rounding must not turn time back


@njit(**INNER)
def rise_later(s: State, j: int) -> None:
    """Starvation: a job that waits is back on level 0 after ``starvation`` times as long as it ran."""
    w, job = s.engine[0], s.jobs[j]
    if w.starvation > 0.0 and job.level > 0:
        t = job.mark + w.starvation * job.attained / service(s, j)
        w.rising = insert(s.heap, w.promotion_queue, w.rising, np.int64(0), t, j, s.jobs["rises"])


@njit(**INNER)
def rise_never(s: State, j: int) -> None:
    """It waits no longer, or is on level 0."""
    w = s.engine[0]
    if s.jobs[j].rises >= 0:
        w.rising = remove(s.heap, w.promotion_queue, w.rising, j, s.jobs["rises"])
