"""What happens at an event, compiled: the same functions serve compiled orders and policies in plain Python.

Events of one instant (`optsched.simulation.instant`): running jobs that finish or drop a level and waiting jobs that are
promoted, in order of (time, job), each at its own time; then arrivals, in order of (time, job). A job whose last work and
whose threshold fall into one instant finishes. The decisions that follow are taken at the last of these times. Work is
integrated: a job's segments add up to the work it asks for, because every segment but the last takes away exactly what it
logs and the last one logs what is left.

Standing still costs nothing: a job that is stopped and started again at one instant on the GPUs that it had (as many of
each pool, where the engine counts them) was never stopped. It goes on with its segment, pays no restart, and is not counted
as preempted.

Everything is inlined into the compiled loop: a call would pass some sixty arrays, which costs more than the work it does.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.heap import insert, remove
from optsched.simulation.instant import end_of_instant, next_tick, shortened
from optsched.simulation.state import (
    ACTIVE,
    BEGAN,
    BY_TIME,
    DONE,
    EVENTS,
    FADING,
    FINISHED,
    FIRST_ROUND,
    FIRST_START,
    FREE,
    FRUITLESS,
    LOGGED,
    NEXT,
    NOBODY,
    NOW,
    QUEUED,
    REQUEUE,
    RESTART,
    ROUND,
    RUNNING,
    SEGMENTS,
    STARTS,
    STARVATION,
    STOOD_BASE,
    STOOD_BEGUN,
    STOOD_FINISH,
    STOOD_PAID,
    STOOD_REMAINING,
    STOPS,
    TICK,
    WAITING,
    WAKES,
    State,
)
from optsched.speeds.speed_tables import pace


@njit(cache=True, inline="always")
def next_time(s: State) -> float:
    """The time of the next event, with which an instant begins; inf when there is none."""
    t = s.clock[TICK]
    if s.counters[NEXT] < s.arrival.size:
        t = min(t, s.arrival[s.by_arrival[s.counters[NEXT]]])
    if s.counters[WAKES] > 0:
        t = min(t, s.wake[s.waker[0]])
    return float(t)


@njit(cache=True, inline="always")
def apply_events(s: State, t: float) -> None:
    """Apply every event of the instant that begins at ``t``, the next event; then a policy may be asked, at ``NOW``."""
    last = end_of_instant(t)
    s.clock[NOW] = t
    s.clock[BEGAN] = t
    while s.counters[WAKES] > 0 and s.wake[s.waker[0]] <= last:
        j = s.waker[0]
        s.clock[NOW] = max(s.clock[NOW], s.wake[j])
        s.counters[EVENTS] += 1
        if s.status[j] == WAITING:
            _promote(s, j)
        elif s.finish[j] <= last:
            s.clock[NOW] = max(s.clock[NOW], s.finish[j])
            _complete(s, j)
        else:
            _demote(s, j)
    while s.counters[NEXT] < s.arrival.size and s.arrival[s.by_arrival[s.counters[NEXT]]] <= last:
        j = s.by_arrival[s.counters[NEXT]]
        s.clock[NOW] = max(s.clock[NOW], s.arrival[j])
        s.counters[NEXT] += 1
        s.counters[EVENTS] += 1
        _enqueue(s, j)
    if s.clock[TICK] <= last:
        s.clock[NOW] = max(s.clock[NOW], s.clock[TICK])
        s.clock[TICK] = np.inf
        s.counters[EVENTS] += 1


@njit(cache=True, inline="always")
def _set_wake(s: State, j: int, t: float) -> None:
    if s.waker_slot[j] >= 0:
        s.counters[WAKES] = remove(s.waker, 0, s.counters[WAKES], j, s.waker_slot, s.no_level, s.wake)
    s.wake[j] = t
    if t < np.inf:
        s.counters[WAKES] = insert(s.waker, 0, s.counters[WAKES], j, s.waker_slot, s.no_level, s.wake)


@njit(cache=True, inline="always")
def _enqueue(s: State, j: int) -> None:
    q = s.queue[j]
    s.status[j] = WAITING
    s.counters[QUEUED] += 1
    s.queue_size[q] = insert(s.waiting, s.queue_first[q], s.queue_size[q], j, s.waiting_slot, s.level, s.key)


@njit(cache=True, inline="always")
def _dequeue(s: State, j: int) -> None:
    q = s.queue[j]
    s.counters[QUEUED] -= 1
    s.queue_size[q] = remove(s.waiting, s.queue_first[q], s.queue_size[q], j, s.waiting_slot, s.level, s.key)


@njit(cache=True, inline="always")
def _width(s: State, j: int) -> int:
    # What a second of a running job counts for as service.
    return 1 if s.rule[BY_TIME] != 0 else s.gpus[j]


@njit(cache=True, inline="always")
def _to_the_end(s: State, j: int) -> None:
    # Behind the others of the level that the job enters: those that came before the round, or the instant, that ends now.
    if s.rule[REQUEUE] != 0:
        began = s.clock[BEGAN]
        s.base[j] = next_tick(began, s.cost[FIRST_ROUND], s.cost[ROUND]) if s.cost[ROUND] > 0.0 else began
        s.key[j] = s.base[j]


@njit(cache=True, inline="always")
def _running_wake(s: State, j: int) -> float:
    # The next change of a running job: it finishes, or its service reaches the next threshold.
    t = s.finish[j]
    if s.level[j] < s.thresholds.size:
        t = min(t, s.mark[j] + (s.thresholds[s.level[j]] - s.attained[j]) / _width(s, j))
    return float(max(t, s.clock[NOW]))  # rounding must not turn time back


@njit(cache=True, inline="always")
def _waiting_wake(s: State, j: int) -> float:
    # Starvation: back to level 0 after waiting `starvation` times as long as it ran.
    if s.cost[STARVATION] <= 0.0 or s.level[j] == 0:
        return np.inf
    return float(s.ceased[j] + s.cost[STARVATION] * s.attained[j] / _width(s, j))


@njit(cache=True, inline="always")
def _demote(s: State, j: int) -> None:
    s.attained[j] = s.thresholds[s.level[j]]
    s.mark[j] = s.clock[NOW]
    s.level[j] += 1
    _to_the_end(s, j)
    _set_wake(s, j, _running_wake(s, j))


@njit(cache=True, inline="always")
def _promote(s: State, j: int) -> None:
    _dequeue(s, j)
    s.level[j] = 0
    s.attained[j] = 0.0
    _to_the_end(s, j)
    _set_wake(s, j, np.inf)
    _enqueue(s, j)


@njit(cache=True, inline="always")
def _stands_still(s: State, j: int, entries: int) -> bool:
    # Was it stopped at this instant, on the same entries?
    e = s.log_row[j]
    if e < 0 or s.seg_end[e] < s.clock[NOW] or s.seg_offset[e + 1] - s.seg_offset[e] != entries:
        return False
    k0 = s.seg_offset[e]
    for k in range(entries):
        if s.log_pool[k0 + k] != s.out_pool[k] or s.log_count[k0 + k] != s.out_count[k]:
            return False
    return True


@njit(cache=True, inline="always")
def _go_on(s: State, j: int) -> None:
    # Take the stop back: the segment that it logged, its count, and what it changed of the job.
    e = s.log_row[j]
    s.log_row[j] = -1
    if e == s.counters[SEGMENTS] - 1:
        s.counters[SEGMENTS] = e
        s.counters[LOGGED] = s.seg_offset[e]
    else:
        s.seg_job[e] = NOBODY  # left out of the schedule
    s.counters[STOPS] -= 1
    s.counters[STARTS] -= 1
    if s.counters[FRUITLESS] > 0 and s.seg_work[e] == 0.0:
        s.counters[FRUITLESS] -= 1
    s.ran[j] -= 1
    s.begun[j] = s.stood[j, STOOD_BEGUN]
    s.paid[j] = s.stood[j, STOOD_PAID]
    s.finish[j] = s.stood[j, STOOD_FINISH]
    s.remaining[j] = s.stood[j, STOOD_REMAINING]
    s.base[j] = s.stood[j, STOOD_BASE]


@njit(cache=True, inline="always")
def start(s: State, j: int, entries: int) -> None:
    """Start the waiting job ``j`` on ``out_count[k]`` GPUs of ``out_pool[k]``, k < ``entries``; or let it go on there."""
    now = s.clock[NOW]
    _dequeue(s, j)
    s.status[j] = RUNNING
    slot = s.vacant[s.counters[ACTIVE]]
    s.holding[j] = slot
    s.active[s.counters[ACTIVE]] = j
    s.active_slot[j] = s.counters[ACTIVE]
    s.counters[ACTIVE] += 1
    s.span[slot] = entries
    at = slot * s.out_pool.size
    for k in range(entries):
        s.held_pool[at + k] = s.out_pool[k]
        s.held_count[at + k] = s.out_count[k]
        s.free[s.out_pool[k]] -= s.out_count[k]
    s.counters[FREE] -= s.gpus[j]
    s.counters[STARTS] += 1
    s.begun[j] = now
    s.mark[j] = now
    s.paid[j] = now + (s.cost[RESTART] if s.ran[j] > 0 else s.cost[FIRST_START])
    least = np.nextafter(now, np.inf)  # work that is shorter than the rounding of time still takes time
    # Asked here and not in `pace`: most jobs have a duration, and a call would cost as much as the rest of a start.
    timed = s.tables.profile[j] < 0 and s.tables.row[j] == -1
    s.pace[j] = 1.0 if timed else pace(s.tables, j, s.gpus[j], s.out_pool, s.out_count)
    s.finish[j] = max(s.paid[j] + s.remaining[j] * s.pace[j], least)
    s.ran[j] += 1
    if _stands_still(s, j, entries):
        _go_on(s, j)
    _set_wake(s, j, _running_wake(s, j))


@njit(cache=True, inline="always")
def _release(s: State, j: int, work: float) -> None:
    # End the running segment of j: log it, give its GPUs back, take it off the list of running jobs.
    now = s.clock[NOW]
    slot = s.holding[j]
    at = slot * s.out_pool.size
    e, k0 = s.counters[SEGMENTS], s.counters[LOGGED]
    logged = now > s.begun[j]
    for k in range(s.span[slot]):
        s.free[s.held_pool[at + k]] += s.held_count[at + k]
        if logged:
            s.log_pool[k0 + k] = s.held_pool[at + k]
            s.log_count[k0 + k] = s.held_count[at + k]
    if logged:
        s.seg_job[e] = j
        s.seg_start[e] = s.begun[j]
        s.seg_end[e] = now
        s.seg_work[e] = work
        s.counters[LOGGED] = k0 + s.span[slot]
        s.seg_offset[e + 1] = s.counters[LOGGED]
        s.counters[SEGMENTS] = e + 1
        s.counters[FRUITLESS] = 0 if work > 0.0 else s.counters[FRUITLESS] + 1
    s.counters[FREE] += s.gpus[j]
    s.counters[ACTIVE] -= 1
    last = s.active[s.counters[ACTIVE]]
    s.active[s.active_slot[j]] = last
    s.active_slot[last] = s.active_slot[j]
    s.active_slot[j] = -1
    s.vacant[s.counters[ACTIVE]] = slot
    s.holding[j] = -1
    s.in_order[j] = 0
    s.attained[j] += _width(s, j) * (now - s.mark[j])
    s.mark[j] = now


@njit(cache=True, inline="always")
def _complete(s: State, j: int) -> None:
    _release(s, j, s.remaining[j])
    s.blocked[:] = 0
    s.remaining[j] = 0.0
    s.status[j] = DONE
    s.counters[FINISHED] += 1
    _set_wake(s, j, np.inf)


@njit(cache=True, inline="always")
def stop(s: State, j: int) -> None:
    """Preempt the running job ``j``: it waits again with the work that is left."""
    now = s.clock[NOW]
    work = max(0.0, now - s.paid[j]) / s.pace[j]
    never_ran = now <= s.begun[j]
    if not never_ran:
        s.log_row[j] = s.counters[SEGMENTS]
        s.stood[j, STOOD_BEGUN] = s.begun[j]
        s.stood[j, STOOD_PAID] = s.paid[j]
        s.stood[j, STOOD_FINISH] = s.finish[j]
        s.stood[j, STOOD_REMAINING] = s.remaining[j]
        s.stood[j, STOOD_BASE] = s.base[j]
    _release(s, j, work)
    if never_ran:
        s.ran[j] -= 1  # started and stopped at one instant: nothing happened
        s.counters[STARTS] -= 1
    else:
        s.counters[STOPS] += 1
    s.remaining[j] -= work
    s.base[j] += s.slope[j] * work
    s.key[j] = shortened(s.base[j]) if s.rule[FADING] != 0 else s.base[j]
    s.ceased[j] = now
    _enqueue(s, j)
    _set_wake(s, j, _waiting_wake(s, j))
