"""Hadar compiled: the loop that makes the decisions of `optsched.policies.hadar`, bit for bit.

The loop leaves to Python whatever is rare: larger arrays, higher prices, and utilities that depend on the number of
active jobs.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from optsched.compiled import INNER, NESTED, njit
from optsched.policies.arrived_jobs import MOMENT, ULPS, ArrivedJobs
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_deal import AHEAD, BEST, ENDING, ENTRIES, MOVES, OPEN, SAME, STOPS, deal, survey
from optsched.policies.hadar_purchases import HELD, NOTHING, WEIGH, HadarTurns, begins, buy, new_turns
from optsched.policies.hadar_reservations import ROUNDS as ROUNDS_A_UNIT, Reservations
from optsched.policies.round_clock import next_round
from optsched.simulation.kernel import apply_events, may_go_on, next_time, work_left
from optsched.simulation.next_event import end_of_instant
from optsched.simulation.ordered import ContextLoops
from optsched.simulation.policy_loop import move_all
from optsched.simulation.records import ASKED, DONE, FINISHED_RUN
from optsched.simulation.state import RunContext, State

BETWEEN, ARRIVALS, ROUND = range(3)  # phases of an instant

# --- rounds -----------------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _find_active(s: State, t: HadarTurns) -> int:
    # Take jobs that have finished off the list of the active ones, and return how many are left.
    w, count = t.facts[0], 0
    for i in range(w.listed):
        j = t.active[i]
        if s.jobs[j].status != DONE:
            t.active[count] = j
            count += 1
    w.listed = count
    return count


@njit(**INNER)
def _play(s: State, context: RunContext, t: HadarTurns) -> bool:
    # Carry out the plans that are due; true if the policy wants to be woken at the next round.
    w, b, now = t.facts[0], t.books, s.engine[0].now
    boundary = begins(t, w.number)
    if now >= boundary:
        count = _find_active(s, t)
        active, left = t.active[:count], t.left[:count]
        work_left(s, active, left)
        t.terms[0] = boundary - now
        t.terms[1] = MOMENT * w.length + ULPS * np.spacing(max(now, w.length))
        t.terms[2], t.terms[3] = w.length, w.restart
        change = survey(b, active, left, w.number, now, t.terms, w.fill == 1)
        w.work += 1 + count + b.size.size // ROUNDS_A_UNIT
        w.late = int(change == ENDING)
        if change == ENDING:
            return False  # that completion is the next event
        if change != SAME:
            deal(b, active, max(0.0, now - boundary) + ULPS * np.spacing(now), change == OPEN)
            starts = b.counts[MOVES]
            move_all(s, context, b.stop[: b.counts[STOPS]], b.start[:starts], b.begins, b.node, b.gpus)
            w.work += count
        w.number += 1
        w.number = next_round(w.zero, w.length, w.number, np.nextafter(now, np.inf))
        if b.counts[AHEAD] == 0 and b.counts[BEST] == 1:
            return False  # no round can better anything until a job comes or goes
    return True


@njit(**INNER)
def _next_instant(s: State, context: RunContext, t: HadarTurns, time: float) -> None:
    # Apply the events of an instant; afterwards the policy hears of the arrivals, and the round may begin.
    e, w, b = s.engine[0], t.facts[0], t.books
    e.tick = np.inf
    if w.wake <= end_of_instant(time):
        e.tick = w.wake
        w.wake = np.inf
    ended = e.segments
    apply_events(s, context, time)
    w.work += 1
    w.phase = ARRIVALS
    for i in range(w.heard, e.next):
        t.active[w.listed] = s.jobs[i].nth
        w.listed += 1
    if e.finished == e.next:
        w.late = 0
        w.phase = BETWEEN
        return
    for i in range(ended, e.segments):
        b.gone[s.segments[i].job] = True  # maybe before its plan is done: its rounds stay sold, prices never fall
    if np.isnan(w.zero):
        w.zero = e.now
    if begins(t, w.number) < e.now and (w.late == 0 or begins(t, w.number + 1) <= e.now):
        w.number = next_round(w.zero, w.length, w.number, e.now)


def _run_turns(place: Any, s: State, context: RunContext, t: HadarTurns, events: int) -> int:
    e, w, b = s.engine[0], t.facts[0], t.books
    pause = e.events + events
    while True:
        if w.phase == BETWEEN:
            e.tick = w.wake
            status = may_go_on(s, pause)
            if status != ASKED:
                return status
            if w.work >= w.limit:
                w.asks = WEIGH
                return ASKED
            time = next_time(s)
            if time == np.inf or e.finished == s.jobs.size:
                return FINISHED_RUN
            _next_instant(s, context, t, time)
        while w.phase == ARRIVALS:
            if w.heard == e.next:
                w.phase = ROUND
                break
            w.asks = buy(t, s.jobs[w.heard].nth)
            if w.asks != NOTHING:
                return ASKED
            w.heard += 1
        if w.phase == ROUND:
            if b.counts[ENTRIES] + b.node.size > b.jobs.held_machine.size:
                w.asks = HELD
                return ASKED
            if _play(s, context, t) and w.asked < w.number:
                w.asked = w.number
                w.wake = begins(t, w.number)
            w.phase = BETWEEN
        if w.wake <= e.now:
            w.wake = np.inf


def _type() -> Any:
    pools = GpuPools(*np.zeros((4, 1), dtype=np.int64))
    notes = {name: np.zeros(1) for name in ("payoff", "utility", "end", "first")}
    notes |= {name: np.zeros((1, 1)) for name in ("alone", "shared")}
    arrived = ArrivedJobs(1, pools, "jct", 1.0)
    return numba.typeof(new_turns(pools, arrived, Reservations(np.ones(1, dtype=np.int64), 1.0), **notes))


turns_loop = ContextLoops(_run_turns, _type())
