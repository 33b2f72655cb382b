"""The optimum of what is reported, by `optsched.solve`."""

from __future__ import annotations

from optsched.guarantees.optimum import proved_here, stating
from optsched.problem.instance import Instance
from optsched.solvers.solve import solve

SECONDS = 60.0


def solved(instance: Instance, objective: str) -> Instance:
    """The instance, stating its optimum among schedules without preemption where `SECONDS` suffice to prove it."""
    best = solve(instance, objective, time_limit=SECONDS)
    if best.status != "optimal" or best.value is None:
        return instance
    return proved_here(instance.replace(optimum=stating(best.value, objective, "gang-nonpreemptive", best.model)))
