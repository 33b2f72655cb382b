"""The referee accepts every schedule."""

from __future__ import annotations

from collections.abc import Iterator

from optsched.check.referee import check_schedule
from optsched.contract.check import Broken, check
from optsched.contract.subject import Subject


@check("feasible", "the engine carries out every decision, and the referee accepts every schedule and its value")
def feasible(subject: Subject) -> Iterator[Broken]:
    """Of `Level.instances`; jobs that are missing are the business of the check ``complete``."""
    for run in subject.base:
        value = None if run.unfinished else run.value()
        forking = run.schedule_class == "forking"
        violations = check_schedule(run.instance, run.schedule, preemptive=run.preemptive, forking=forking, value=value)
        for each in violations:
            if not (run.unfinished and each.rule in ("completeness", "work")):
                yield Broken(f"{each.rule}: {each.message}", (run.instance,))
