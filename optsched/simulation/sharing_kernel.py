"""The compiled loop of runs in which jobs share GPUs.

Events: completions and arrivals, all those of one instant (`optsched.simulation.instant`) before anybody is asked, at the
last of their times; then the waiting jobs in order. When a job starts or ends, the work of its partners is brought up to
date at their old speed and their completion is set anew: work is integrated exactly between changes, and a job whose
partners do not change is never touched. Nobody is stopped, so that nobody is charged for standing still.

Complexity: O(running + gang x partners) an event, plus the rule for every waiting job.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit, types
from optsched.heap import KERNEL
from optsched.simulation.instant import end_of_instant, next_tick
from optsched.simulation.sharing_rule import RULE_TYPE, STATE_TYPE
from optsched.simulation.sharing_state import (
    DONE,
    EVENTS,
    FINISHED,
    FIRST_TICK,
    INTERVAL,
    NEXT,
    NOW,
    PYTHON,
    RUNNING,
    RUNS,
    STRICT,
    TICK,
    WAITING,
    WAITS,
    SharingState,
)
from optsched.speeds.speed_tables import pace

OVER, ASKED, PAUSED, ILLEGAL = range(4)


@njit(cache=True, inline="always")
def next_event(s: SharingState) -> float:
    """The time of the next completion, arrival or end of an interval; inf: there is none."""
    t = s.clock[TICK]
    if s.counters[NEXT] < s.arrival.size:
        t = min(t, s.arrival[s.by_arrival[s.counters[NEXT]]])
    for i in range(s.counters[RUNNING]):
        t = min(t, s.finish[s.running[i]])
    return t


@njit(cache=True, inline="always")
def _worst(s: SharingState, j: int) -> float:
    # the slowest partner rules
    worst = 1.0
    for i in range(s.first[j], s.first[j + 1]):
        g = s.gang[i]
        for k in range(2):
            other = s.resident[g, k]
            if other >= 0 and other != j:
                worst = max(worst, s.xi[s.kind[j], s.kind[other]])
    return worst


@njit(cache=True, inline="always")
def _set_speed(s: SharingState, j: int, slow: float) -> None:
    now = s.clock[NOW]
    if now > s.paid[j]:
        s.left[j] = max(0.0, s.left[j] - (now - s.paid[j]) / (s.pace[j] * s.slow[j]))
    s.paid[j] = now
    s.slow[j] = slow
    # work that is shorter than the rounding of time still takes time
    s.finish[j] = max(now + s.left[j] * (s.pace[j] * slow), np.nextafter(now, np.inf))


@njit(cache=True, inline="always")
def _partners_change(s: SharingState, j: int) -> None:
    # Everybody on the GPUs of j runs at another speed now.
    for i in range(s.first[j], s.first[j + 1]):
        g = s.gang[i]
        for k in range(2):
            other = s.resident[g, k]
            if other >= 0 and other != j:
                slow = _worst(s, other)
                if slow != s.slow[other]:
                    _set_speed(s, other, slow)


@njit(cache=True, inline="always")
def _count_nodes(s: SharingState, j: int, sign: int) -> None:
    # Different jobs on every node of the gang of j.
    for i in range(s.first[j], s.first[j + 1]):
        m = s.gpu_node[s.gang[i]]
        seen = False
        for k in range(s.first[j], i):
            seen = seen or s.gpu_node[s.gang[k]] == m
        if not seen:
            s.node_jobs[m] += sign


@njit(cache=True, inline="always")
def _free_memory(s: SharingState, g: int) -> float:
    # Anew from who is there: a running sum would drift, and a job that needs all memory would wait for ever.
    room = s.capacity[g]
    for k in range(2):
        r = s.resident[g, k]
        if r >= 0:
            room -= s.memory[r, s.option[r]]
    return room


@njit(cache=True, inline="always")
def start(s: SharingState, j: int, option: int) -> None:
    """Start the waiting job ``j`` on the first g_j GPUs of ``out_gpu``. It stays in ``waiting``: see `forget_started`."""
    gpus = s.gpus[j]
    s.option[j] = option
    entries = 0
    for i in range(gpus):
        g = s.out_gpu[i]
        s.gang[s.first[j] + i] = g
        s.resident[g, 0 if s.resident[g, 0] < 0 else 1] = j
        if s.jobs_on[g] == 0:
            s.node_idle[s.gpu_node[g]] -= 1
        s.jobs_on[g] += 1
        s.room[g] = _free_memory(s, g)
        m = s.gpu_node[g]
        if entries > 0 and s.out_pool[entries - 1] == m:
            s.out_count[entries - 1] += 1
        else:
            s.out_pool[entries] = m
            s.out_count[entries] = 1
            entries += 1
    _count_nodes(s, j, 1)
    apart = 0
    for k in range(1, entries):
        if s.out_pool[k] != s.out_pool[0]:
            apart = 1
    s.status[j] = RUNS
    s.begun[j] = s.clock[NOW]
    s.paid[j] = s.clock[NOW]
    s.pace[j] = pace(s.tables, j, gpus, s.out_pool, s.out_count) * s.stretch[j, option, apart]
    s.running[s.counters[RUNNING]] = j
    s.counters[RUNNING] += 1
    _set_speed(s, j, _worst(s, j))
    _partners_change(s, j)


@njit(cache=True, inline="always")
def _complete(s: SharingState, j: int) -> None:
    for i in range(s.first[j], s.first[j + 1]):
        g = s.gang[i]
        s.resident[g, 0 if s.resident[g, 0] == j else 1] = -1
        s.jobs_on[g] -= 1
        s.room[g] = _free_memory(s, g)
        if s.jobs_on[g] == 0:
            s.node_idle[s.gpu_node[g]] += 1
    _count_nodes(s, j, -1)
    s.status[j] = DONE
    s.left[j] = 0.0
    s.counters[FINISHED] += 1
    _partners_change(s, j)


@njit(cache=True, inline="always")
def _enqueue(s: SharingState, j: int) -> None:
    s.status[j] = WAITS
    k = s.counters[WAITING]
    while k > 0 and (s.key[s.waiting[k - 1]], s.waiting[k - 1]) > (s.key[j], j):
        s.waiting[k] = s.waiting[k - 1]
        k -= 1
    s.waiting[k] = j
    s.counters[WAITING] += 1


@njit(cache=True, inline="always")
def forget_started(s: SharingState) -> None:
    """Take jobs that have started off the list of those that wait."""
    kept = 0
    for i in range(s.counters[WAITING]):
        if s.status[s.waiting[i]] == WAITS:
            s.waiting[kept] = s.waiting[i]
            kept += 1
    s.counters[WAITING] = kept


@njit(cache=True, inline="always")
def apply_events(s: SharingState, t: float) -> bool:
    """Apply every event of the instant that begins at ``t``; may jobs be started afterwards?"""
    last = end_of_instant(t)
    now = t
    ticked = s.clock[TICK] <= last
    if ticked:
        now = max(now, s.clock[TICK])
        s.clock[TICK] = np.inf
    kept = 0
    ended = 0
    for i in range(s.counters[RUNNING]):
        j = s.running[i]
        if s.finish[j] <= last:
            now = max(now, s.finish[j])
            s.ended[j] = s.finish[j]  # each at its own time
            s.found[ended] = j
            ended += 1
        else:
            s.running[kept] = j
            kept += 1
    s.counters[RUNNING] = kept
    came = s.counters[NEXT]
    while s.counters[NEXT] < s.arrival.size and s.arrival[s.by_arrival[s.counters[NEXT]]] <= last:
        now = max(now, s.arrival[s.by_arrival[s.counters[NEXT]]])
        s.counters[NEXT] += 1
    s.clock[NOW] = now
    for i in range(ended):
        _complete(s, s.found[i])
    for i in range(came, s.counters[NEXT]):
        _enqueue(s, s.by_arrival[i])
    s.counters[EVENTS] += ended + s.counters[NEXT] - came
    if s.clock[INTERVAL] <= 0.0 or ticked:
        return True
    tick = next_tick(now, s.clock[FIRST_TICK], s.clock[INTERVAL])
    if tick <= now:
        return True
    if s.counters[WAITING] > 0:
        s.clock[TICK] = tick
    return False


@njit(types.int64(RULE_TYPE, STATE_TYPE, types.int64), **KERNEL)
def run_sharing(rule: RULE_TYPE, s: SharingState, events: int) -> int:
    """Run for about ``events`` events: `OVER`, `PAUSED`, or `ASKED`, where a policy in plain Python chooses."""
    pause = s.counters[EVENTS] + events
    while s.counters[EVENTS] < pause:
        t = next_event(s)
        if t == np.inf:
            return OVER
        if not apply_events(s, t):
            continue
        if s.counters[PYTHON] != 0:
            return ASKED
        for i in range(s.counters[WAITING]):
            option = rule(s, s.waiting[i])
            if option >= 0:
                start(s, s.waiting[i], option)
            elif s.counters[STRICT] != 0:
                break
        forget_started(s)
    return PAUSED
