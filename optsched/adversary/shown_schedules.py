"""The schedules that the page of an attack draws."""

from __future__ import annotations

from collections.abc import Iterator

from optsched.adversary.attack_search import Attack
from optsched.adversary.space import SECONDS
from optsched.policies.simulate import simulate
from optsched.problem.schedule import Schedule
from optsched.solvers.solve import solve


def shown_schedules(found: Attack) -> Iterator[tuple[str, Schedule]]:
    """Yield (caption, schedule): the policy's, and the rival's or an optimal one if it is known.

    Parameters
    ----------
    found
        The result of an attack.
    """
    best, instance = found.confirmed, found.instance
    yield best.policy.text, simulate(instance, best.policy).schedule
    if best.rival is not None:
        yield best.rival.text, simulate(instance, best.rival).schedule
    elif instance.optimum is not None and instance.optimum["class"] == "gang-nonpreemptive":
        optimal = solve(instance, best.objective, time_limit=SECONDS).schedule
        if optimal is not None:
            yield "an optimal schedule", optimal
