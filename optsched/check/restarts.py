"""Segments that resume a stopped job, and the number of their first seconds in which it does no work.

A job may say what it costs to resume it (`optsched.problem.instance.Instance.restart`: seconds, or a checkpoint that is
read). That is the case for every segment that begins after the job's first one, wherever that is, unless it goes on: a
segment on the same GPUs with the same sub-steps ends where it begins. At its first start a job pays nothing, however many
copies start at once. What a policy charges jobs that say nothing is no part of the instance, and not asked for.
"""

from __future__ import annotations

import numpy as np

from optsched.check.context import CheckContext
from optsched.check.tolerance import slack
from optsched.problem.arrays import Bools, Floats, Ints


def restarts(context: CheckContext, *, exactly: bool = False) -> Floats:
    """Return the seconds that every segment spends on resuming its job, f64[S]. Complexity O(K log K).

    Parameters
    ----------
    context
        The schedule.
    exactly
        Allow no tolerance: a segment goes on only if it begins at the very moment at which the other ends.
    """
    document, cost = context.document, np.nan_to_num(context.instance.restart)
    found = np.zeros(document.job.size)
    rows = np.flatnonzero(ran(context) & (context.per_segment(cost) > 0))
    if rows.size:
        first = np.full(context.instance.n, np.inf)
        np.minimum.at(first, document.job[rows], document.start[rows])
        found[rows] = cost[document.job[rows]] * (document.start[rows] > first[document.job[rows]])
        found[continuations(context, rows, exactly=exactly)[1]] = 0.0
    return found


def ran(context: CheckContext) -> Bools:
    """Return which segments are a run of their job, bool[S]; a segment without length and work is none.

    Parameters
    ----------
    context
        The schedule.
    """
    document = context.document
    return np.asarray(context.sound & ((document.end > document.start) | (document.work > 0)))


def continuations(context: CheckContext, rows: Ints, *, exactly: bool = False) -> tuple[Ints, Ints]:
    """Return pairs of a segment and the one that goes on where it ends, on the same GPUs with the same sub-steps.

    Parameters
    ----------
    context
        The schedule.
    rows
        Segments among which pairs are looked for, i64[R].
    exactly
        Allow no tolerance.
    """
    document = context.document
    group = _alike(context, rows)
    order = np.lexsort((document.end[rows], document.start[rows], group))
    rows, group = rows[order], group[order]
    before, after = rows[:-1], rows[1:]
    same = group[:-1] == group[1:]
    before, after = before[same], after[same]
    stop, resume = document.end[before], document.start[after]
    length = np.minimum(stop - document.start[before], document.end[after] - resume)
    goes_on = np.abs(resume - stop) <= (0.0 if exactly else slack(length, stop, resume))
    return before[goes_on], after[goes_on]


def _alike(context: CheckContext, rows: Ints) -> Ints:
    """Return a number for every row, i64[R], equal for rows with the same job, set of GPUs and sub-steps."""
    document, offset = context.document, context.document.offset
    gpus = list(zip(document.node.tolist(), document.index.tolist(), strict=True))
    steps = np.ones(document.job.size, dtype=np.int64) if document.steps is None else document.steps
    numbers: dict[tuple[int, int, frozenset[tuple[int, int]]], int] = {}
    found = np.empty(rows.size, dtype=np.int64)
    for k, s in enumerate(rows.tolist()):
        key = int(document.job[s]), int(steps[s]), frozenset(gpus[offset[s] : offset[s + 1]])
        found[k] = numbers.setdefault(key, len(numbers))
    return found
