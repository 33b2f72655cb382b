"""Who waits, and when a job's state changes next by itself; compiled."""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.heap import INNER, insert, remove
from optsched.simulation.instant import next_tick
from optsched.simulation.records import WAITING
from optsched.simulation.state import State


@njit(**INNER)
def enqueue(s: State, j: int) -> None:
    """Job ``j`` waits from now on."""
    job = s.jobs[j]
    queue = s.queues[job.queue]
    job.status = WAITING
    s.world[0].queued += 1
    if s.world[0].listed != 0:
        _list(s, j)
    else:
        queue.jobs = insert(s.heap, queue.first, queue.jobs, job.level, job.key, j, s.jobs["waits"])


@njit(**INNER)
def _list(s: State, j: int) -> None:
    # Into the one sorted list of a run in which everybody is asked about.
    key, k = s.jobs[j].key, s.world[0].queued - 1
    while k > 0 and (s.heap[k - 1].key, s.heap[k - 1].number) > (key, j):
        s.heap[k].key, s.heap[k].number = s.heap[k - 1].key, s.heap[k - 1].number
        k -= 1
    s.heap[k].key, s.heap[k].number = key, j


@njit(**INNER)
def dequeue(s: State, j: int) -> None:
    """Job ``j`` waits no longer; from a sorted list it is taken when all have been asked about (`forget_started`)."""
    if s.world[0].listed != 0:
        return
    queue = s.queues[s.jobs[j].queue]
    s.world[0].queued -= 1
    queue.jobs = remove(s.heap, queue.first, queue.jobs, j, s.jobs["waits"])


@njit(**INNER)
def forget_started(s: State) -> None:
    """Take jobs that have started off the sorted list of those that wait."""
    w, kept = s.world[0], 0
    for i in range(w.queued):
        j = s.heap[i].number
        if s.jobs[j].status == WAITING:
            s.heap[kept].key, s.heap[kept].number = s.heap[i].key, j
            kept += 1
    w.queued = kept


@njit(**INNER)
def begin_running(s: State, j: int) -> None:
    """Job ``j`` is among those that run: where jobs are preempted a heap, the least important first."""
    w, job = s.world[0], s.jobs[j]
    if w.preemptive != 0:
        w.ranked = insert(s.heap, w.runner, w.ranked, -job.level, -job.key, ~j, s.jobs["runs"])
        return
    s.heap[w.runner + w.ranked].number = ~j
    job.runs = w.ranked
    w.ranked += 1


@njit(**INNER)
def end_running(s: State, j: int) -> None:
    """It is no longer."""
    w, job = s.world[0], s.jobs[j]
    if w.preemptive != 0:
        w.ranked = remove(s.heap, w.runner, w.ranked, ~j, s.jobs["runs"])
        return
    w.ranked -= 1
    last = s.heap[w.runner + w.ranked].number
    s.heap[w.runner + job.runs].number = last
    s.jobs[~last].runs = job.runs
    job.runs = -1


@njit(**INNER)
def set_wake(s: State, j: int, t: float) -> None:
    """The state of ``j`` changes next at ``t``; inf: not by itself."""
    w = s.world[0]
    if s.jobs[j].wakes >= 0:
        w.wakes = remove(s.heap, w.waker, w.wakes, j, s.jobs["wakes"])
    if t < np.inf:
        w.wakes = insert(s.heap, w.waker, w.wakes, 0, t, j, s.jobs["wakes"])


@njit(**INNER)
def service(s: State, j: int) -> int:
    """What a second of a running job counts for as service."""
    return 1 if s.world[0].by_time != 0 else s.jobs[j].gpus * max(s.jobs[j].copies, 1)


@njit(**INNER)
def to_the_end(s: State, j: int) -> None:
    """Behind the others of the level that ``j`` enters: those that came before the round, or the instant, that ends now."""
    w, job = s.world[0], s.jobs[j]
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
def running_wake(s: State, j: int) -> float:
    """The next change of a running job: it finishes, or its service reaches the next threshold."""
    job = s.jobs[j]
    t = first_finish(s, j)
    if job.level < s.world[0].levels:
        t = min(t, job.mark + (s.numbers[job.level] - job.attained) / service(s, j))
    return float(max(t, s.world[0].now))  # rounding must not turn time back


@njit(**INNER)
def waiting_wake(s: State, j: int) -> float:
    """Starvation: back to level 0 after waiting ``starvation`` times as long as it ran."""
    w, job = s.world[0], s.jobs[j]
    if w.starvation <= 0.0 or job.level == 0:
        return np.inf
    return float(job.ceased + w.starvation * job.attained / service(s, j))
