"""Many stops and starts in one compiled call: those that a round of a policy asks for, and stops that it has planned."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit
from optsched.simulation.kernel import may_go_on, next_time, start, start_part, stop
from optsched.simulation.next_event import end_of_instant
from optsched.simulation.records import ASKED, RUNNING, WAITING
from optsched.simulation.run import CONSERVED
from optsched.simulation.state import COUNT, FREE, POOL, RunContext, State
from optsched.speeds.speed_tables import is_timed, pace

UNLIMITED = np.iinfo(np.int64).max  # events


@njit(**KERNEL)
def apply_moves(
    s: State, context: RunContext, jobs: Any, first: Any, node: Any, count: Any, work: Any, copies: int
) -> int:
    """Move i stops ``jobs[i]`` where it names no GPUs, else starts it on ``count[k]`` GPUs of ``node[k]``.

    Its entries are k = first[i] .. first[i + 1] - 1. Where ``work[i]`` is not nan it is a copy, which does so many units,
    one of at most ``copies`` of its job. In order, until one is not possible. Returns how many were done; nothing of the
    next one is done.
    """
    for i in range(jobs.size):
        j = jobs[i]
        if j < 0 or j >= s.jobs.size:
            return i
        if first[i] == first[i + 1]:
            if s.jobs[j].status != RUNNING:
                return i
            stop(s, context, j)
            continue
        if s.jobs[j].status != WAITING and (s.jobs[j].status != RUNNING or np.isnan(work[i])):
            return i
        entries = _named(s, context, j, node[first[i] : first[i + 1]], count[first[i] : first[i + 1]])
        if entries == 0:
            return i
        if np.isnan(work[i]):
            start(s, context, j, entries, np.int64(0))
        elif _may_copy(s, context, j, entries, work[i], copies):
            start_part(s, context, j, entries, work[i], 0.0)
        else:
            return i
    return int(jobs.size)


@njit(**NESTED)
def _may_copy(s: State, context: RunContext, j: int, entries: int, work: float, copies: int) -> bool:
    # May ``j`` have a copy on the entries in ``out``: on nodes of its own, of work that no other copy does?
    job, planned, x = s.jobs[j], work, s.jobs[j].execution
    if not (work > 0.0 and work < np.inf) or (x >= 0 and job.copies >= copies):
        return False
    if not is_timed(context.tables, j) and not np.isfinite(
        pace(context.tables, j, job.gpus, s.out[POOL], s.out[COUNT])
    ):
        return False
    while x >= 0:
        run = s.executions[x]
        for i in range(run.entries):
            for k in range(entries):
                if s.parts[x * s.engine[0].width + i].pool == s.out[POOL, k]:
                    return False
        planned += run.target
        x = run.other
    return planned <= job.left * (1.0 + CONSERVED)


@njit(**NESTED)
def _named(s: State, context: RunContext, j: int, node: Any, count: Any) -> int:
    # The entries of these GPUs in ``out``; 0 where j may not start there.
    job, total = s.jobs[j], 0
    if node.size > s.engine[0].width:
        return 0
    for k in range(node.size):
        p, given = node[k], count[k]
        if p < 0 or p >= s.pools.shape[1] or given < 1 or not context.eligible[job.kind, p]:
            return 0
        total += given
        for other in range(k):
            if node[other] == p:
                given += count[other]
        if given > s.pools[FREE, p]:
            return 0
        s.out[POOL, k], s.out[COUNT, k] = p, count[k]
    return int(node.size) if total == job.gpus else 0


@njit(**KERNEL)
def stop_as_planned(s: State, context: RunContext, until: Any, jobs: Any, at: int) -> int:
    """Stop the running ``jobs[i]`` at ``until[i]`` (ascending) from i = ``at`` on, as long as nothing else comes before.

    Returns the first i that is left: another event falls into its instant or comes before it, or the log is full.
    """
    w = s.engine[0]
    while at < jobs.size and may_go_on(s, UNLIMITED) == ASKED:
        t = until[at]
        if next_time(s) <= end_of_instant(t):
            return at
        w.now = w.began = t
        w.stop_record = 0
        w.events += 1
        while at < jobs.size and until[at] == t:
            stop(s, context, jobs[at])
            at += 1
    return at
