"""The compiled loop of policies that reserve GPUs for waiting jobs: backfilling.

The loop makes the decisions of `optsched.policies.backfill`, which defines them in plain Python, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from optsched.compiled import INNER, KERNEL, NESTED, njit
from optsched.simulation.kernel import start
from optsched.simulation.next_event import end_of_instant
from optsched.simulation.ordered import (
    ContextLoops,
    choose_gpus,
    forget_started,
    next_decision,
)
from optsched.simulation.records import ASKED, DONE, FREE, WAITING
from optsched.simulation.reservation_plan import (
    EARLIER,
    EVERY,
    KEPT,
    WRONG,
    ReservationPlan,
    add_gpus,
    earliest,
    forget_past,
    new_plan,
    stays_free,
)
from optsched.simulation.state import RunContext, State

# --- events -----------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _insert_running(plan: ReservationPlan, j: int, until: float) -> None:
    w, running = plan.facts[0], plan.running
    plan.until[j] = until
    k = w.running
    while k > 0 and plan.until[running[k - 1]] > until:
        running[k] = running[k - 1]
        k -= 1
    running[k] = j
    w.running += 1


@njit(**NESTED)
def _hear(s: State, plan: ReservationPlan) -> None:
    # Which jobs have ended, and which run longer than believed.
    w, now, running = plan.facts[0], s.engine[0].now, 0
    keeps = w.depth == EVERY
    w.decisions += 1
    w.changed = KEPT
    if keeps:
        forget_past(plan, now)
    for i in range(w.running):
        j = plan.running[i]
        if s.jobs[j].status != DONE:
            plan.running[running] = j
            running += 1
        elif keeps and plan.until[j] > now:
            add_gpus(plan, now, plan.until[j], s.jobs[j].gpus)
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
            add_gpus(plan, now, until, -s.jobs[j].gpus)
            w.changed = WRONG
        _insert_running(plan, j, until)


@njit(**NESTED)
def _list_arrived(s: State, plan: ReservationPlan) -> None:
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
def _is_shorter(s: State, plan: ReservationPlan, j: int, other: int) -> bool:
    if plan.seconds[j] != plan.seconds[other]:
        return bool(plan.seconds[j] < plan.seconds[other])
    return bool((s.jobs[j].key, j) < (s.jobs[other].key, other))


# --- decisions --------------------------------------------------------------------------------------------------------


@njit(**INNER)
def _starts(place: Any, s: State, context: RunContext, plan: ReservationPlan, j: int, until: float) -> bool:
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


@njit(**INNER)
def _starts_beside(place: Any, s: State, context: RunContext, plan: ReservationPlan, j: int) -> bool:
    # It starts if it also fits beside the reservations until its believed end.
    now, gang = s.engine[0].now, s.jobs[j].gpus
    until = now + plan.seconds[j]
    if gang > s.engine[0].free or not stays_free(plan, until, gang):
        return False
    if not _starts(place, s, context, plan, j, until):
        return False
    add_gpus(plan, now, until, -gang)
    return True


@njit(**NESTED)
def _believe(s: State, plan: ReservationPlan) -> None:
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
def _backfill(place: Any, s: State, context: RunContext, plan: ReservationPlan) -> None:
    # Reservations for the first waiting jobs, made again at every decision.
    e, w, reserved = s.engine[0], plan.facts[0], 0
    if w.by_length != 0:
        _list_arrived(s, plan)
    for i in range(e.queued):
        j = s.heap[i].number
        gang, seconds = s.jobs[j].gpus, plan.seconds[j]
        plan.considered[j] = w.decisions
        if reserved == 0:
            started = _starts(place, s, context, plan, j, e.now + seconds)
        else:
            started = _starts_beside(place, s, context, plan, j)
        if not started and reserved < w.depth:
            if reserved == 0:
                if w.depth == 1 and e.free == 0 and not np.isnan(plan.promised[j]):
                    return
                _believe(s, plan)
            begin = earliest(plan, seconds, gang)
            add_gpus(plan, begin, begin + seconds, -gang)
            if np.isnan(plan.promised[j]):
                plan.promised[j] = begin
            reserved += 1
        if reserved == w.depth and (w.by_length != 0 or e.free == 0):
            break
    if w.by_length != 0 and reserved == w.depth and e.free > 0:
        _backfill_shortest(place, s, context, plan)


@njit(**NESTED)
def _backfill_shortest(place: Any, s: State, context: RunContext, plan: ReservationPlan) -> None:
    w, waiting = plan.facts[0], 0
    for i in range(w.listed):
        j = plan.shortest[i]
        waits = s.jobs[j].status == WAITING
        if waits and plan.considered[j] != w.decisions:
            waits = not _starts_beside(place, s, context, plan, j)
        if waits:
            plan.shortest[waiting] = j
            waiting += 1
    w.listed = waiting


@njit(**NESTED)
def _forecast(s: State, plan: ReservationPlan) -> None:
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
def _reserve(s: State, plan: ReservationPlan, j: int) -> None:
    begin = earliest(plan, plan.seconds[j], s.jobs[j].gpus)
    plan.begin[j] = begin
    add_gpus(plan, begin, begin + plan.seconds[j], -s.jobs[j].gpus)


@njit(**KERNEL)
def _keep_promises(place: Any, s: State, context: RunContext, plan: ReservationPlan) -> None:
    # A reservation for every waiting job, which moves only to an earlier time while beliefs are right.
    e, w = s.engine[0], plan.facts[0]
    for i in range(e.queued):
        j = s.heap[i].number
        if end_of_instant(plan.begin[j]) < e.now:  # the placement found no GPUs
            w.changed = WRONG
    for i in range(e.queued):
        j = s.heap[i].number
        if w.changed != KEPT and not np.isnan(plan.promised[j]):
            add_gpus(plan, max(e.now, plan.begin[j]), plan.begin[j] + plan.seconds[j], s.jobs[j].gpus)
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


def _run_planned(place: Any, s: State, context: RunContext, plan: ReservationPlan, events: int) -> int:
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
planned_loop = ContextLoops(_run_planned, PLAN_TYPE)
