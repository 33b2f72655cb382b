"""The referee: re-reads every schedule and certificate, and shares no code with anything that makes them.

What a schedule must obey, and how exactly, is in `optsched.check.feasibility`, for two jobs on a GPU in
`optsched.check.sharing`, and for jobs with tasks in `optsched.check.tasks`; how a file is read, in
`optsched.check.schedule_document`. This module adds the rule **value** (what a schedule is said to be worth is what it is
worth; and of a file, that no proven bound of its class says otherwise) and passes the verdict. Values are exact, by formulas
written anew in `optsched.check.value`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.check.context import CheckContext, Violation, Violations
from optsched.check.elastic import judge_elastic
from optsched.check.feasibility import judge, judge_exclusive
from optsched.check.residency import judge_residency
from optsched.check.schedule_document import (
    FORMAT,
    PARQUET_MAGIC,
    TaskDocument,
    claim_of_parquet,
    document_of,
    document_of_json,
    is_task_claim,
    parse_document,
    task_claim_of_parquet,
    task_document_of,
)
from optsched.check.sharing import judge_sharing, judge_whole_batches
from optsched.check.tasks import judge_tasks
from optsched.check.tolerance import EXACT, RELATIVE, ULPS, number, whole
from optsched.check.value import FAIR, TERMS, UTILITY, UTILITY_UNIT, exact_value, known_objective
from optsched.errors import InputError
from optsched.problem.atomic_files import read_bytes
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.schedule import Schedule, Scheduled, SharedSchedule, schedule_in
from optsched.problem.task_log import TaskSchedule
from optsched.speeds.equal_share import equal_share_times

__all__ = ["Verdict", "Violation", "check_file", "check_schedule", "schedule_value"]

CERTIFICATE_FORMAT = "optsched-certificate/1"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `check_file` found: ``kind`` is "schedule" or "certificate"; it holds when nothing is violated."""

    kind: str
    violations: tuple[Violation, ...]

    @property
    def holds(self) -> bool:
        """Is every rule kept?"""
        return not self.violations


def check_schedule(
    instance: Source,
    schedule: Schedule | Scheduled,
    *,
    preemptive: bool = True,
    forking: bool = False,
    elastic: bool = False,
    objective: str | None = None,
    value: float | Fraction | None = None,
) -> list[Violation]:
    """Every rule that a schedule breaks, in the order of `RULES`; an empty list when it is feasible.

    Jobs with tasks share GPUs and are never preempted: a `TaskSchedule` with its log is judged task by task, and any other
    schedule of theirs by the necessary conditions of `optsched.check.residency.judge_residency`. A `SharedSchedule` is
    judged by `optsched.check.sharing`: without copies, whatever is allowed here.

    Parameters
    ----------
    instance : what the schedule is of, or the SOURCE that names it.
    schedule : or a run or a solution, whose schedule is judged.
    preemptive : may a job be stopped and resumed?
    forking : may a job run in several copies at once? Each is a segment of its own with the job's whole gang; what they do
        adds up.
    elastic : may jobs at scaling profiles have other numbers of GPUs than their gang? See `optsched.check.elastic`.
    objective, value : the value stated for an objective (default: the instance's own, else ``total_flow_time``), in
        seconds times weights; without a value there is nothing to compare.

    Raises
    ------
    InputError
        When the objective is unknown, a job has no duration, or the schedule's arrays do not fit together.

    >>> import optsched as osd
    >>> osd.check_schedule("rigid-06-1", osd.simulate("rigid-06-1", "srtf"))
    []
    >>> late = osd.Schedule.from_starts("rigid-06-1", range(0, 600, 100))
    >>> [each.rule for each in osd.check_schedule("rigid-06-1", late, value=156.0)]
    ['arrival', 'value']
    """
    instance, schedule = instance_of(instance), schedule_in(schedule)
    name = None if objective is None and value is None else known_objective(instance, objective)
    stated = value if value is None or isinstance(value, float) else Fraction(value)
    tasks = None
    if isinstance(schedule, TaskSchedule) and schedule.tasks is not None:
        tasks = task_document_of(schedule, instance)
    context = CheckContext(instance, document_of(schedule, instance) if tasks is None else tasks.gangs)
    if tasks is None and (instance.at_task_level or isinstance(schedule, TaskSchedule)):
        found = judge_residency(context)
    else:
        sharing = isinstance(schedule, SharedSchedule)
        found = _judge(context, tasks, preemptive, forking, sharing=sharing, elastic=elastic)
    return _violations(context, found, name, stated)


