"""The referee: the rules of gangs, and under ``arrival`` that jobs start apart."""

import numpy as np

from optsched.check.class_rules import RULES, ClassRules
from optsched.check.context import CheckContext, Violations
from optsched.check.feasibility import judge
from paced import APART


def judge_paced(context: CheckContext, preemptive: bool) -> Violations:
    """Apply every rule but ``value``."""
    found = judge(context, preemptive=preemptive)
    order = np.argsort(context.document.start, kind="stable")
    close = np.diff(context.document.start[order]) < APART - 1e-6
    found.blame(context.of_segment, "arrival", order[1:][close], "starts too soon", f"{APART} s after the last start")
    return found


RULES.register("paced", ClassRules(judge=judge_paced))
