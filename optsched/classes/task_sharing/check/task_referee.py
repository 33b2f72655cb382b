"""Judge schedules of jobs with tasks: task by task if the schedule has a log, else by necessary conditions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction

from optsched.check.certain_times import TIMES, CertainTimes, only_whole
from optsched.check.class_rules import RULES, ClassRules
from optsched.check.context import CheckContext, Violations
from optsched.check.feasibility import judge_exclusive
from optsched.check.schedule_document import document_of
from optsched.classes import ScheduleClass
from optsched.classes.task_sharing.check.residency import Residency, judge_residency
from optsched.classes.task_sharing.check.task_document import (
    TaskDocument,
    is_task_claim,
    task_claim_of_parquet,
    task_document_of,
)
from optsched.classes.task_sharing.check.task_rules import judge_tasks
from optsched.classes.task_sharing.problem.task_log import TaskLog, TaskSchedule
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule


class TaskContext(CheckContext):
    """The gangs of a schedule with a log of their tasks, or (``tasks`` None) without one."""

    def __init__(self, instance: Instance, gangs: Schedule | TaskDocument) -> None:
        self.tasks = gangs if isinstance(gangs, TaskDocument) else None
        super().__init__(instance, gangs.gangs if isinstance(gangs, TaskDocument) else document_of(gangs, instance))


def _context(schedule: Schedule, instance: Instance) -> CheckContext:
    if isinstance(schedule, TaskSchedule) and schedule.tasks is not None:
        return TaskContext(instance, task_document_of(schedule, instance))
    return TaskContext(instance, schedule)


def _parquet(content: bytes, instance: Instance, path: str | os.PathLike[str]) -> CheckContext | None:
    return TaskContext(instance, task_claim_of_parquet(content, instance, path)) if is_task_claim(content) else None


def _judge(context: CheckContext, preemptive: bool) -> Violations:
    if isinstance(context, TaskContext):
        return judge_residency(context) if context.tasks is None else judge_tasks(context, context.tasks)
    found = judge_residency(context)  # of a file of gangs
    if "sharing" not in context.document.stated:
        judge_exclusive(context, found)
    return found


class CertainTaskTimes(CertainTimes):
    """Completion times of jobs with tasks."""

    def __init__(self, instance: Instance, schedule: Schedule, kind: ScheduleClass, preemptive: bool) -> None:
        super().__init__(instance, schedule, kind, preemptive)
        self._tasks: TaskLog | None = schedule.tasks if isinstance(schedule, TaskSchedule) else None
        self._parts = len(schedule if self._tasks is None else self._tasks)

    @property
    def _completions(self) -> list[Sequence[float] | list[Fraction]]:
        return [self._context.completion.tolist() if self._tasks_are_whole else self._blanket()]

    @property
    def _tasks_are_whole(self) -> bool:
        # Are all numbers integers, which the referee compares exactly, and does nobody send anything?
        instance, tasks = self._context.instance, self._tasks
        if tasks is None or Residency(self._context).sends.any():
            return False
        return only_whole(tasks.start, tasks.end, instance.forward, instance.backward, instance.arrival)


RULES.register("task-sharing", ClassRules(judge=_judge, context=_context, parquet=_parquet))
TIMES.register("task-sharing", CertainTaskTimes)
