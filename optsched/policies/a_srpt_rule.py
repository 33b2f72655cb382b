"""`optsched.policies.a_srpt`, compiled: the same decisions at the same times, step by step as there.

Two rules with memory of one type: the strict queue knows nothing of backfilling, an eighth of all that a first run would
compile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from optsched.compiled import njit, record
from optsched.compiled.heap import INNER, KERNEL
from optsched.policies import compiled_shadow_queue as shadow
from optsched.policies import compiled_virtual_machine as machine
from optsched.policies.usage_profile import proceed
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.decision_rule import (
    DecisionRule,
    Question,
    begin,
    compiled_decisions,
    new_question,
    offer,
)
from optsched.simulation.policy import KnownJobs
from optsched.simulation.records import WAITING
from optsched.simulation.state import FREE, SIZE, Site, State

VIRTUAL = record(
    predicted="real",  # n^_j
    fastest="real",  # alpha_min
    slowest="real",  # alpha_max
    length="real",  # p_j
    eligible="real",  # B_j
    patience="real",  # seconds of delay left
)
DISPATCHER = record(
    beta="real",
    tau="real",
    heavy_threshold="real",
    eps="real",
    nominal="int",  # which pace makes p_j: NOMINAL
    total="int",  # GPUs of the cluster
    safe="int",  # nobody loses by backfilling
    joined="int",  # jobs in the queue, those that have started too
    head="int",  # place in the queue of the first job that waits
    reserved="int",  # of the first whose reservation is to come
    waits="int",  # the job that waits for a better placement, -1
    until="real",
)
NOMINAL = {"min": 0, "max": 1, "heavy-edge": 2}


class Memory(NamedTuple):
    """n jobs."""

    question: Question
    dispatcher: Any  # DISPATCHER[1]
    jobs: Any  # VIRTUAL[n]
    queue: Ints  # i64[n]: jobs in the order in which they joined, those that have started too
    machine: machine.Service
    shadow: shadow.Shadow  # of no job where nobody overtakes


def _new_memory(gpus: Ints, kind: Ints, total: int, backfill: str) -> Memory:
    n, behind = gpus.size, 0 if backfill == "none" else gpus.size
    dispatcher, jobs = np.zeros(1, dtype=DISPATCHER), np.zeros(n, dtype=VIRTUAL)
    dispatcher["waits"] = -1
    jobs["length"] = jobs["eligible"] = np.nan
    queue = shadow.new_shadow(gpus[:behind], kind[:behind], total, safe=backfill == "shadow")
    return Memory(new_question(), dispatcher, jobs, np.zeros(n, dtype=np.int64), machine.new_machine(n), queue)


_ONE = np.ones(1, dtype=np.int64)
MEMORY_TYPE = numba.typeof(_new_memory(_ONE, _ONE, 1, "shadow"))


def a_srpt_rule(policy: Any, jobs: KnownJobs) -> DecisionRule:
    """The rule of an `ASrpt` for jobs with predictions."""
    m = _new_memory(jobs.gpus, jobs.kind, jobs.cluster_gpus, policy.backfill)
    d = m.dispatcher[0]
    d.beta, d.tau, d.heavy_threshold, d.eps = policy.beta, policy.tau, policy.heavy_threshold, policy.eps
    d.nominal = NOMINAL[policy.virtual_alpha]
    d.total, d.safe = jobs.cluster_gpus, policy.backfill == "shadow"
    m.jobs["predicted"] = jobs.predicted
    m.jobs["fastest"], m.jobs["slowest"] = jobs.pace_range
    return DecisionRule(_STRICT if policy.backfill == "none" else _BACKFILLING, m, _notes)


def _notes(memory: Memory) -> dict[str, Floats]:
    return {"virtual_length": memory.jobs["length"].copy(), "eligible": memory.jobs["eligible"].copy()}


@njit(**INNER)
def _virtual_length(place: Any, s: State, site: Site, m: Memory, j: int) -> float:
    job, nominal = m.jobs[j], 0.0
    if m.dispatcher[0].nominal == 2:
        nominal = offer(place, s, site, m.question, j, SIZE)
    else:
        nominal = job.slowest if m.dispatcher[0].nominal == 1 else job.fastest
    return float(s.jobs[j].gpus * job.predicted * nominal / m.dispatcher[0].total)


@njit(**INNER)
def _release_arrived(place: Any, s: State, site: Site, m: Memory) -> None:
    w, d = s.world[0], m.dispatcher[0]
    for i in range(m.question.news[0].arrived, w.next):
        j = s.jobs[i].nth
        m.jobs[j].length = _virtual_length(place, s, site, m, j)
        machine.release(m.machine, j, w.now, m.jobs[j].length, d.beta)


@njit(**KERNEL)
def _next_to_join(s: State, m: Memory) -> int:
    # The virtual machine is done with it: the next job that joins the queue now, -1: none.
    now, d = s.world[0].now, m.dispatcher[0]
    j = machine.next_point(m.machine, now)
    if j >= 0:
        job = m.jobs[j]
        heavy = job.slowest >= d.heavy_threshold * job.fastest and job.slowest > job.fastest
        job.eligible = now
        job.patience = d.tau * job.length if heavy else 0.0
        m.queue[d.joined] = j
        d.joined += 1
    return int(j)


@njit(**INNER)
def _head(s: State, m: Memory) -> int:
    d = m.dispatcher[0]
    while d.head < d.joined and s.jobs[m.queue[d.head]].status != WAITING:
        d.head += 1
    return int(m.queue[d.head]) if d.head < d.joined else -1


@njit(**INNER)
def _delays(s: State, m: Memory, j: int, pace: float) -> bool:
    # Does the head wait for a better placement than that of this pace, while its patience lasts?
    d, now, job = m.dispatcher[0], s.world[0].now, m.jobs[j]
    # In an idle cluster there is nothing better to wait for (a gang may be larger than any node).
    if pace <= (1 + d.eps) * job.fastest or s.world[0].free == d.total:
        return False
    if d.waits < 0:
        if job.patience <= 0:
            return False
        d.waits, d.until = j, now + job.patience
    return bool(now < d.until)


@njit(**INNER)
def _pause(s: State, m: Memory) -> None:
    # The clock of the delay runs only while there is room.
    d = m.dispatcher[0]
    if d.waits >= 0:
        m.jobs[d.waits].patience = max(0.0, d.until - s.world[0].now)
        d.waits = -1


@njit(**INNER)
def _start(s: State, site: Site, m: Memory, j: int) -> None:
    if m.dispatcher[0].waits == j:
        m.dispatcher[0].waits = -1
    begin(s, site, m.question, j)


@njit(**INNER)
def _next_wake(s: State, m: Memory) -> float:
    now, d, first = s.world[0].now, m.dispatcher[0], np.inf
    t = machine.next_event(m.machine)
    if t > now:
        first = t
    if d.waits >= 0 and d.until > now:
        first = min(first, d.until)
    return float(first)


def _decide_strictly(place: Any, s: State, site: Site, m: Memory) -> float:
    # Advance the virtual machine, queue what it is done with, start from the head; when to be asked again.
    while _next_to_join(s, m) >= 0:
        pass
    _release_arrived(place, s, site, m)
    # Again, for jobs so short that the clock does not see them: no later event would come.
    while _next_to_join(s, m) >= 0:
        pass
    while True:
        j = _head(s, m)
        if j < 0:
            break
        pace = offer(place, s, site, m.question, j, FREE)
        if m.question.news[0].placed == 0:
            _pause(s, m)
            break
        if _delays(s, m, j, pace):
            break
        _start(s, site, m, j)
    return _next_wake(s, m)


@njit(**KERNEL)
def _join_those_due(s: State, m: Memory) -> None:
    while True:
        j = _next_to_join(s, m)
        if j < 0:
            return
        shadow.join(m.shadow, j, s.world[0].now, s.jobs[j].left * m.jobs[j].slowest, m.jobs[j].patience)


@njit(**INNER)
def _starts(place: Any, s: State, site: Site, m: Memory, j: int) -> bool:
    # Does the head start now? If not, it waits for GPUs, or for a better placement while its patience lasts.
    now, safe = s.world[0].now, m.dispatcher[0].safe != 0
    pace = offer(place, s, site, m.question, j, FREE)
    if m.question.news[0].placed == 0:
        _pause(s, m)
        return False
    if safe and now >= m.shadow.jobs[j].start:
        return True
    if _delays(s, m, j, pace):
        return False
    return bool(not safe or shadow.may_start(m.shadow, j, now))


@njit(**KERNEL)
def _leave(s: State, site: Site, m: Memory, j: int) -> None:
    shadow.leave(m.shadow, j, s.world[0].now)
    _start(s, site, m, j)


@njit(**INNER)
def _overtake(place: Any, s: State, site: Site, m: Memory) -> None:
    # Jobs behind the head, in the order of the queue.
    head, w = _head(s, m), s.world[0]
    if head < 0:
        return
    behind = m.shadow.jobs[head].joined
    for k in range(m.shadow.kinds.size):
        m.shadow.kinds[k].full = 0
    while True:
        j = shadow.first_to_start(m.shadow, behind, w.now, w.free)
        if j < 0:
            return
        offer(place, s, site, m.question, j, FREE)
        if m.question.news[0].placed > 0:
            behind = m.shadow.jobs[j].joined
            _leave(s, site, m, j)
        else:
            m.shadow.kinds[m.shadow.jobs[j].kind].full = 1


@njit(**INNER)
def _next_reservation(s: State, m: Memory) -> float:
    # The first F_j to come of a job that waits; F never falls along the queue.
    d, now = m.dispatcher[0], s.world[0].now
    while d.reserved < d.joined:
        j = m.queue[d.reserved]
        if s.jobs[j].status == WAITING and m.shadow.jobs[j].start > now:
            return float(m.shadow.jobs[j].start)
        d.reserved += 1
    return np.inf


def _decide_backfilling(place: Any, s: State, site: Site, m: Memory) -> float:
    # As strictly; then those behind the head start where they may.
    w, d, news = s.world[0], m.dispatcher[0], m.question.news[0]
    if d.safe != 0:
        proceed(m.shadow.usage, w.now)
        for i in range(news.ended, w.segments):
            shadow.end(m.shadow, s.segments[i].job)
    _join_those_due(s, m)
    _release_arrived(place, s, site, m)
    _join_those_due(s, m)
    while True:
        j = _head(s, m)
        if j < 0 or not _starts(place, s, site, m, j):
            break
        _leave(s, site, m, j)
    _overtake(place, s, site, m)
    if d.waits >= 0:
        offer(place, s, site, m.question, d.waits, FREE)
        if m.question.news[0].placed == 0:
            _pause(s, m)  # they took the room in which the head waited for a better one
    first = _next_wake(s, m)
    return float(min(first, _next_reservation(s, m))) if d.safe != 0 else first


_STRICT, _BACKFILLING = compiled_decisions(MEMORY_TYPE, _decide_strictly, _decide_backfilling)
