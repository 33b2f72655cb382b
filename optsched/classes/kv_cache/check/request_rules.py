"""The referee of requests: the rules of gangs that do not concern speed, and three of its own.

rate      an execution begins and ends at boundaries between rounds, and one with its tokens takes a round for each of them
memory    in every round the running requests hold at most M cells
work      tokens count in one execution, the last one of the request; the others were thrown out, before their last token

Rounds of length 1 are compared exactly. Rounds of affine length are replayed, in ticks: a boundary may be missed by half a
tick and the rounding of the clock.
"""

from __future__ import annotations

import numpy as np

from optsched.check.certain_times import TIMES, CertainTimes
from optsched.check.class_rules import RULES, ClassRules
from optsched.check.context import CheckContext, Violation, Violations
from optsched.check.feasibility import judge_gangs, one_place
from optsched.check.tolerance import EXACT, ULPS, whole
from optsched.classes.kv_cache import is_served
from optsched.classes.kv_cache.problem.requests import CELL, NEW, REQUEST, ROUND, TICK, Requests, requests_of
from optsched.problem.arrays import Floats, Ints

BOUNDARIES = "boundaries between rounds"


def judge_requests(context: CheckContext, preemptive: bool) -> Violations:
    """Apply every rule but ``value``.

    Parameters
    ----------
    context
        The schedule.
    preemptive
        Not used: a request that is stopped loses its tokens.
    """
    found, instance, document = Violations(), context.instance, context.document
    if not is_served(instance):
        message = "executions of jobs that are no requests (expected: jobs with prompts)"
        found.add("instance", np.flatnonzero([instance.n > 0]), lambda _: Violation("instance", message))
        return found
    requests = requests_of(instance)
    with np.errstate(all="ignore"):
        judge_gangs(context, found)
        one_place(context, found)
        rows = np.flatnonzero(context.sound & (document.end > document.start) & (np.abs(document.end) < EXACT))
        job, work = document.job[rows], document.work[rows]
        tokens = requests.output[job]
        rounds = (_affine_rounds if requests.affine else _unit_rounds)(context, requests, rows, found)
        short = context.sound & ~(document.end > document.start)
        last = document.end[rows] >= context.completion[job]
        wrong = (rounds >= 0) & np.where(work != 0, rounds != tokens, rounds >= tokens)
        partly = (work != 0) & ((work != tokens) | ~last)
    tell, legal = context.of_segment, "all tokens in the last execution, 0 in others"
    found.blame(tell, "work", partly, "counts some tokens", legal, rows)
    found.blame(tell, "rate", short, "takes no round", "at least one")
    expected = "a round a token, or fewer rounds and no tokens"
    found.blame(tell, "rate", wrong, lambda k: f"runs for {rounds[k]} rounds", expected, rows)
    return found


def _unit_rounds(context: CheckContext, requests: Requests, rows: Ints, found: Violations) -> Ints:
    """Return the rounds of executions, i64[R] (-1: unknown), and judge the cells at every end: between ends they grow."""
    document = context.document
    start, end = document.start[rows], document.end[rows]
    at = whole(start) & whole(end)
    found.blame(context.of_segment, "rate", ~at, "does not begin and end at whole numbers", BOUNDARIES, rows)
    begun, ended = start[at].astype(np.int64), end[at].astype(np.int64)
    # cells of an execution in the round that ends at t: s + t - start
    base = requests.prompt[document.job[rows[at]]] - begun
    moments = np.unique(ended)
    cells = np.zeros(moments.size, dtype=np.int64)
    for times, sign in ((begun, 1), (ended, -1)):
        order = np.argsort(times, kind="stable")
        before = np.searchsorted(times[order], moments, side="left")
        sums = np.concatenate([[0], np.cumsum(base[order])])
        cells += sign * (sums[before] + moments * before)
    for t, held in zip(moments[cells > requests.cells].tolist(), cells[cells > requests.cells].tolist(), strict=True):
        _too_many(found, requests, held, f"the round that ends at {t}")
    return np.where(at, end - start, -1).astype(np.int64)


def _affine_rounds(context: CheckContext, requests: Requests, rows: Ints, found: Violations) -> Ints:
    """Return the rounds of executions, i64[R] (-1: unknown): play the rounds, with the starts that the schedule states."""
    document = context.document
    start, end = document.start[rows] * TICK, document.end[rows] * TICK
    near = 0.5 + ULPS * TICK * float(np.spacing(np.abs(document.end[rows]).max(initial=0.0)))
    prompt, rounds = requests.prompt[document.job[rows]].tolist(), np.full(rows.size, -1)
    order, running, k, now = np.argsort(start, kind="stable").tolist(), dict[int, int](), 0, 0
    wrong = list[int]()
    while k < len(order) or running:
        if not running:
            now = round(start[order[k]])
        new = 0
        while k < len(order) and start[order[k]] <= now + near:
            if start[order[k]] < now - near:
                wrong.append(order[k])
            running[order[k]] = 0
            new += prompt[order[k]]
            k += 1
        held = sum(prompt[i] + j + 1 for i, j in running.items())
        now += ROUND + REQUEST * len(running) + CELL * held + NEW * new
        if held > requests.cells:
            _too_many(found, requests, held, f"the round that ends at {now / TICK:g} s")
        for i in list(running):
            running[i] += 1
            if end[i] <= now + near:
                rounds[i] = running.pop(i)
                if end[i] < now - near:
                    wrong.append(i)
    missed = np.zeros(rows.size, dtype=np.bool_)
    missed[wrong] = True
    found.blame(context.of_segment, "rate", missed, "does not begin and end with a round", BOUNDARIES, rows)
    return np.where(missed, -1, rounds)


def _too_many(found: Violations, requests: Requests, held: int, where: str) -> None:
    message = f"{held} cells are in use in {where} (expected: at most {requests.cells})"
    found.add("memory", np.zeros(1, dtype=np.int64), lambda _: Violation("memory", message))


class CertainRequestTimes(CertainTimes):
    """Completion times of requests: exact in rounds of length 1."""

    @property
    def _completions(self) -> list[Floats]:  # type: ignore[override]
        exact = not requests_of(self._context.instance).affine
        return [self._context.completion.tolist() if exact else self._blanket()]  # type: ignore[list-item]


RULES.register("kv-cache", ClassRules(judge=judge_requests))
TIMES.register("kv-cache", CertainRequestTimes)
