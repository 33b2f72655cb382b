"""The rules rate and work: no job is faster than the speed model allows, and every job gets its work.

A unit of work takes ``pace`` seconds on the GPUs of a segment, whatever the speed model (`CheckContext.pace`): 1 for a
duration, alpha of a placement for a stage profile, 1 / throughput for a table, T for a scaling profile. Where there is
no speed - a throughput of zero or none (pace inf), or GPUs that are no placement of the job (nan) - no work is legal,
and no stay. Where jobs contend for the network a stay is worth less next to others (`optsched.check.interfaces`). Nobody
works while a job is resumed: where it says what that costs, so many of the first seconds are worth nothing
(`optsched.check.restarts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from optsched.check.context import CheckContext, Violation, Violations
from optsched.check.interfaces import slow_on_interfaces, worth_beside
from optsched.check.restarts import restarts
from optsched.check.tolerance import (
    RELATIVE,
    ULPS,
    all_whole,
    job_tolerance,
    largest_of_jobs,
    number,
    of_jobs,
    overspent,
    slack,
    whole,
)
from optsched.problem.arrays import Floats, Ints


def rate(context: CheckContext, found: Violations, resized: Mapping[int, float] | None = None) -> None:
    """Apply the rule rate to segments that have their GPUs alone.

    Parameters
    ----------
    context
        The schedule.
    found
        Violations so far.
    resized
        Shares of communication of the segments whose gang is not that of their job; None if all gangs are.
    """
    backwards(context, found)
    paid = restarts(context)
    worth = worth_alone(context, paid, resized)
    within_worth(context, found, context.pace, worth, lambda s: _pace_in_words(context, s, worth[s], paid[s]))


def worth_alone(context: CheckContext, paid: Floats, resized: Mapping[int, float] | None = None) -> Floats:
    """Return the seconds at full speed that every segment is worth which has its GPUs alone, f64[S].

    Parameters
    ----------
    context
        The schedule.
    paid
        Seconds that every segment spends on resuming its job, f64[S].
    resized
        As in `rate`.
    """
    document, worth = context.document, seconds_at_work(context, paid)
    for s, slow in slow_on_interfaces(context, context.pace, resized=resized).items():
        worth[s] = worth_beside(float(document.start[s] + paid[s]), float(document.end[s]), slow)
    return worth


def seconds_at_work(context: CheckContext, paid: Floats) -> Floats:
    """Return the length of every segment without the seconds for resuming its job, f64[S].

    Parameters
    ----------
    context
        The schedule.
    paid
        Seconds that every segment spends on resuming its job, f64[S].
    """
    length = context.document.end - context.document.start
    # start + paid as whoever makes schedules adds them
    return np.where(paid > 0, np.maximum(context.document.end - (context.document.start + paid), 0.0), length)


def backwards(context: CheckContext, found: Violations) -> None:
    """Report segments that end before they start.

    Parameters
    ----------
    context
        The schedule.
    found
        Violations so far.
    """
    wrong = context.finite & ~(context.document.end >= context.document.start)
    found.blame(context.of_segment, "rate", wrong, "ends before it starts", "an end after the start")


def within_worth(
    context: CheckContext, found: Violations, pace: Floats, worth: Floats, legal: Callable[[int], str]
) -> None:
    """Check that no segment does more work than it is worth, nor all segments of a job together.

    Parameters
    ----------
    context
        The schedule.
    found
        Violations so far.
    pace
        Seconds of a unit of work of every segment, f64[S].
    worth
        Seconds at that pace that every segment is worth, f64[S].
    legal
        Function from a segment to what is legal for it, in words.
    """
    document, n = context.document, context.instance.n
    judged = context.finite & (document.end >= document.start)
    rows = np.flatnonzero(judged & (context.placed | ~np.isnan(pace)))  # no gang of the job: other rules say so
    start, end, worth, pace = document.start[rows], document.end[rows], worth[rows], pace[rows]
    job = np.where(document.job[rows] < 0, n, document.job[rows])  # n: no job of the instance
    units = document.work[rows]
    work, room = units * pace, np.where(pace > 0, worth / pace, units)
    if ((units >= 0) & (work <= worth) & (work < np.inf) & (units <= room)).all():
        return
    ulp = np.spacing(np.maximum(np.abs(start), np.abs(end)))
    each = np.where(
        end > start,
        slack(worth, start, end, work, np.nan_to_num(worth, posinf=0.0)),
        _at_once(job, start, end, work, ulp),
    )
    runs = of_jobs(job, (end > start).astype(np.float64), n + 1)
    seconds, tick = of_jobs(job, np.maximum(work, 0.0), n + 1), largest_of_jobs(job, ulp, n + 1)
    allowed = RELATIVE * seconds + (ULPS + runs) * tick  # both ends of a segment are rounded to the clock
    alone, over = overspent(job, np.maximum(work - worth, 0.0), each, allowed)
    # With the work of a job moved to where it is not overdrawn: all of it beside all that its segments are worth.
    mean = seconds / of_jobs(job, np.maximum(units, 0.0), n + 1)
    missing = of_jobs(job, np.where(np.isfinite(room), units - room, 0.0), n + 1) * mean
    short = missing > job_tolerance(seconds, tick, runs)
    short[over], short[job[alone]], short[n] = True, False, False
    found.blame(context.of_segment, "rate", rows[alone], lambda s: _does(context, s), legal)
    found.add("rate", np.flatnonzero(short), lambda j: _together(context, j, float(missing[j])))


def _at_once(job: Ints, start: Floats, end: Floats, work: Floats, ulp: Floats) -> Floats:
    """Return the seconds of work that segments of no length may do.

    One such segment of a job may do as much as the clock cannot tell, the others none.
    """
    busy = (end == start) & (work > 0)
    once = np.bincount(job, weights=busy)[job] == 1 if job.size else busy
    return np.where(once & ~all_whole(start, work), ulp, 0.0)


def _does(context: CheckContext, s: int) -> str:
    return f"does {number(context.document.work[s])} {context.unit(int(context.document.job[s]))} of work"


def _together(context: CheckContext, j: int, missing: float) -> Violation:
    job = context.instance.ids[j]
    message = f"job {job!r} does more work than all its segments are worth: {number(missing)} s"
    return Violation("rate", f"{message} (expected: one tolerance for rounding, however many segments)", job)


def _pace_in_words(context: CheckContext, s: int, worth: float, paid: float) -> str:
    pace = context.pace[s]
    if not np.isfinite(pace):
        return "none: the job has no speed on these GPUs"
    length = context.document.end[s] - context.document.start[s]
    unit = context.unit(int(context.document.job[s]))
    slowed = worth != (max(length - paid, 0.0) if paid else length)
    beside = f", beside others on its interfaces worth {number(worth)} s," if slowed else ""
    return f"at most its {number(length)} s{less_paid(paid)}{beside} at " + (
        "rate 1" if unit == "s" else f"{number(pace)} s an iteration"
    )


def less_paid(paid: float) -> str:
    """Return the deduction for resuming a job, in words; an empty text if nothing is paid.

    Parameters
    ----------
    paid
        Seconds that resuming costs.
    """
    return f" less {number(paid)} s, which resuming the job costs," if paid else ""


def judge_work(context: CheckContext, found: Violations) -> None:
    """Apply the rule work: the work of a job adds up to what it asks for, and none of it is negative.

    Parameters
    ----------
    context
        The schedule.
    found
        Violations so far.
    """
    document, n, rule = context.document, context.instance.n, "work"
    negative = context.finite & ~(document.work >= 0)
    found.blame(context.of_segment, rule, negative, lambda s: _does(context, s), "0 or more")
    rows = np.flatnonzero(context.sound)
    job, work = document.job[rows], document.work[rows]
    total = of_jobs(job, work, n)
    pace = np.where((context.pace[rows] > 0) & np.isfinite(context.pace[rows]), context.pace[rows], 1.0)
    clock = largest_of_jobs(job, np.spacing(np.abs(document.end[rows])) / pace, n)
    allowed = RELATIVE * context.need + ULPS * clock
    broken = np.bincount(job[~whole(work)], minlength=n) > 0
    allowed[whole(context.need) & whole(total) & ~broken] = 0.0
    judged = context.runs & (np.bincount(document.job[context.known & ~context.finite], minlength=n) == 0)
    found.add(
        rule,
        np.flatnonzero(judged & ~(np.abs(total - context.need) <= allowed)),
        lambda j: context.of_job(rule, j, f"receives {number(total[j])} {context.unit(j)} of work"),
    )
