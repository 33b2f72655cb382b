"""The compiled loop of policies that reserve GPUs for waiting jobs: backfilling.

The loop makes the decisions of `optsched.policies.backfill`, which defines them in plain Python, bit for bit.

The *profile* is the number of free GPUs over time, as the policy believes: ``free[k]`` from ``time[k]`` until
``time[k + 1]``, and ``free`` of the last step for ever. No two consecutive steps are equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from optsched.compiled import INNER, KERNEL, NESTED, njit, record, types
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.kernel import start
from optsched.simulation.next_event import end_of_instant
from optsched.simulation.ordered import (
    CONTEXT_TYPES,
    PLACE_TYPE,
    STATE_TYPE,
    choose_gpus,
    context_kind,
    forget_started,
    next_decision,
)
from optsched.simulation.records import ASKED, DONE, FREE, WAITING
from optsched.simulation.state import RunContext, State

KEPT, EARLIER, WRONG = 0, 1, 2  # what was believed happened; a job ended before; a job runs longer, or cannot start
EVERY = -1  # the depth at which every waiting job has a reservation that it keeps

PLAN = record(
    depth="int",  # jobs with a reservation, or `EVERY`
    by_length="int",  # 1: jobs behind those with a reservation are considered the shortest first
    forecasts="int",  # 1: every job is promised a start at its arrival, by a plan for the whole queue
    doubles="int",  # 1: a job beyond its believed end is believed to run twice as long; 0: a second more
    arrived="int",  # jobs that the loop has seen
    listed="int",  # of `Plan.shortest`
    running="int",
    steps="int",
    decisions="int",  # so far
    changed="int",  # beliefs at this decision: `KEPT`, `EARLIER` or `WRONG`
)


class Plan(NamedTuple):
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
) -> Plan:
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
    reals, whole = np.full((3, n), np.nan), np.zeros((3, n), dtype=np.int64)
    time, free = np.zeros(2 * n + 4), np.full(2 * n + 4, gpus, dtype=np.int64)
    return Plan(
        facts, np.array(seconds, dtype=np.float64), np.array(limit, dtype=np.float64), *reals, *whole, time, free
    )


# --- the profile ------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _step_at(plan: Plan, t: float) -> int:
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
def _merge(plan: Plan, k: int) -> None:
    # With the step before it, if both have as many free GPUs.
    w, time, free = plan.facts[0], plan.time, plan.free
    if 0 < k < w.steps and free[k] == free[k - 1]:
        w.steps -= 1
        for i in range(k, w.steps):
            time[i], free[i] = time[i + 1], free[i + 1]


@njit(**NESTED)
def _add(plan: Plan, begin: float, end: float, gpus: int) -> None:
    # Free GPUs from begin until end; negative: they are taken.
    if begin < end:
        first, last = _step_at(plan, begin), _step_at(plan, end)
        for k in range(first, last):
            plan.free[k] += gpus
        _merge(plan, last)
        _merge(plan, first)


@njit(**NESTED)
def _forget_past(plan: Plan, now: float) -> None:
    w, time, free, past = plan.facts[0], plan.time, plan.free, 0
    while past + 1 < w.steps and time[past + 1] <= now:
        past += 1
    if past > 0:
        w.steps -= past
        for k in range(w.steps):
            time[k], free[k] = time[k + past], free[k + past]
    time[0] = now


@njit(**NESTED)
def _earliest(plan: Plan, seconds: float, gpus: int) -> float:
    # The first time at which so many GPUs are free for so long.
    w, time, free = plan.facts[0], plan.time, plan.free
    begin, k = time[0], 0
    while k < w.steps and time[k] < begin + seconds:
        if free[k] < gpus and k + 1 < w.steps:
            begin = time[k + 1]
        k += 1
    return float(begin)


@njit(**NESTED)
def _stays_free(plan: Plan, end: float, gpus: int) -> bool:
    # Are so many GPUs free from now until end?
    for k in range(plan.facts[0].steps):
        if plan.time[k] >= end:
            return True
        if plan.free[k] < gpus:
            return False
    return True


# --- events -----------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _insert_running(plan: Plan, j: int, until: float) -> None:
    w, running = plan.facts[0], plan.running
    plan.until[j] = until
    k = w.running
    while k > 0 and plan.until[running[k - 1]] > until:
        running[k] = running[k - 1]
        k -= 1
    running[k] = j
    w.running += 1


@njit(**NESTED)
def _hear(s: State, plan: Plan) -> None:
    # Which jobs have ended, and which run longer than believed.
    w, now, running = plan.facts[0], s.engine[0].now, 0
    keeps = w.depth == EVERY
    w.decisions += 1
    w.changed = KEPT
    if keeps:
        _forget_past(plan, now)
    for i in range(w.running):
        j = plan.running[i]
        if s.jobs[j].status != DONE:
            plan.running[running] = j
            running += 1
        elif keeps and plan.until[j] > now:
            _add(plan, now, plan.until[j], s.jobs[j].gpus)
            w.changed = EARLIER
    w.running = running
    while w.running > 0 and plan.until[plan.running[0]] <= now:
        j, until = plan.running[0], now + 1.0
        w.running -= 1
        for i in range(w.running):
            plan.running[i] = plan.running[i + 1]
        if w.doubles != 0:
            begun = s.executions[s.jobs[j].execution].begun
            longer = begun + min(2.0 * (now - begun), plan.limit[j])
            until = longer if longer > now else until
        if keeps:
            _add(plan, now, until, -s.jobs[j].gpus)
            w.changed = WRONG
        _insert_running(plan, j, until)


@njit(**NESTED)
def _list_arrived(s: State, plan: Plan) -> None:
    # Insert jobs that have arrived into the list of waiting jobs by length.
    w, shortest = plan.facts[0], plan.shortest
    while w.arrived < s.engine[0].next:
        j = s.jobs[w.arrived].nth
        k = w.listed
        while k > 0 and _is_shorter(s, plan, j, shortest[k - 1]):
            shortest[k] = shortest[k - 1]
            k -= 1
        shortest[k] = j
        w.listed += 1
        w.arrived += 1


@njit(**NESTED)
def _is_shorter(s: State, plan: Plan, j: int, other: int) -> bool:
    if plan.seconds[j] != plan.seconds[other]:
        return bool(plan.seconds[j] < plan.seconds[other])
    return bool((s.jobs[j].key, j) < (s.jobs[other].key, other))


# --- decisions --------------------------------------------------------------------------------------------------------


@njit(**INNER)
def _starts(place: Any, s: State, context: RunContext, plan: Plan, j: int, until: float) -> bool:
    # It starts if the placement finds GPUs.
    entries = 0
    if s.jobs[j].gpus <= s.engine[0].free:
        entries = choose_gpus(place, s, context, j, s.pools[FREE])
    if entries == 0:
        return False
    start(s, context, j, entries, np.int64(0))
    _insert_running(plan, j, until)
    if plan.facts[0].forecasts != 0 and np.isnan(plan.promised[j]):
        plan.promised[j] = s.engine[0].now
    return True


@njit(**NESTED)
def _believe(s: State, plan: Plan) -> None:
    # The profile of running jobs alone.
    w, k = plan.facts[0], 0
    plan.time[0], plan.free[0] = s.engine[0].now, s.engine[0].free
    for i in range(w.running):
        j = plan.running[i]
        if plan.until[j] > plan.time[k]:
            k += 1
            plan.time[k], plan.free[k] = plan.until[j], plan.free[k - 1]
        plan.free[k] += s.jobs[j].gpus
    w.steps = k + 1


@njit(**KERNEL)
def _backfill(place: Any, s: State, context: RunContext, plan: Plan) -> None:
    # Reservations for the first waiting jobs, made again at every decision.
    e, w, reserved = s.engine[0], plan.facts[0], 0
    if w.by_length != 0:
        _list_arrived(s, plan)
    for i in range(e.queued):
        j = s.heap[i].number
        gang, seconds = s.jobs[j].gpus, plan.seconds[j]
        plan.considered[j] = w.decisions
        if reserved == 0 or (gang <= e.free and _stays_free(plan, e.now + seconds, gang)):
            if _starts(place, s, context, plan, j, e.now + seconds):
                if reserved > 0:
                    _add(plan, e.now, e.now + seconds, -gang)
                continue
        if reserved < w.depth:
            if reserved == 0:
                if w.depth == 1 and e.free == 0 and not np.isnan(plan.promised[j]):
                    return
                _believe(s, plan)
            begin = _earliest(plan, seconds, gang)
            _add(plan, begin, begin + seconds, -gang)
            if np.isnan(plan.promised[j]):
                plan.promised[j] = begin
            reserved += 1
        if reserved == w.depth and (w.by_length != 0 or e.free == 0):
            break
    if w.by_length != 0 and reserved == w.depth and e.free > 0:
        _backfill_shortest(place, s, context, plan)


@njit(**NESTED)
def _backfill_shortest(place: Any, s: State, context: RunContext, plan: Plan) -> None:
    e, w, waiting = s.engine[0], plan.facts[0], 0
    for i in range(w.listed):
        j = plan.shortest[i]
        gang, until = s.jobs[j].gpus, e.now + plan.seconds[j]
        waits = s.jobs[j].status == WAITING
        if waits and plan.considered[j] != w.decisions and gang <= e.free and _stays_free(plan, until, gang):
            if _starts(place, s, context, plan, j, until):
                _add(plan, e.now, until, -gang)
                waits = False
        if waits:
            plan.shortest[waiting] = j
            waiting += 1
    w.listed = waiting


@njit(**NESTED)
def _forecast(s: State, plan: Plan) -> None:
    # What jobs that have just arrived are promised: the start that each has if all wait in the order of the queue.
    new = False
    for i in range(s.engine[0].queued):
        j = s.heap[i].number
        new = new or (s.jobs[j].status == WAITING and np.isnan(plan.promised[j]))
    if new:
        _believe(s, plan)
        for i in range(s.engine[0].queued):
            j = s.heap[i].number
            if s.jobs[j].status == WAITING:
                _reserve(s, plan, j)
                if np.isnan(plan.promised[j]):
                    plan.promised[j] = plan.begin[j]


@njit(**INNER)
def _reserve(s: State, plan: Plan, j: int) -> None:
    begin = _earliest(plan, plan.seconds[j], s.jobs[j].gpus)
    plan.begin[j] = begin
    _add(plan, begin, begin + plan.seconds[j], -s.jobs[j].gpus)


@njit(**KERNEL)
def _keep_promises(place: Any, s: State, context: RunContext, plan: Plan) -> None:
    # A reservation for every waiting job, which moves only to an earlier time while beliefs are right.
    e, w = s.engine[0], plan.facts[0]
    for i in range(e.queued):
        j = s.heap[i].number
        if end_of_instant(plan.begin[j]) < e.now:  # the placement found no GPUs
            w.changed = WRONG
    for i in range(e.queued):
        j = s.heap[i].number
        if w.changed != KEPT and not np.isnan(plan.promised[j]):
            _add(plan, max(e.now, plan.begin[j]), plan.begin[j] + plan.seconds[j], s.jobs[j].gpus)
            if w.changed == EARLIER:
                _reserve(s, plan, j)
    for i in range(e.queued):
        j = s.heap[i].number
        if w.changed == WRONG and not np.isnan(plan.promised[j]):
            _reserve(s, plan, j)
    for i in range(e.queued):
        j = s.heap[i].number
        if np.isnan(plan.promised[j]):
            _reserve(s, plan, j)
            plan.promised[j] = plan.begin[j]
    for i in range(e.queued):
        j = s.heap[i].number
        if plan.begin[j] <= e.now:
            _starts(place, s, context, plan, j, plan.begin[j] + plan.seconds[j])
    e.tick = np.inf
    for i in range(e.queued):  # a job that needs more GPUs than are free now waits for an event in any case
        j = s.heap[i].number
        if s.jobs[j].status == WAITING and plan.begin[j] > e.now and s.jobs[j].gpus <= e.free:
            e.tick = min(e.tick, plan.begin[j])


def _run_planned(place: Any, s: State, context: RunContext, plan: Plan, events: int) -> int:
    pause = s.engine[0].events + events
    while True:
        status = next_decision(s, context, pause)
        if status != ASKED:
            return status
        _hear(s, plan)
        if s.engine[0].queued > 0:
            if plan.facts[0].depth == EVERY:
                _keep_promises(place, s, context, plan)
            else:
                _backfill(place, s, context, plan)
                if plan.facts[0].forecasts != 0:
                    _forecast(s, plan)
            forget_started(s)


PLAN_TYPE = numba.typeof(new_plan(np.ones(1), np.ones(1), 1, 1))
_PLANNED = [
    njit(signature=types.int64(PLACE_TYPE, STATE_TYPE, context, PLAN_TYPE, types.int64), **KERNEL)(_run_planned)
    for context in CONTEXT_TYPES
]


def planned_loop(context: RunContext) -> Any:
    """Return the compiled loop ``run(place, state, context, plan, events)`` for a context.

    It ends as `optsched.simulation.ordered.ordered_loop` does.

    Parameters
    ----------
    context
        Constants of the run.
    """
    return _PLANNED[context_kind(context)]
