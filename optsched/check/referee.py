"""The referee: re-reads every schedule and certificate, and shares no code with anything that makes them.

What a schedule must obey, and how exactly, is in `optsched.check.feasibility`; what else a class of schedules has, in
`optsched.check.class_rules`; how a file is read, in `optsched.check.schedule_document`. This module adds the rule **value**
(what a schedule is said to be worth is what it is worth; and of a file, that no lower bound of its class says otherwise)
and passes the verdict. Values are exact, by formulas written anew in `optsched.check.value`.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.check.class_rules import RULES
from optsched.check.context import CheckContext, Violation, Violations
from optsched.check.schedule_document import (
    FORMAT,
    PARQUET_MAGIC,
    claim_of_parquet,
    document_of,
    document_of_json,
    document_of_starts,
    parse_document,
)
from optsched.check.tolerance import EXACT, RELATIVE, ULPS, number, whole
from optsched.check.value import FAIR, TERMS, UTILITY, UTILITY_UNIT, exact_value, known_objective
from optsched.classes import CLASSES, class_names, class_stated
from optsched.errors import InputError
from optsched.problem.atomic_files import read_bytes
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.schedule import Schedule, Scheduled, schedule_in
from optsched.problem.schedule_file import has_starts
from optsched.speeds.equal_share import equal_share_times

__all__ = ["Verdict", "Violation", "check_file", "check_schedule", "schedule_value"]

CERTIFICATE_FORMAT = "optsched-certificate/1"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of `check_file`: ``kind`` is "schedule" or "certificate"; it holds if nothing is violated."""

    kind: str
    violations: tuple[Violation, ...]

    @property
    def holds(self) -> bool:
        """True if every rule is kept."""
        return not self.violations


def check_schedule(
    instance: Source,
    schedule: Schedule | Scheduled,
    *,
    schedule_class: str | None = None,
    preemptive: bool = True,
    objective: str | None = None,
    value: float | Fraction | None = None,
) -> list[Violation]:
    """Return every rule that a schedule breaks, in the order of `RULES`; an empty list if it is feasible.

    Parameters
    ----------
    instance
        The instance of the schedule, or the SOURCE that names it.
    schedule
        The schedule, or a run or a solution that has one.
    schedule_class
        Name of the class of schedules whose rules apply (`optsched.classes`): in ``forking`` a job may run in several
        copies at once, in ``elastic`` on other numbers of GPUs than its gang. None: the class that the schedule states.
        Jobs that share GPUs are in a `SharedSchedule`. Jobs with tasks are judged task by task in a `TaskSchedule` with
        a log, and by necessary conditions in any other.
    preemptive
        Whether a job may be stopped and resumed.
    objective
        Name of the objective of ``value`` (default: the instance's own, else ``total_flow_time``).
    value
        The stated value, in seconds times weights; None: no value is compared.

    Raises
    ------
    InputError
        The objective is unknown, a job has no duration, or the schedule's arrays do not fit together.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.check_schedule("rigid-06-1", osd.simulate("rigid-06-1", "srtf"))
    []
    >>> late = osd.Schedule.from_starts("rigid-06-1", range(0, 600, 100))
    >>> [violation.rule for violation in osd.check_schedule("rigid-06-1", late, value=156.0)]
    ['arrival', 'value']
    """
    instance, schedule = instance_of(instance), schedule_in(schedule)
    name = None if objective is None and value is None else known_objective(instance, objective)
    claimed = value if value is None or isinstance(value, float) else Fraction(value)
    stated = class_stated(instance, {schedule.stated}, preemptive)
    kind = stated if schedule_class is None else CLASSES.get(schedule_class)
    rules = RULES.of(kind.name)
    context = rules.context(schedule, instance)
    found = rules.judge(context, preemptive and kind.preemptive)
    return _violations(context, found, name, claimed)


