"""The optimum of what is reported, by `optsched.solve`."""

from __future__ import annotations

from optsched.adversary.space import Reached
from optsched.check.referee import schedule_value
from optsched.deadline import NEVER, Deadline
from optsched.guarantees.optimum import proved_here, stating
from optsched.problem.instance import Instance
from optsched.solvers.solve import solve

LEAST = 0.01  # seconds
SECONDS = 60.0  # where there is no deadline


def solved(instance: Instance, objective: str, deadline: Deadline = NEVER) -> Reached:
    """The instance, stating its optimum among schedules without preemption where the time suffices to prove it; the value of
    the best schedule.
    """
    best = solve(instance, objective, time_limit=max(min(SECONDS, deadline.left), LEAST))
    reached = None if best.schedule is None else schedule_value(instance, best.schedule, objective)
    if best.status != "optimal" or best.value is None:
        return instance, reached
    stated = stating(best.value, objective, "gang-nonpreemptive", best.model)
    return proved_here(instance.replace(optimum=stated)), reached
