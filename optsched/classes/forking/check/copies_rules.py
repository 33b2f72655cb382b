"""The referee of jobs that run in several copies at once: every segment is a copy with the job's whole gang."""

from __future__ import annotations

from optsched.check.batches import judge_whole_batches
from optsched.check.class_rules import RULES, ClassRules
from optsched.check.context import CheckContext, Violations
from optsched.check.feasibility import judge


def judge_copies(context: CheckContext, preemptive: bool) -> Violations:
    """Apply every rule but ``value``; a job may be in several places at once.

    Parameters
    ----------
    context
        The schedule.
    preemptive
        May a job be stopped and resumed?
    """
    found = judge(context, preemptive=preemptive, copies=True)
    judge_whole_batches(context, found)
    return found


RULES.register("forking", ClassRules(judge=judge_copies))