def check_file(
    path: str | os.PathLike[str], instance: Source, *, preemptive: bool = True, refused: Collection[str] = ()
) -> Verdict:
    """Judge a schedule (JSON or Parquet), a file of tasks (Parquet) or a certificate file.

    What a schedule file states beyond its segments is checked too: ``"objective"`` and ``"value"`` under the rule
    value, ``"preemptive": false`` under preemption. The rules of a larger class of schedules apply only to a file that
    states the class: ``"forking": true``, ``"elastic": true``, ``"sharing": true`` (`optsched.classes`). At the task
    level a schedule is judged by necessary conditions, and a file of tasks in full. A certificate is verified from the
    instance alone. A schedule that keeps all these rules and is still better than a lower bound of its class breaks the rule
    value.

    Parameters
    ----------
    path
        The file.
    instance
        What it is of, or the SOURCE that names it.
    preemptive
        May a job be stopped and resumed?
    refused
        Names of classes whose rules do not apply, whatever the file states.

    Raises
    ------
    InputError
        When the file cannot be read as either: missing, truncated, another format, a field missing or of a wrong type.
    """
    content, instance = read_bytes(path), instance_of(instance)
    if content.startswith(PARQUET_MAGIC):
        context = _context_of_parquet(content, instance, path)
    else:
        raw = parse_document(content, path)
        form = raw.get("format")
        if form == CERTIFICATE_FORMAT:
            return Verdict("certificate", _certificate_violations(raw, path, instance))
        if form != FORMAT and not has_starts(raw):
            legal = f"{FORMAT} or {CERTIFICATE_FORMAT}"
            raise InputError("neither a schedule nor a certificate", file=path, field="format", value=form, legal=legal)
        read = document_of_starts if has_starts(raw) else document_of_json
        context = CheckContext(instance, read(raw, instance, path))
    document = context.document
    preemptive = preemptive and document.preemptive is not False
    stated = document.stated - {CLASSES.get(name).stated for name in refused}
    kind = class_stated(instance, stated, preemptive)
    found = RULES.of(kind.name).judge(context, preemptive)
    try:
        name = known_objective(instance, document.objective)
    except InputError as error:  # the file is readable, but what it states cannot be confirmed
        return Verdict("schedule", (*found.violations(), Violation("value", str(error))))
    violations = _violations(context, found, name, document.value)
    if not violations and instance.n:
        kind = kind if kind.has(instance) else class_stated(instance, stated - {kind.stated}, preemptive)
        message = below_bound(context, name, kind.name, _value(context, name))
        violations += [] if message is None else [Violation("value", message)]
    return Verdict("schedule", tuple(violations))


def _context_of_parquet(content: bytes, instance: Instance, path: str | os.PathLike[str]) -> CheckContext:
    # Some classes have a format of their own, which says what the others cannot.
    for name in class_names():
        context = RULES.of(name).parquet(content, instance, path)
        if context is not None:
            return context
    return CheckContext(instance, claim_of_parquet(content, instance, path))


def schedule_value(instance: Instance, schedule: Schedule, objective: str | None = None) -> Fraction:
    """Return the exact value of the schedule's completion times; floats are taken as exact.

    A job completes at the end of its last segment. A schedule that the referee accepts within its tolerance may have a
    value slightly below what is possible; `optsched.check.certain_times` computes what certainly is possible.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    schedule
        The schedule.
    objective
        Name of the objective (default: the instance's own).

    Raises
    ------
    InputError
        A job never runs, or a time is not finite.
    """
    context = CheckContext(instance, document_of(schedule, instance))
    name = known_objective(instance, objective)
    if not context.completed or (name == UTILITY and bool((context.completion <= instance.arrival).any())):
        raise InputError("the schedule has no value: a job never runs, ends before it could, or a time is not finite")
    return _value(context, name)


def _certificate_violations(
    raw: dict[str, Any], path: str | os.PathLike[str], instance: Instance
) -> tuple[Violation, ...]:
    # Imported here because judging a schedule needs no bounds.
    from optsched.bounds.certificate import Certificate, CertificateError

    try:
        Certificate.of_document(raw, path).verify(instance)
    except CertificateError as error:
        return (Violation(error.rule, error.message),)
    return ()


