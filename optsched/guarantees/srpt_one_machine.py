"""Schrage 1968: SRPT is optimal on one machine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.errors import check_legal
from optsched.guarantees.assumptions import broken, known_durations, no_restart_cost, one_machine
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(
        one_machine(instance),
        no_restart_cost(policy, instance),
        known_durations(instance),
    )


def _ratio(policy: Any, run: Run) -> Fraction:
    return Fraction(1)


@of_a_theorem
def interrupted(k: int = 4) -> Instance:
    """A job of length k at 0 and unit jobs at 1, ..., k - 1: these complete at 2, ..., k, then the long one at 2 k - 1."""
    check_legal(k >= 2, "k", k, "an integer >= 2")
    jobs = [Job("long", duration=k), *(Job(f"{r}", arrival=r, duration=1) for r in range(1, k))]
    optimum = k * (k + 1) // 2 - 1 + 2 * k - 1
    return Instance(
        jobs,
        "1x1",
        name=f"interrupted-{k}",
        objective="total_completion_time",
        optimum=stating(optimum, "total_completion_time", "gang", "exchange argument"),
    )


INTERRUPTED = family(
    name="interrupted",
    summary="a job of length k at 0, unit jobs at 1, ..., k - 1, on one machine",
    policy="srtf",
    objective="total_completion_time",
    make=interrupted,
    ratio=lambda k: Fraction(1),
    limit="1: optimal",
    theorem="srpt-one-machine",
)

SRPT = guarantee(
    id="srpt-one-machine",
    statement="1 | r_j, pmtn | sum C_j: SRPT is optimal",
    notation="1 | r_j, pmtn | sum C_j",
    knowledge="clairvoyant",
    source="Schrage 1968",
    status="proved",
    proof=(
        "Exchange: where j is served although k has less left, give all time that both get from then on first to k, then to"
        " j. The earlier of the two completions becomes earlier, the later one stays, the others do not change."
    ),
    objective="total_completion_time",
    policies=("srtf", "srtf-gpu"),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily("every instance", INTERRUPTED),
)
