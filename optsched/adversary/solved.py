"""The optimum of what is reported, by `optsched.solve`."""

from __future__ import annotations

from optsched.deadline import NEVER, Deadline
from optsched.guarantees.optimum import proved_here, stating
from optsched.problem.instance import Instance
from optsched.solvers.solve import solve

SECONDS = 60.0
LEAST = 0.01  # seconds: the time may be up by now


def solved(instance: Instance, objective: str, deadline: Deadline = NEVER) -> Instance:
    """With its optimum among schedules without preemption, where that is proved within `SECONDS` and in time."""
    if deadline.passed:
        return instance
    best = solve(instance, objective, time_limit=max(min(SECONDS, deadline.left), LEAST))
    if best.status != "optimal" or best.value is None:
        return instance
    return proved_here(instance.replace(optimum=stating(best.value, objective, "gang-nonpreemptive", best.model)))