def _violations(
    context: CheckContext, found: Violations, objective: str | None = None, stated: float | Fraction | None = None
) -> list[Violation]:
    # Without completions, or with one at or before the arrival, there is no value to compare with: other rules say why.
    early = objective == UTILITY and bool((context.completion <= context.instance.arrival).any())
    if objective is not None and stated is not None and context.completed and not early:
        total = _value(context, objective)
        wrong = isinstance(stated, float) and not np.isfinite(stated)
        wrong = wrong or abs(Fraction(stated) - total) > _allowance(context, objective, total, stated)
        message = f"{objective} is stated as {_digits(stated)} (expected: {_digits(total)}, the value of the schedule)"
        found.add("value", np.flatnonzero([wrong]), lambda _: Violation("value", message))
    return found.violations()


def _allowance(context: CheckContext, objective: str, total: Fraction, stated: float | Fraction) -> Fraction:
    """Return the tolerance of a stated value: 0 if all numbers are whole, unless a float cannot hold the total."""
    instance = context.instance
    due = instance.due[np.isfinite(instance.due)]
    numbers = (context.completion, instance.arrival, instance.weight, due)
    integral = all(bool(whole(x).all()) for x in numbers)
    exact = integral and not isinstance(stated, float)
    if objective == UTILITY:  # quotients: no float holds them, and a length of stay carries the rounding of the clock
        return Fraction(instance.n, UTILITY_UNIT) if exact else abs(total) * Fraction(RELATIVE) * 4
    if exact or (objective != FAIR and integral and abs(total) < EXACT):
        return Fraction(0)
    if objective == FAIR:  # a quotient of a difference of times
        clock = Fraction(ULPS * float(np.spacing(np.abs(context.completion).max(initial=0.0))))
        return abs(total) * Fraction(RELATIVE) + clock / min(equal_share_times(instance), default=1)
    # A flow time is a small difference of large times: each carries the rounding of its clock, and so does a sum of them.
    # Nothing else may grow with the epoch.
    times, flow = "total_completion_time", "total_flow_time"
    if TERMS[objective][1]:
        times, flow = "total_weighted_completion_time", "total_weighted_flow_time"
    return abs(_value(context, flow)) * Fraction(RELATIVE) + abs(_value(context, times)) * ULPS * Fraction(1, 2**52)


def _value(context: CheckContext, objective: str) -> Fraction:
    return exact_value(context.instance, context.completion.tolist(), objective)


def _digits(x: float | Fraction) -> str:
    if isinstance(x, Fraction) and (x.denominator == 1 or abs(x) > EXACT):
        return str(x)
    return number(float(x))


# No schedule is better than a proven bound of its class: what the referee asks after all other rules, as their
# cross-check.
#
# The bounds are found and proved by other code than the rules, from the instance alone, so a hole in either shows. Only
# those are asked for that cost little beside the reading of a file: every job alone, SRPT on one machine, volume; above
# `MOST_JOBS` jobs, every job alone. Measured: at most 2 s for 20,000 jobs, half of them for the proof in Python integers.
#
# **Tolerance**: a value may be below a bound by what the clock rounds: 2e-9 of the weighted flow time, of the largest one,
# or (makespan) of the span, or (fair slowdown) of the value, and 8 ulp of the clock for every job that a job may wait for.
# Exactly nothing where all times are whole.

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
    """Return the proven bound that a schedule of a value would contradict, in words; None if there is none.

    Parameters
    ----------
    context
        The schedule.
    objective
        Name of the objective.
    schedule_class
        Name of the class of schedules.
    value
        Value of the schedule.

    Raises
    ------
    CertificateError
        A bound that was just found cannot be proved: this is no fault of the schedule.
    """
    # Imported here because judging a schedule in memory needs no bounds.
    from optsched.bounds.best_bound import BOUNDS
    from optsched.problem.objectives import get_objective

    instance, sign = context.instance, -1 if get_objective(objective).gain else 1
    allowed = _allowed(context, objective, value)
    for name in (*ALONE, *(TOGETHER if instance.n <= MOST_JOBS else ())):
        bound = BOUNDS.get(name)
        larger = CLASSES.get(schedule_class).bounded_by(bound.classes)
        if larger is None or objective not in bound.objectives:
            continue
        try:
            certificate = bound.build(instance, objective, larger)
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
