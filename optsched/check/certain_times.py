"""Completion times that some feasible schedule certainly reaches, without the tolerance of the referee."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from optsched.check.context import CheckContext
from optsched.check.feasibility import overlaps_of
from optsched.check.interfaces import slow_on_interfaces
from optsched.check.restarts import continuations, ran, restarts
from optsched.check.schedule_document import document_of
from optsched.check.speed_rules import worth_alone
from optsched.check.tolerance import ULPS, whole
from optsched.check.value import UTILITY, exact_value, known_objective
from optsched.classes import CLASSES, ScheduleClass, class_stated
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.registry import PartsByClass
from optsched.speeds.duration import communicating

MOST_FORGIVEN = Fraction(4, 10**6)  # of a schedule's length: `optsched.check.tolerance.MOST`, of tasks and of transfers
SAFE = Fraction(2**44 - 1, 2**44)  # of a float that some additions and products have rounded


def certain_value(
    instance: Instance,
    schedule: Schedule,
    objective: str | None = None,
    *,
    schedule_class: str | None = None,
    preemptive: bool = True,
) -> Fraction | None:
    """Return a value that some schedule of the class certainly has.

    It is never better than what the whole work of all jobs allows. It is the value of the schedule where no number in it was
    rounded, and None where nothing is certain.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    schedule
        One that `optsched.check.referee.check_schedule` accepts with the same arguments.
    objective
        Its name; None: the instance's own, else ``total_flow_time``.
    schedule_class
        Name of the class of schedules; None: the one that the schedule states.
    preemptive
        May a job be stopped and resumed?
    """
    times = certain_times(instance, schedule, schedule_class=schedule_class, preemptive=preemptive)
    return times.value(known_objective(instance, objective))


def certain_times(
    instance: Instance, schedule: Schedule, *, schedule_class: str | None = None, preemptive: bool = True
) -> CertainTimes:
    """Return completion times of schedules that break no rule, into which a schedule can be turned.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    schedule
        One that the referee accepts.
    schedule_class
        Name of the class of schedules; None: the one that the schedule states.
    preemptive
        May a job be stopped and resumed?
    """
    stated = class_stated(instance, {schedule.stated}, preemptive)
    kind = stated if schedule_class is None else CLASSES.get(schedule_class)
    return TIMES.of(kind.name)(instance, schedule, kind, preemptive)


class CertainTimes:
    """Completion times, in fractions, of schedules that break no rule; they are computed at the first request.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    schedule
        A schedule that the referee accepts.
    kind
        The class of schedules.
    preemptive
        Whether a job may be stopped and resumed.

    Attributes
    ----------
    slows
        True if jobs slow their partners on a GPU.
    """

    slows: ClassVar[bool] = False  # do jobs slow their partners on a GPU?

    def __init__(self, instance: Instance, schedule: Schedule, kind: ScheduleClass, preemptive: bool) -> None:
        self._context = CheckContext(instance, document_of(schedule, instance))
        self._kind, self._preemptive = kind, preemptive and kind.preemptive
        self._parts = len(schedule)

    def value(self, objective: str) -> Fraction | None:
        """Return the best value of these completion times; None if a job never runs, or nothing is certain.

        Parameters
        ----------
        objective
            Name of the objective.
        """
        context = self._context
        if not context.completed or (
            objective == UTILITY and bool((context.completion <= context.instance.arrival).any())
        ):
            return None
        values = [exact_value(context.instance, each, objective) for each in self._completions]
        return (max if objective == UTILITY else min)(values, default=None)

    @cached_property
    def _completions(self) -> list[Sequence[float] | list[Fraction]]:
        context, instance = self._context, self._context.instance
        if not self.slows and self._is_whole:
            return [context.completion.tolist()]
        resized = self._resized()
        contending = bool(communicating(instance, elastic=self._kind.widths).any())
        found = [None if contending else self._pushed()]
        if contending or self.slows:
            found += [self._stretched(resized), self._blanket()]
        return [each for each in found if each is not None]

    def _resized(self) -> dict[int, float] | None:
        # Of segments with gangs of their own, which get their paces here: the share of communication that contends.
        return None

    @property
    def _is_whole(self) -> bool:
        """True if all numbers are integers, which the referee compares exactly, and no job slows another one down."""
        document, instance = self._context.document, self._context.instance
        numbers = document.start, document.end, document.work, instance.arrival, instance.work
        return not instance.profiled.any() and only_whole(*numbers, np.nan_to_num(instance.restart))

    def _pushed(self) -> list[Fraction] | None:
        """Every segment as late as those before it on its GPUs, and its part of the work, make it."""
        context, document, instance = self._context, self._context.document, self._context.instance
        rows = np.flatnonzero(ran(context))
        rows = rows[np.lexsort((document.end[rows], document.start[rows]))]
        pace = self._paces(rows)
        begun = dict(zip(*(each.tolist() for each in reversed(continuations(context, rows))), strict=True))
        need = [Fraction(each) for each in instance.work.tolist()]
        done = [Fraction(0)] * instance.n
        work = {s: Fraction(document.work[s]) for s in rows.tolist()}
        for s in rows.tolist():
            done[document.job[s]] += work[s]
        if any(part <= 0 for part in done) or not np.isfinite(pace).all():
            return None
        used: dict[int, tuple[Fraction, int]] = {}  # by GPU: until when, by which segment
        first: dict[int, Fraction] = {}
        completion = [Fraction(each) for each in context.completion.tolist()]
        ends = [Fraction(each) for each in instance.arrival.tolist()]
        cost = [Fraction(each) for each in np.nan_to_num(instance.restart).tolist()]
        for s, seconds in zip(rows.tolist(), map(Fraction, pace.tolist()), strict=True):
            j, gpus = int(document.job[s]), context.gpu[document.offset[s] : document.offset[s + 1]].tolist()
            before = [used[gpu] for gpu in gpus if gpu in used]
            begin = max(
                Fraction(document.start[s]), ends[j] if not self._kind.copies else Fraction(instance.arrival[j])
            )
            begin = max([begin, *(until for until, _ in before)])
            resumes = begin > first.setdefault(j, begin)
            if resumes and s in begun and len(before) == len(gpus) and {by for _, by in before} == {begun[s]}:
                resumes = False  # it kept its GPUs
            elif resumes and not self._preemptive:
                return None
            end = begin + work[s] * need[j] / done[j] * seconds + (cost[j] if resumes else 0)
            end = max(end, Fraction(document.end[s]))
            used.update(dict.fromkeys(gpus, (end, s)))
            ends[j], completion[j] = max(ends[j], end), max(completion[j], end)
        return completion

    def _paces(self, rows: Ints) -> Floats:
        return self._context.pace[rows]

    def _stretched(self, resized: dict[int, float] | None) -> list[Fraction] | None:
        """All times from the first start on, times one factor; None where something overlaps that may not."""
        context, document = self._context, self._context.document
        paid = restarts(context, exactly=True)
        found = self._worth(paid, resized)
        if found is None or not self._is_apart():
            return None
        worth, pace, slowed = found
        room = [Fraction(0)] * context.instance.n
        for s in np.flatnonzero(ran(context) & np.isfinite(pace)).tolist():
            room[document.job[s]] += worth[s] / Fraction(pace[s]) * (SAFE if s in slowed else 1)
        if any(each <= 0 for each in room):
            return None
        units = [Fraction(each) for each in context.instance.work.tolist()]
        factor = max([Fraction(1), *(need / each for need, each in zip(units, room, strict=True))])
        origin = Fraction(document.start[ran(context)].min())
        return [origin + (Fraction(each) - origin) * factor for each in context.completion.tolist()]

    def _worth(self, paid: Floats, resized: dict[int, float] | None) -> tuple[list[Fraction], Floats, set[int]] | None:
        """Return the seconds that segments are worth, the seconds of a unit of work, and those slowed on interfaces.

        This is for jobs that no partner slows. It is None if nothing is certain.
        """
        context, document = self._context, self._context.document
        slowed = set(slow_on_interfaces(context, context.pace, resized=resized))
        worth = [Fraction(each) for each in worth_alone(context, paid, resized).tolist()]
        for s in set(range(len(worth))) - slowed:
            worth[s] = max(Fraction(document.end[s]) - Fraction(document.start[s]) - Fraction(paid[s]), Fraction(0))
        return worth, context.pace, slowed

    def _is_apart(self) -> bool:
        """True if starts respect arrivals, no job runs twice at once or pauses illegally, and no GPU serves two jobs."""
        context, document = self._context, self._context.document
        rows = np.flatnonzero(ran(context))
        rows = rows[np.lexsort((document.end[rows], document.start[rows], document.job[rows]))]
        job, start, end = document.job[rows], document.start[rows], document.end[rows]
        if bool((start < context.instance.arrival[job]).any()):
            return False
        if not self._kind.copies and overlaps_of(job, start, end)[0].size:
            return False
        if not self._preemptive and bool(((job[1:] == job[:-1]) & (start[1:] != end[:-1])).any()):
            return False
        pairs = np.flatnonzero(context.first)
        of = context.segment[pairs]
        return not self._kind.alone or not overlaps_of(context.gpu[pairs], document.start[of], document.end[of])[0].size

    def _blanket(self) -> list[Fraction]:
        """More than the referee forgives."""
        context = self._context
        origin = Fraction(float(context.instance.arrival.min()))
        rounding = Fraction(2 * ULPS * self._parts * float(np.spacing(np.abs(context.completion).max())))
        completions = map(Fraction, context.completion.tolist())
        return [origin + (each - origin) * (1 + MOST_FORGIVEN) + rounding for each in completions]


def only_whole(*numbers: Floats) -> bool:
    """Tell if all numbers of several arrays are integers.

    Parameters
    ----------
    *numbers
        Arrays.
    """
    return all(bool(whole(each).all()) for each in numbers)


TIMES: PartsByClass[type[CertainTimes]] = PartsByClass("optsched.check", CertainTimes)