def check_file(
    path: str | os.PathLike[str], instance: Source, *, preemptive: bool = True, forking: bool = True
) -> Verdict:
    """Judge a schedule (JSON or Parquet), a file of tasks (Parquet) or a certificate file.

    What a schedule file states beyond its segments is checked too: ``"objective"`` and ``"value"`` under the rule
    value, ``"preemptive": false`` under preemption. Only a file with ``"forking": true`` is judged as a forking schedule,
    in which a job may run in several copies at once, and only where ``forking`` allows it. Jobs have other numbers of GPUs
    than their gang only in a file with ``"elastic": true`` (`optsched.check.elastic`). Jobs share GPUs only in a file
    with ``"sharing": true``: it is judged by `optsched.check.sharing`; at the task level by necessary conditions
    (`optsched.check.residency.judge_residency`), and a file of tasks in full. A certificate is proved anew from the instance
    alone. A schedule that keeps all these rules and is still better than a proven bound of its class breaks the rule value
    (`optsched.check.referee`).

    Raises
    ------
    InputError
        When the file cannot be read as either: missing, truncated, another format, a field missing or of a wrong type.
    """
    content, instance = read_bytes(path), instance_of(instance)
    tasks: TaskDocument | None = None
    if content.startswith(PARQUET_MAGIC):
        if is_task_claim(content):
            tasks = task_claim_of_parquet(content, instance, path)
        document = claim_of_parquet(content, instance, path) if tasks is None else tasks.gangs
    else:
        raw = parse_document(content, path)
        form = raw.get("format")
        if form == CERTIFICATE_FORMAT:
            return Verdict("certificate", _certificate_violations(raw, path, instance))
        if form != FORMAT:
            legal = f"{FORMAT} or {CERTIFICATE_FORMAT}"
            raise InputError("neither a schedule nor a certificate", file=path, field="format", value=form, legal=legal)
        document = document_of_json(raw, instance, path)
    context, preemptive = CheckContext(instance, document), preemptive and document.preemptive is not False
    forking, sharing, elastic = (
        (forking and document.forking is True),
        document.sharing is True,
        document.elastic is True,
    )
    found = _judge(context, tasks, preemptive, forking, sharing=sharing, elastic=elastic)
    try:
        name = known_objective(instance, document.objective)
    except InputError as error:  # the file is readable, but what it states cannot be confirmed
        return Verdict("schedule", (*found.violations(), Violation("value", str(error))))
    violations = _violations(context, found, name, document.value)
    if not violations and instance.n:
        kind = _class_of(context, preemptive, forking)
        message = below_bound(context, name, kind, _value(context, name))
        violations += [] if message is None else [Violation("value", message)]
    return Verdict("schedule", tuple(violations))


def _class_of(context: CheckContext, preemptive: bool, forking: bool) -> str:
    """The class of schedules that a file was judged as, as `optsched.bounds.certificate` names them."""
    if context.instance.at_task_level:
        return "task-sharing"
    if context.document.sharing is True and context.instance.interference is not None:
        return "gpu-sharing"
    if context.document.elastic is True and context.instance.elastic:
        return "elastic"
    if forking:
        return "forking"
    return "gang" if preemptive else "gang-nonpreemptive"


def _judge(
    context: CheckContext, tasks: TaskDocument | None, preemptive: bool, forking: bool, *, sharing: bool, elastic: bool
) -> Violations:
    """The rules for what a schedule is said to be: tasks, residencies on shared GPUs, or segments on exclusive ones."""
    if tasks is not None:
        return judge_tasks(context, tasks)
    if context.instance.at_task_level:
        found = judge_residency(context)
        if not sharing:
            judge_exclusive(context, found)
        return found
    # Without interference jobs cannot share, whatever is said: they are alone on their GPUs.
    if sharing and context.instance.interference is not None:
        return judge_sharing(context, preemptive=preemptive)
    if elastic:
        return judge_elastic(context, preemptive=preemptive)
    found = judge(context, preemptive=preemptive, forking=forking)
    judge_whole_batches(context, found)
    return found


def schedule_value(instance: Instance, schedule: Schedule, objective: str | None = None) -> Fraction:
    """The exact value of the schedule's completion times, the floats taken as they are.

    A job completes at the end of its last segment. A schedule that the referee accepts within its tolerance may be worth a
    little less than it can be: what certainly can is `optsched.check.certain_times`. Raises `InputError` when a job never
    runs or a time is not finite.
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
    """What a stated value may miss: nothing when all numbers are whole, unless a float cannot hold the total."""
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
