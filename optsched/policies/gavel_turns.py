"""Gavel compiled: the loop that makes the decisions of `optsched.policies.gavel`, bit for bit.

The loop leaves to Python the shares of time, which linear programs decide, and random orders of the types.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from optsched.compiled import INNER, NESTED, njit, record
from optsched.compiled.heap import pop, push
from optsched.policies.gavel_rounds import (
    ENTRIES,
    MEMBERS,
    PAUSES,
    STARTS,
    STOPS,
    RoundBooks,
    advance,
    close,
    round_books,
    serve,
)
from optsched.policies.round_clock import next_round
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.simulation.kernel import apply_events, may_go_on, next_time, stop, work_left
from optsched.simulation.next_event import end_of_instant
from optsched.simulation.ordered import ContextLoops
from optsched.simulation.policy_loop import UNITS, move_all
from optsched.simulation.records import ASKED, DONE, FINISHED_RUN, RUNNING
from optsched.simulation.state import RunContext, State

BETWEEN, DIVIDING, SERVING = range(3)  # phases of an instant
WEIGH, SHARES, ORDERS, WAKES = range(4)  # steps that are left to Python
WAKES_AT_FIRST = 64

# The parameters of a run, then the state of the clock and of the loop.
TURNS = record(
    length="real",  # seconds of a round
    reset="real",  # least seconds between two computations of shares
    waits="int",  # 1: jobs without shares wait
    pauses="int",  # 1: jobs stop before an iteration that the round cuts off
    zero="real",  # beginning of round 0, nan: the next arrival begins it
    number="int",  # of the next round
    began="real",  # of this round
    changed="int",  # 1: jobs have arrived or completed since the last computation of shares
    found="real",  # times of the last and the first computation
    first="real",
    running="int",
    heard="int",  # arrivals
    listed="int",  # jobs in ``active``
    usable="int",  # jobs in ``usable``
    paused="int",  # the first pause of the round that has not been carried out
    wakes="int",
    drawn="int",  # orders that were used
    phase="int",
    asks="int",  # the step that Python does next
    work="int",  # units of work since Python last weighed it
    limit="int",  # of them, at which Python weighs it again
)


class GavelTurns(NamedTuple):
    """A run of n jobs on T types; the loop changes it, and Python replaces arrays that are too small."""

    facts: Any  # TURNS[1]
    books: RoundBooks
    housed: Bools  # bool[n]: some type can hold all of the job
    active: Ints  # i64[n]: jobs that have arrived, and of which some may be finished
    usable: Ints  # i64[n]: of these, those that get shares
    left: Floats  # f64[n]: units of work of the jobs in ``usable``
    ended: Ints  # i64[n], scratch
    orders: Ints  # i64[K, T]: orders of the types, one a round if they are random
    random: Bools  # bool[]: are they?
    wakes: Floats  # f64[], a heap of the times to be woken at


def new_turns(books: RoundBooks, housed: Bools, orders: Ints, *, random: bool) -> GavelTurns:
    """Return the state of a run before the first event.

    Parameters
    ----------
    books
        Books of the rounds, with the rates of all jobs.
    housed
        For every job, True if some type can hold all of it, bool[n].
    orders
        Orders in which types are served, i64[K, T].
    random
        If true, every round takes the next one.
    """
    n, facts = housed.size, np.zeros(1, dtype=TURNS)
    facts["zero"] = facts["first"] = np.nan
    facts["found"], facts["limit"] = -np.inf, UNITS
    active, usable, ended = np.zeros((3, n), dtype=np.int64)
    return GavelTurns(
        facts, books, housed, active, usable, np.zeros(n), ended, orders, np.array(random), np.zeros(WAKES_AT_FIRST)
    )


@njit(**INNER)
def _wake_at(t: GavelTurns, time: float) -> None:
    w = t.facts[0]
    if w.wakes == 0 or t.wakes[0] != time:
        w.wakes = push(t.wakes, 0, w.wakes, time)


@njit(**NESTED)
def _drop_wakes(t: GavelTurns, until: float) -> float:
    # Remove the times up to this one, and return the last of them; inf: there is none.
    w, dropped = t.facts[0], np.inf
    while w.wakes > 0 and t.wakes[0] <= until:
        dropped = pop(t.wakes, 0, w.wakes)
        w.wakes -= 1
    return dropped


# --- pauses -----------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _first_pause(s: State, t: GavelTurns) -> float:
    # The time of the first pause that is left, inf: there is none. Jobs that have completed have none.
    w, b = t.facts[0], t.books
    while w.paused < b.counts[PAUSES] and s.jobs[b.pause[w.paused]].status != RUNNING:
        w.paused += 1
    return float(b.until[w.paused]) if w.paused < b.counts[PAUSES] else np.inf


@njit(**NESTED)
def _pause(s: State, context: RunContext, t: GavelTurns, last: float) -> None:
    # Carry out the pauses up to this time.
    while _first_pause(s, t) <= last:
        stop(s, context, t.books.pause[t.facts[0].paused])
        t.facts[0].paused += 1


@njit(**NESTED)
def _last_pause(s: State, t: GavelTurns, last: float) -> float:
    # The time of the last pause up to this one.
    b, latest = t.books, np.inf
    for p in range(t.facts[0].paused, b.counts[PAUSES]):
        if b.until[p] > last:
            break
        if s.jobs[b.pause[p]].status == RUNNING:
            latest = b.until[p]
    return latest


@njit(**INNER)
def _pause_before_events(s: State, context: RunContext, t: GavelTurns) -> None:
    # Carry out the pauses that precede all other events.
    e, time = s.engine[0], _first_pause(s, t)
    while time < np.inf and next_time(s) > end_of_instant(time) and may_go_on(s, e.events + 1) == ASKED:
        e.now = e.began = time
        e.stop_record = 0
        e.events += 1
        _pause(s, context, t, time)
        time = _first_pause(s, t)


# --- rounds -----------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _find_active(s: State, t: GavelTurns) -> int:
    # Take jobs that have finished off the list of the active ones, and return how many are left.
    w, count = t.facts[0], 0
    for i in range(w.listed):
        j = t.active[i]
        if s.jobs[j].status != DONE:
            t.active[count] = j
            count += 1
    w.listed = count
    return count


@njit(**NESTED)
def _needs_shares(s: State, t: GavelTurns) -> bool:
    # Is it time to compute the shares again? Then the jobs and their work are written down.
    w, b, count, shared = t.facts[0], t.books, 0, False
    if w.changed == 0:
        return False
    for i in range(w.listed):
        j = t.active[i]
        if t.housed[j]:
            t.usable[count] = j
            count += 1
            for k in range(b.capacity.size):
                shared = shared or b.share[j, k] != 0.0
    w.usable = count
    if count == 0 or not (s.engine[0].now - w.found >= w.reset or w.found == w.first or not shared):
        return False
    work_left(s, t.usable[:count], t.left[:count])
    return True


@njit(**INNER)
def _serve(s: State, context: RunContext, t: GavelTurns) -> None:
    w, b = t.facts[0], t.books
    order = t.orders[w.drawn]
    w.drawn += t.random[()]
    serve(b, t.active[: w.listed], order, w.began, w.waits == 1, w.pauses == 1)
    starts, entries = b.counts[STARTS], b.counts[ENTRIES]
    move_all(
        s, context, b.stop[: b.counts[STOPS]], b.start[:starts], b.on, b.start_node[:entries], b.start_gpus[:entries]
    )
    w.paused, w.running = 0, b.counts[MEMBERS]
    w.work += w.listed + entries


@njit(**INNER)
def _next_instant(s: State, context: RunContext, t: GavelTurns, time: float, pause: float) -> None:
    # Apply the events of an instant; a round may begin if the phase is DIVIDING.
    e, w, b, last, wake = s.engine[0], t.facts[0], t.books, end_of_instant(time), s.engine[0].tick
    e.tick = _drop_wakes(t, last)
    if pause <= last:
        latest = _last_pause(s, t, last)
        e.tick = max(e.tick, latest) if e.tick <= last else latest
    before, came, count = e.segments, e.next, 0
    apply_events(s, context, time)
    w.work += 1
    for i in range(before, e.segments):
        t.ended[count] = s.segments[i].job
        count += 1
    if pause <= last:
        _pause(s, context, t, last)
        if wake > last and count == 0 and e.next == came:
            e.tick = wake
            return
    for i in range(came, e.next):
        t.active[w.listed] = s.jobs[i].nth
        w.listed += 1
    w.running = advance(b, t.ended[:count], w.began, e.now)
    if count > 0 or e.next > came:
        w.changed = 1
    if w.running == 0:
        w.zero = np.nan
    if e.now >= w.zero + w.number * w.length or np.isnan(w.zero):
        close(b, e.now - w.began)
        w.began = e.now
        _find_active(s, t)
        w.phase = DIVIDING
    else:
        _end(s, t)


@njit(**INNER)
def _end(s: State, t: GavelTurns) -> None:
    # The decision is taken. The round ends early with the last pause, if no job runs to its end.
    w, now = t.facts[0], s.engine[0].now
    if not np.isnan(t.books.last[0]):
        _wake_at(t, t.books.last[0])
    _drop_wakes(t, now)
    s.engine[0].tick = t.wakes[0] if w.wakes > 0 else np.inf
    w.phase = BETWEEN


@njit(**INNER)
def _begin_round(s: State, t: GavelTurns) -> None:
    w, now = t.facts[0], s.engine[0].now
    if w.running > 0:
        if np.isnan(w.zero):
            w.zero, w.number = now, 0
        w.number = next_round(w.zero, w.length, w.number + 1, np.nextafter(now, np.inf))
        _wake_at(t, w.zero + w.number * w.length)
    _end(s, t)


def _run_turns(place: Any, s: State, context: RunContext, t: GavelTurns, events: int) -> int:
    e, w = s.engine[0], t.facts[0]
    pause = e.events + events
    while True:
        if w.phase == BETWEEN:
            status = may_go_on(s, pause)
            if status != ASKED:
                return status
            if w.work >= w.limit or w.wakes + 2 > t.wakes.size:
                w.asks = WEIGH if w.work >= w.limit else WAKES
                return ASKED
            _pause_before_events(s, context, t)
            first = _first_pause(s, t)
            time = min(next_time(s), first)
            if time == np.inf or e.finished == s.jobs.size:
                return FINISHED_RUN
            _next_instant(s, context, t, time, first)
        if w.phase == DIVIDING:
            w.phase = SERVING
            if w.listed > 0 and _needs_shares(s, t):
                w.asks = SHARES
                return ASKED
        if w.phase == SERVING:
            if w.listed > 0:
                if w.drawn == t.orders.shape[0]:
                    w.asks = ORDERS
                    return ASKED
                _serve(s, context, t)
            _begin_round(s, t)


def _type() -> Any:
    one = np.ones(1, dtype=np.int64)
    books = round_books(1, np.zeros(1, dtype=np.int64), one, one)
    return numba.typeof(new_turns(books, one > 0, one.reshape(1, 1), random=False))


turns_loop = ContextLoops(_run_turns, _type())
