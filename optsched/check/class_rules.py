"""`ClassRules`: how the referee judges schedules of a class; the folder of a class registers its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from optsched.check.batches import judge_whole_batches
from optsched.check.context import CheckContext, Violations
from optsched.check.feasibility import judge
from optsched.check.schedule_document import document_of
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.registry import PartsByClass


def _judge_gangs(context: CheckContext, preemptive: bool) -> Violations:
    found = judge(context, preemptive=preemptive)
    judge_whole_batches(context, found)
    return found


def _context_of(schedule: Schedule, instance: Instance) -> CheckContext:
    return CheckContext(instance, document_of(schedule, instance))


def _no_file(content: bytes, instance: Instance, path: str | os.PathLike[str]) -> CheckContext | None:
    return None


@dataclass(frozen=True, kw_only=True)
class ClassRules:
    """The rules of the referee for schedules of a class.

    Attributes
    ----------
    judge
        Function of (context, preemptive) that applies every rule except ``value`` and returns the violations.
    context
        Function of (schedule in memory, instance) that returns what is judged.
    parquet
        Function of (content, instance, path) of a Parquet file that returns what is judged; None if the file is not one
        of a format that only this class has.
    """

    judge: Callable[[CheckContext, bool], Violations] = _judge_gangs
    context: Callable[[Schedule, Instance], CheckContext] = _context_of
    parquet: Callable[[bytes, Instance, str | os.PathLike[str]], CheckContext | None] = _no_file


RULES: PartsByClass[ClassRules] = PartsByClass("optsched.check", ClassRules())
