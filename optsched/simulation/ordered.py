"""The compiled loop of policies that are a queue order.

Not preemptive: jobs start in order of (level, key, index); a job that does not fit blocks the queue (strict) or is passed
over (skip). Jobs of one kind (gang size, eligible nodes) fit or do not fit together, so each kind has its own heap, and a
kind that did not fit is not tried again before GPUs are released: exactly the scan of the whole queue, at O(kinds + log n)
a start.

Preemptive: active jobs are walked in that order. A running job keeps its GPUs unless a more important one took them. A
waiting job takes idle GPUs; where these do not hold it, less important running jobs are evicted, the least important
first, until it fits; evicted jobs whose GPUs turn out not to be needed keep running, the most important first. If evicting
all of them would not do, nobody is evicted and the job waits.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from optsched.compiled import njit, types
from optsched.heap import KERNEL, before
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance, Job
from optsched.simulation.instant import end_of_instant, next_tick, shortened
from optsched.simulation.kernel import apply_events, next_time, start, stop
from optsched.simulation.placing import SIGNATURE, Placement
from optsched.simulation.policy import Order
from optsched.simulation.state import (
    ACTIVE,
    EVENTS,
    FADING,
    FIRST_ROUND,
    FREE,
    FRUITLESS,
    LOGGED,
    NOW,
    ORDERED,
    PREEMPTIVE,
    QUEUED,
    ROUND,
    RUNNING,
    SEGMENTS,
    SKIP,
    THRASHING,
    TICK,
    State,
    new_state,
)

FINISHED_RUN, NEEDS_ROOM, PAUSED, THRASHES = 0, 1, 2, 3


def _state_type() -> Any:
    # The type of a state, taken from a real one: explicit types let any placement be passed as a function value.
    instance = Instance([Job("a", duration=1)], Cluster.machines(1))
    order = Order(key=instance.arrival)
    return numba.typeof(new_state(instance, order, Placement("none", lambda *_: 0)))


PLACE_TYPE = types.FunctionType(SIGNATURE)
STATE_TYPE = _state_type()


@njit(cache=True, inline="always")
def _place(place: Any, s: State, j: int, free: Any) -> int:
    return place(j, s.gpus[j], free, s.size, s.eligible[s.kind[j]], s.random, s.tables, s.out_pool, s.out_count)


@njit(cache=True, inline="always")
def _head(s: State) -> int:
    # The most important waiting job of a kind that is not known not to fit; -1 when there is none.
    best = -1
    for q in range(s.queue_size.size):
        if s.queue_size[q] > 0 and s.blocked[q] == 0:
            j = s.waiting[s.queue_first[q]]
            if best < 0 or before(j, best, s.level, s.key):
                best = j
    return best


@njit(cache=True, inline="always")
def _decide(place: Any, s: State) -> None:
    skip = s.rule[SKIP] != 0
    while s.counters[QUEUED] > 0:
        j = _head(s)
        if j < 0:
            return
        entries = 0
        if s.gpus[j] <= s.counters[FREE]:
            entries = _place(place, s, j, s.free)
        if entries > 0:
            start(s, j, entries)
        elif skip:
            s.blocked[s.queue[j]] = 1
        else:
            return


@njit(cache=True, inline="always")
def _sort_running(s: State) -> int:
    # Running jobs in the order in which they are served. The old order is nearly right: insertion sort is linear.
    kept = 0
    for i in range(s.counters[ORDERED]):
        j = s.order[i]
        if s.status[j] == RUNNING and s.in_order[j] == 1:
            s.order[kept] = j
            kept += 1
    now = s.clock[NOW]
    for i in range(s.counters[ACTIVE]):
        j = s.active[i]
        if s.rule[FADING] != 0:
            s.key[j] = shortened(s.base[j] + s.slope[j] * (max(0.0, now - s.paid[j]) / s.pace[j]))
        if s.in_order[j] == 0:
            s.in_order[j] = 1
            s.order[kept] = j
            kept += 1
    s.counters[ORDERED] = kept
    for i in range(1, kept):
        j = s.order[i]
        k = i
        while k > 0 and before(j, s.order[k - 1], s.level, s.key):
            s.order[k] = s.order[k - 1]
            k -= 1
        s.order[k] = j
    return kept


@njit(**KERNEL)
def _hold(s: State, j: int, sign: int) -> None:
    at = s.holding[j] * s.out_pool.size
    for k in range(s.span[s.holding[j]]):
        s.trial[s.held_pool[at + k]] += sign * s.held_count[at + k]


@njit(**KERNEL)
def _kept(s: State, j: int) -> bool:
    # Take the GPUs of j off the trial if they are all still there.
    _hold(s, j, -1)
    at = s.holding[j] * s.out_pool.size
    for k in range(s.span[s.holding[j]]):
        if s.trial[s.held_pool[at + k]] < 0:
            _hold(s, j, 1)
            return False
    return True


@njit(**KERNEL)
def _evict_for(place: Any, s: State, j: int, first: int, kept: int) -> int:
    # Make room for j among order[first:kept]; the entries of its placement, 0 when evicting everybody would not do.
    for p in range(s.free.size):
        s.trial[p] = s.free[p]
    free = s.counters[FREE]
    entries, low = 0, kept
    while low > first and entries == 0:
        low -= 1
        victim = s.order[low]
        if s.status[victim] != RUNNING or s.in_order[victim] == 0:
            continue
        _hold(s, victim, 1)
        free += s.gpus[victim]
        if free >= s.gpus[j]:
            entries = _place(place, s, j, s.trial)
    if entries == 0:
        return 0
    for k in range(entries):
        s.trial[s.out_pool[k]] -= s.out_count[k]
    for i in range(low, kept):  # the most important victim first
        victim = s.order[i]
        if s.status[victim] != RUNNING or s.in_order[victim] == 0:
            continue
        if not _kept(s, victim):
            stop(s, victim)
    return entries


@njit(cache=True, inline="always")
def _decide_preemptive(place: Any, s: State) -> None:
    if s.counters[QUEUED] == 0:
        return
    kept = _sort_running(s)
    s.blocked[:] = 0
    evictable = 0  # GPUs of running jobs not yet walked past
    for i in range(kept):
        evictable += s.gpus[s.order[i]]
    at = 0
    while True:
        j = _head(s)
        if j < 0:
            return
        while at < kept:
            r = s.order[at]
            if s.status[r] != RUNNING or s.in_order[r] == 0:
                at += 1  # evicted a moment ago: its GPUs left `evictable` then
            elif before(r, j, s.level, s.key):
                evictable -= s.gpus[r]
                at += 1
            else:
                break
        entries = 0
        if s.gpus[j] <= s.counters[FREE]:
            entries = _place(place, s, j, s.free)
        if entries == 0 and s.gpus[j] <= s.counters[FREE] + evictable:
            free = s.counters[FREE]
            entries = _evict_for(place, s, j, at, kept)
            evictable -= s.counters[FREE] - free
        if entries > 0:
            start(s, j, entries)
        else:
            s.blocked[s.queue[j]] = 1


@njit(types.int64(PLACE_TYPE, STATE_TYPE, types.int64), **KERNEL)
def run_ordered(place: Any, s: State, events: int) -> int:
    """Run for about ``events`` events.

    Returns `FINISHED_RUN`, `NEEDS_ROOM` (the log is nearly full), `PAUSED`, or `THRASHES` (jobs only stop each other).
    """
    room = s.seg_job.size - 2 * s.active.size - 2
    log = s.log_pool.size - 2 * s.size.sum() - 2
    pause = s.counters[EVENTS] + events
    while True:
        if s.counters[SEGMENTS] > room or s.counters[LOGGED] > log:
            return NEEDS_ROOM
        if s.counters[FRUITLESS] >= THRASHING:
            return THRASHES
        if s.counters[EVENTS] >= pause:
            return PAUSED
        t = next_time(s)
        if t == np.inf:
            return FINISHED_RUN
        end_of_round = s.clock[TICK] <= end_of_instant(t)
        apply_events(s, t)
        if s.cost[ROUND] > 0.0 and not end_of_round:
            tick = next_tick(s.clock[NOW], s.cost[FIRST_ROUND], s.cost[ROUND])
            if tick > s.clock[NOW]:  # decisions only at the end of a round
                if s.counters[QUEUED] > 0:
                    s.clock[TICK] = tick
                continue
        if s.rule[PREEMPTIVE] != 0:
            _decide_preemptive(place, s)
        else:
            _decide(place, s)
