"""Compiled events, starts, stops and completions: the same for compiled orders, rules and plain Python.

**Events** of one instant (`optsched.simulation.next_event`): running jobs that finish or drop a level and waiting jobs
that are promoted, in order of (time, job), each at its own time; then arrivals, in order of (time, job). A job that
does its last work and reaches its threshold within one instant finishes. The decisions that follow are taken at the
last of these times.

**Executions** are gangs at work. A unit of work takes ``pace`` seconds if the gang is alone on its GPUs. With
neighbours it takes ``slow`` times as long, as its slowest neighbour and its slowest network interface make it. When a
neighbour, or a job on one of its interfaces, comes or goes, the execution is settled
(`optsched.simulation.colocation`).

Work is integrated: a job's segments add up to the work that it asks for, because every segment but the last subtracts
exactly the work that it logs, and the last one logs the work that is left.

A job may run in several *copies* at once, executions that each do a part of its work (`start_part`); their work adds
up. The job ends when no work is left, and a stop stops all its copies. A copy that starts again starts from the
beginning.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import INLINED, INNER, KERNEL, NESTED, njit
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.colocation import enter, give_named, leave, settle_others, slowdown, take_named
from optsched.simulation.next_event import (
    before,
    begin_running,
    clear_clock,
    dequeue,
    end_of_instant,
    end_running,
    enqueue,
    first_finish,
    rise_later,
    rise_never,
    service,
    set_change,
    set_finish,
    shortened,
    to_the_end,
)
from optsched.simulation.records import (
    ASKED,
    COUNT,
    DONE,
    FREE,
    LOG_FULL,
    NOBODY,
    PAUSED,
    POOL,
    RUNNING,
    THRASHES,
    WAITING,
)
from optsched.simulation.state import RunContext, State
from optsched.speeds.speed_tables import is_timed, pace

# --- events -----------------------------------------------------------------------------------------------------------


@njit(**INNER)
def next_time(s: State) -> float:
    """Return the time of the next event, with which an instant begins; inf if there is none.

    Parameters
    ----------
    s
        State of the run.
    """
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
    """Return `ASKED` if events may go on, or the reason why they may not.

    Parameters
    ----------
    s
        State of the run.
    pause
        Number of events after which the loop pauses.

    Returns
    -------
    int
        `ASKED`; `LOG_FULL`; `THRASHES` if jobs only stop each other; `PAUSED` after ``pause`` events.
    """
    w = s.engine[0]
    # what one instant may add to the log: every running job ends, and as many start
    if w.segments > s.segments.size - s.executions.size - 2 or w.logged > s.parts.size - 4 * w.gpus - 2:
        return LOG_FULL
    if w.livelock >= w.livelock_limit:
        return THRASHES
    return PAUSED if w.events >= pause else ASKED


@njit(**INLINED)
def apply_events(s: State, context: RunContext, t: float) -> None:
    """Apply every event of the instant that begins at ``t``; then a policy may be asked, at ``now``.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    t
        Time of the next event, in seconds since the first arrival.
    """
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
        if job.status == WAITING:  # promoted
            dequeue(s, j)
            job.level = 0
            job.attained = 0.0
            to_the_end(s, j)
            rise_never(s, j)
            enqueue(s, j)
        elif first_finish(s, j) <= last:
            complete(s, context, j)
        else:  # it drops a level
            job.attained = s.numbers[job.level]
            job.mark = w.now
            job.level += 1
            to_the_end(s, j)
            end_running(s, j)
            begin_running(s, j)
            set_change(s, j)
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


# --- executions -------------------------------------------------------------------------------------------------------


@njit(**INLINED)
def start(s: State, context: RunContext, j: int, entries: int, option: int) -> None:
    """Start the waiting job ``j`` on the GPUs in ``out``; a job that was stopped there at this instant goes on.

    The GPUs are ``out[COUNT, k]`` GPUs of pool ``out[POOL, k]``, k < ``entries``. If jobs share GPUs they are the first
    g_j of ``out[NUMBER]``.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    j
        Index of the job.
    entries
        Number of entries in ``out``; not used if jobs share GPUs.
    option
        Index of the sub-batch if jobs share GPUs, else 0.
    """
    w, job = s.engine[0], s.jobs[j]
    dequeue(s, j)
    rise_never(s, j)
    job.status = RUNNING
    x = s.executions[w.active].vacant
    job.execution = x
    job.copies = 1
    begin_running(s, j)
    _begin(s, context, j, x, entries, option, job.left, 0.0)
    if w.stop_record > 0 and resumes_in_place(s, j, x):
        go_on(s, j, x)
    set_change(s, j)


@njit(**KERNEL)
def start_part(s: State, context: RunContext, j: int, entries: int, work: float, given: float) -> None:
    """Start a copy of job ``j``, which waits or runs, on the GPUs chosen in ``out``.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    j
        Index of the job.
    entries
        Number of entries in ``out``.
    work
        Most units of work that the copy does.
    given
        Seconds that a unit of work takes; 0: as the speed tables say.
    """
    w, job = s.engine[0], s.jobs[j]
    x = s.executions[w.active].vacant
    if job.status == RUNNING:
        job.attained += service(s, j) * (w.now - job.mark)
        last = job.execution
        while s.executions[last].other >= 0:
            last = s.executions[last].other
        s.executions[last].other = x
        job.copies += 1
    else:
        dequeue(s, j)
        job.status = RUNNING
        job.execution = x
        job.copies = 1
        begin_running(s, j)
    _begin(s, context, j, x, entries, np.int64(0), min(work, job.left), given)
    set_change(s, j)


@njit(**INNER)
def _begin(s: State, context: RunContext, j: int, x: int, entries: int, option: int, work: float, given: float) -> None:
    w, job, run = s.engine[0], s.jobs[j], s.executions[x]
    w.active += 1
    w.starts += 1
    run.job, run.begun, run.option, run.slow = j, w.now, option, 1.0
    run.target = run.left = work
    run.other = -1
    overhead = w.restart if job.ran > 0 else w.first_start
    if job.restart >= 0.0 and (job.ran > 0 or overhead > 0.0):  # it says itself what a start costs, if one does
        # a copy pays no less than every copy does
        overhead = max(overhead, job.restart) if w.copies != 0 else job.restart
    run.paid = w.now + overhead
    job.mark = w.now
    job.ran += 1
    _take(s, context, context.colocation, j, x, entries, given)


@njit(**INNER)
def _take(s: State, context: RunContext, colocation: Any, j: int, x: int, entries: int, given: float) -> None:
    # The GPUs chosen, as many of each pool, or each by its name where two jobs may be on a GPU; and how fast it runs there.
    w, run, at = s.engine[0], s.executions[x], x * s.engine[0].width
    # Asked here and not in `pace`: most jobs have a duration, and a call would cost as much as the rest of a start.
    timed = is_timed(context.tables, j)
    if colocation is None or colocation.neighbours.gpus.size == 0:
        run.entries = entries
        for k in range(entries):
            part = s.parts[at + k]
            part.pool, part.count = s.out[POOL, k], s.out[COUNT, k]
            s.pools[FREE, part.pool] -= part.count
        w.free -= s.jobs[j].gpus
        apart = 0
    else:
        apart = take_named(s, colocation.neighbours, j, x)
    if given > 0.0:
        run.pace = given
    else:
        run.pace = 1.0 if timed else pace(context.tables, j, s.jobs[j].gpus, s.out[POOL], s.out[COUNT])
    if colocation is not None:
        if colocation.neighbours.gpus.size > 0:
            run.pace *= colocation.neighbours.stretch[j, run.option, apart]
        if colocation.interfaces.senders.size > 0:
            gang, option = s.jobs[j].gpus, run.option
            enter(
                colocation.interfaces, colocation.communication, x, j, gang, option, run.pace, s.out[POOL], s.out[COUNT]
            )
        run.slow = slowdown(s, colocation, x)
        settle_others(s, colocation, x)
    set_finish(s, x)


@njit(**INNER)
def _release(s: State, colocation: Any, x: int, work: float) -> None:
    # End a segment: log it, and give its GPUs back.
    w, run, at = s.engine[0], s.executions[x], x * s.engine[0].width
    j, job = run.job, s.jobs[run.job]
    if w.now > run.begun:
        segment = s.segments[w.segments]
        segment.job, segment.start, segment.end, segment.work = j, run.begun, w.now, work
        segment.first, segment.entries, segment.option = w.logged, run.entries, run.option
        for k in range(run.entries):
            part = s.parts[w.logged + k]
            part.pool, part.count = s.parts[at + k].pool, s.parts[at + k].count
        w.logged += run.entries
        w.segments += 1
        w.livelock = w.livelock + 1 if livelock(work, job.left) else 0
    if colocation is None or colocation.neighbours.gpus.size == 0:
        for k in range(run.entries):
            s.pools[FREE, s.parts[at + k].pool] += s.parts[at + k].count
        w.free += job.gpus
    else:
        give_named(s, colocation.neighbours, j, x)
    if colocation is not None:
        if colocation.interfaces.senders.size > 0:
            leave(colocation.interfaces, x)
        settle_others(s, colocation, x)
    job.attained += service(s, j) * (w.now - job.mark)
    job.mark = w.now
    if job.copies == 1:
        end_running(s, j)
    else:
        _unlink(s, j, x)
    job.copies -= 1
    job.execution = run.other if job.execution == x else job.execution
    w.active -= 1
    s.executions[w.active].vacant = x
    clear_clock(s.clocks, x)


@njit(**NESTED)
def _unlink(s: State, j: int, x: int) -> None:
    # It is no longer among the copies of its job.
    before = s.jobs[j].execution
    if before == x:
        return
    while s.executions[before].other != x:
        before = s.executions[before].other
    s.executions[before].other = s.executions[x].other


@njit(**NESTED)
def work_left(s: State, jobs: Ints, left: Floats) -> None:
    """Compute the work that each of some jobs has left now.

    Parameters
    ----------
    s
        State of the run.
    jobs
        Indices of jobs, i64[m].
    left
        Output: units of work, f64[m].
    """
    now = s.engine[0].now
    for i in range(jobs.size):
        rest, x = s.jobs[jobs[i]].left, s.jobs[jobs[i]].execution
        while x >= 0:
            run = s.executions[x]
            undone = run.left - max(0.0, now - run.paid) / (run.pace * run.slow)
            rest = undone if run.target == rest else rest - (run.target - undone)  # else it does a part of it
            x = run.other
        left[i] = max(rest, 0.0)


@njit(**INNER)
def complete(s: State, context: RunContext, j: int) -> None:
    """Complete the running job ``j``, or those of its copies that have done their parts.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    j
        Index of the job.
    """
    w, job = s.engine[0], s.jobs[j]
    if w.copies != 0:
        _complete_copies(s, context, j)
        return
    w.now = max(w.now, s.executions[job.execution].finish)
    _release(s, context.colocation, job.execution, job.left)
    _finish(s, j)


@njit(**INNER)
def _finish(s: State, j: int) -> None:
    w, job = s.engine[0], s.jobs[j]
    for q in range(s.queues.size):
        s.queues[q].blocked = 0
    job.left = 0.0
    job.status = DONE
    w.finished += 1


@njit(**NESTED)
def _complete_copies(s: State, context: RunContext, j: int) -> None:
    w, job, x = s.engine[0], s.jobs[j], s.jobs[j].execution
    while x >= 0:
        run = s.executions[x]
        x, this = run.other, x
        if run.finish <= w.last:
            w.now = max(w.now, run.finish)
            _release(s, context.colocation, this, run.target)
            job.left -= run.target
    if job.copies > 0:
        set_change(s, j)
    elif job.left <= job.least:
        _finish(s, j)
    else:
        _wait(s, j)


@njit(**KERNEL)
def stop(s: State, context: RunContext, j: int) -> None:
    """Preempt the running job ``j`` in all its copies: it waits again with the work that is left.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    j
        Index of the job.
    """
    w, job = s.engine[0], s.jobs[j]
    while job.execution >= 0:
        x = job.execution
        run = s.executions[x]
        done = max(0.0, w.now - run.paid) / (run.pace * run.slow)
        # what it did before it was last settled, too
        work = done if run.left == run.target else run.target - max(0.0, run.left - done)
        if w.now <= run.begun:
            job.ran -= 1  # started and stopped at one instant: nothing happened
            w.starts -= 1
        else:
            w.stops += 1
            if w.copies == 0:
                remember(s, j, x)
        _release(s, context.colocation, x, work)
        job.left -= work
        job.origin += job.slope * work
    job.key = shortened(job.origin) if w.fading != 0 else job.origin
    if job.left <= job.least and w.copies != 0:
        _finish(s, j)
    else:
        _wait(s, j)


@njit(**INNER)
def _wait(s: State, j: int) -> None:
    enqueue(s, j)
    rise_later(s, j)


# --- resuming in place ------------------------------------------------------------------------------------------------
# A job stopped and started again at one instant where it was (on as many GPUs of each pool, where the engine counts them)
# was never stopped: it goes on with its segment, pays no restart, and is not counted as preempted.

NEGLIGIBLE = 1e-7  # of what a job has left


@njit(**INNER)
def livelock(work: float, left: float) -> bool:
    """Return whether a segment brought a job no further; the engine ends a run after a long row of such segments.

    Parameters
    ----------
    work
        Units of work that the segment did.
    left
        Units of work that the job had left when it began.
    """
    return work <= NEGLIGIBLE * left


@njit(**INNER)
def remember(s: State, j: int, x: int) -> None:
    """Remember, until the instant is over, where job ``j`` ran, so that it can resume there.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of a job that stops.
    x
        Index of its execution.
    """
    w, job, run = s.engine[0], s.jobs[j], s.executions[x]
    if not _stopped_now(s, j):
        job.stop_record = s.executions.size // 2 + w.stop_record
        w.stop_record += 1
    stop_record = s.executions[job.stop_record]
    stop_record.job, stop_record.segment, stop_record.option = j, w.segments, run.option
    stop_record.begun, stop_record.paid = run.begun, run.paid
    stop_record.finish, stop_record.left = run.finish, run.left
    stop_record.slow, stop_record.left_then, stop_record.origin = run.slow, job.left, job.origin


@njit(**INNER)
def resumes_in_place(s: State, j: int, x: int) -> bool:
    """Return whether job ``j`` was stopped at this instant on the GPUs on which it starts now.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of the job.
    x
        Index of its new execution.
    """
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
    """Undo the stop of job ``j``: the segment that it logged, its count, and its changes to the job.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of a job that resumes in place.
    x
        Index of its new execution.
    """
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
