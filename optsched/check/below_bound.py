"""No schedule is better than a proven bound of its class: what the referee asks after all other rules, as their cross-check.

The bounds are found and proved by other code than the rules, from the instance alone, so a hole in either shows. Only those
are asked for that cost little beside the reading of a file: every job alone, SRPT on one machine, volume; above `MOST_JOBS`
jobs, every job alone. Measured: at most 2 s for 20,000 jobs, half of them for the proof in Python integers.

**Tolerance**: a value may be below a bound by what the clock rounds: 2e-9 of the weighted flow time, of the largest one, or
(makespan) of the span, or (fair slowdown) of the value, and 8 ulp of the clock for every job that a job may wait for.
Exactly nothing where all times are whole.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.check.context import CheckContext
from optsched.check.tolerance import RELATIVE, ULPS, whole
from optsched.errors import InputError
from optsched.speeds.equal_share import equal_share_times

ALONE = ("critical-job", "release-plus-duration", "fair-alone", "utility-alone", "elastic-alone", "task-path")
TOGETHER = (
    *("volume", "first-come", "srpt", "srpt-due-dates"),
    *("typed-srpt", "typed-makespan", "typed-busy-time", "shared-srpt", "shared-makespan"),
    *("elastic-srpt", "elastic-volume", "task-srpt", "task-volume"),
    *("fair-share", "typed-fair-share", "shared-fair-share", "elastic-fair-share", "task-fair-share"),
    *("typed-first-come", "shared-first-come", "elastic-first-come", "task-first-come"),
)
MOST_JOBS = 20_000  # for which bounds of jobs that are in each other's way are asked for


def below_bound(context: CheckContext, objective: str, schedule_class: str, value: Fraction) -> str | None:
    """Why a schedule of that value cannot be: a proven bound on its class, in words; None where there is no such bound.

    Raises `CertificateError` where a bound that was just found cannot be proved: that is no fault of the schedule.
    """
    # Imported here because judging a schedule in memory needs no bounds.
    from optsched.bounds.best_bound import BOUNDS
    from optsched.problem.objectives import get_objective

    instance, sign = context.instance, -1 if get_objective(objective).gain else 1
    allowed = _allowed(context, objective, value)
    for name in (*ALONE, *(TOGETHER if instance.n <= MOST_JOBS else ())):
        bound = BOUNDS.get(name)
        if schedule_class not in bound.classes or objective not in bound.objectives:
            continue
        try:
            certificate = bound.build(instance, objective, schedule_class)
        except InputError:  # it is not for such instances
            continue
        if certificate is None or sign * (certificate.value - value) <= allowed:
            continue
        certificate.verify(instance)
        what, limit = ("more", "at most") if sign < 0 else ("less", "at least")
        message = f"{objective} is {float(value)!r}, {what} than any schedule of the class {schedule_class} has"
        return f"{message} (expected: {limit} {certificate.exact_float!r}, proved by {name})"
    return None


def _allowed(context: CheckContext, objective: str, value: Fraction) -> Fraction:
    instance, completion, document = context.instance, context.completion, context.document
    numbers = (document.start, document.end, document.work, instance.arrival, instance.work, context.pace)
    if all(bool(whole(x).all()) for x in numbers):
        return Fraction(0)
    stay = np.maximum(completion - instance.arrival, 0.0)
    clock = ULPS * instance.n * float(np.spacing(np.abs(completion).max(initial=0.0)))
    weight = instance.weight if "weighted" in objective or objective == "total_utility" else np.ones(instance.n)
    if objective == "makespan":
        return Fraction(2 * RELATIVE * float(completion.max() - instance.arrival.min()) + clock)
    if objective == "max_flow_time":
        return Fraction(2 * RELATIVE * float(stay.max(initial=0.0)) + clock)
    if objective == "max_fair_slowdown":
        return abs(value) * Fraction(2 * RELATIVE) + Fraction(clock) / min(equal_share_times(instance))
    if objective == "total_utility":  # how much a term w N / stay changes with its stay
        with np.errstate(all="ignore"):
            change = float((weight * context.need / stay**2).sum()) * clock
        return abs(value) * Fraction(2 * RELATIVE) + Fraction(change if np.isfinite(change) else 0.0)
    return Fraction(2 * RELATIVE * float((weight * stay).sum()) + clock * float(weight.sum()))
