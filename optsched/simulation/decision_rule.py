"""Decisions of a policy for whole jobs in compiled form: an accelerator of its ``decide(view)``, for the same schedule.

A policy whose plain form is asked some 100,000 times a second may also bring a `DecisionRule`. Its ``decide(place, s, site,
m)`` decides with what the engine offers to compiled code (`offer`, `begin`, everything in `optsched.simulation.executions`)
and returns when it wants to be asked next. It is compiled, and the loop around it, for the type of its memory and for jobs
that have the network alone or contend for it, each when it is first needed (`compiled_decisions`). It is asked at the very
instants at which the plain form would be, wakes that have become pointless included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit, record, types
from optsched.compiled.heap import INNER, KERNEL, pop, push
from optsched.problem.arrays import Floats
from optsched.simulation.executions import start
from optsched.simulation.instant import end_of_instant
from optsched.simulation.kernel import apply_events, next_time, standing
from optsched.simulation.ordered import PLACE_TYPE, SITE_TYPES, STATE_TYPE
from optsched.simulation.records import ASKED, FINISHED_RUN, NEEDS_ROOM
from optsched.simulation.state import COUNT, FREE, POOL, SIZE, Site, State
from optsched.speeds.speed_tables import is_timed, pace

NEWS = record(
    arrived="int",  # `jobs.nth` from here to `world.next`: the jobs that have arrived since it was last asked
    ended="int",  # `segments` from here to `world.segments`: those that have ended; of who never stops a job, completions
    wakes="int",  # times in `Question.wakes`
    placed="int",  # entries of the last offer
)


class Question(NamedTuple):
    """What has happened since a rule was last asked, and when it wants to be asked."""

    news: Any  # NEWS[1]
    wakes: Floats  # a heap, grown between calls
    random: npt.NDArray[np.uint64]  # u64[1]: that of the placement, once the job that was offered GPUs starts there


# By kind of site: the loop, and the decisions that it asks for.
Compiled = Mapping[int, tuple[Callable[..., int], Callable[..., float]]]


@dataclass(frozen=True)
class DecisionRule:
    """A policy ``compiled``: by kind of site (run, decide), ``run(decide, place, state, site, memory, events) -> status``.

    ``memory``: a named tuple of arrays, the policy's own state, with a ``question``. ``notes(memory)``: what `Policy.notes`
    would return after the run.
    """

    compiled: Compiled
    memory: Any
    notes: Callable[[Any], dict[str, Floats]]

    def grown(self) -> DecisionRule:
        """The same with twice the room for wakes."""
        question = self.memory.question
        wakes = np.concatenate([question.wakes, np.zeros_like(question.wakes)])
        return replace(self, memory=self.memory._replace(question=question._replace(wakes=wakes)))


def new_question() -> Question:
    """Nothing has happened."""
    return Question(np.zeros(1, dtype=NEWS), np.zeros(64), np.zeros(1, dtype=np.uint64))


def compiled_decisions(memory: Any, *decides: Callable[..., float]) -> list[Compiled]:
    """Each of ``decides`` for memory of this type, and the loop around them all, by kind of site.

    Kinds of site: `optsched.simulation.ordered`.
    """
    found: list[dict[int, Any]] = [{} for _ in decides]
    for kind, site in enumerate(SITE_TYPES):
        signature = types.float64(PLACE_TYPE, STATE_TYPE, site, memory)
        # decide is given as a value: what the loop calls by name would be compiled once more with it
        run = njit(types.int64(types.FunctionType(signature), *signature.args, types.int64), **KERNEL)(_run)
        for rule, decide in zip(found, decides, strict=True):
            rule[kind] = (run, njit(signature, **KERNEL)(decide))
    return list(found)


def _run(decide: Any, place: Any, s: State, site: Site, m: Any, events: int) -> int:
    pause = s.world[0].events + events
    while True:
        status = _next_question(s, site, m.question, pause)
        if status != ASKED:
            return status
        _sleep(s, m.question, decide(place, s, site, m))


@njit(**INNER)
def _next_question(s: State, site: Site, question: Question, pause: int) -> int:
    # Apply the events of the next instant: ASKED; or why there is none.
    w, news = s.world[0], question.news[0]
    status = standing(s, pause)
    if status != ASKED:
        return status
    if news.wakes == question.wakes.size:
        return NEEDS_ROOM
    t = next_time(s)
    if t == np.inf or w.finished == s.jobs.size:
        return FINISHED_RUN
    w.tick = np.inf
    while news.wakes > 0 and question.wakes[0] <= end_of_instant(t):
        w.tick = question.wakes[0]
        pop(question.wakes, 0, news.wakes)
        news.wakes -= 1
    news.arrived, news.ended = w.next, w.segments
    apply_events(s, site, t)
    return ASKED


@njit(**INNER)
def _sleep(s: State, question: Question, t: float) -> None:
    # All is decided: ask again at t, if it is later than now and finite, even if nothing happens until then.
    w, news = s.world[0], question.news[0]
    if w.now < t < np.inf:
        news.wakes = push(question.wakes, 0, news.wakes, t)
    while news.wakes > 0 and question.wakes[0] <= w.now:
        pop(question.wakes, 0, news.wakes)
        news.wakes -= 1
    w.tick = question.wakes[0] if news.wakes > 0 else np.inf


@njit(**KERNEL)
def offer(place: Any, s: State, site: Site, question: Question, j: int, row: int) -> float:
    """Seconds that a unit of work of ``j`` takes on the GPUs that the placement gives it of ``pools[row]``; inf: no room.

    `begin` may follow. A question alone does not change what a random placement does next.
    """
    job, before = s.jobs[j], site.random[0]
    entries = 0
    if row != FREE or job.gpus <= s.world[0].free:
        eligible = site.eligible[job.kind]
        free, size = s.pools[row], s.pools[SIZE]
        entries = place(j, job.gpus, free, size, eligible, site.random, site.tables, s.out[POOL], s.out[COUNT])
    question.news[0].placed = entries
    question.random[0] = site.random[0]
    site.random[0] = before
    if entries == 0:
        return np.inf
    if is_timed(site.tables, j):
        return 1.0
    return float(pace(site.tables, j, job.gpus, s.out[POOL], s.out[COUNT]))


@njit(**KERNEL)
def begin(s: State, site: Site, question: Question, j: int) -> None:
    """Start the waiting job ``j`` on the GPUs that it was just offered."""
    site.random[0] = question.random[0]
    start(s, site, j, question.news[0].placed, 0)
