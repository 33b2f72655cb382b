"""Hoogeveen and Vestjens 1996: delayed SPT on one machine, within twice the optimum, the best possible online."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.errors import check_legal
from optsched.guarantees.assumptions import broken, known_durations, one_machine
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(one_machine(instance), known_durations(instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    return Fraction(2)


@of_a_theorem
def just_started(n: int = 10) -> Instance:
    """A job of n^3 s at 0, n unit jobs at n^3 + 1: delayed SPT starts the long one at n^3, the optimum at 0."""
    check_legal(n >= 1, "n", n, "an integer >= 1")
    long = n**3
    jobs = [Job("long", duration=long), *(Job(f"{i}", arrival=long + 1, duration=1) for i in range(n))]
    optimum = stating(_best(n), "total_completion_time", "gang", "shortest remaining time first")
    return Instance(jobs, "1x1", f"just-started-{n}", "total_completion_time", optimum=optimum)


def _best(n: int) -> int:
    return n**3 + n * (n**3 + 1) + n * (n + 1) // 2


def _lost(n: int) -> Fraction:
    return Fraction(2 * n**3 + n * 2 * n**3 + n * (n + 1) // 2, _best(n))


JUST_STARTED = family(
    name="just-started",
    summary="a job of n^3 s at 0, and n unit jobs just after delayed SPT has started it",
    policy="delayed-spt",
    objective="total_completion_time",
    make=just_started,
    ratio=_lost,
    limit="2 for many jobs",
    theorem="delayed-spt",
    sizes=(2, 10, 30, 100),
)

DELAYED_SPT = guarantee(
    id="delayed-spt",
    statement="1 | r_j | sum C_j: delayed SPT <= 2 OPT, and no deterministic online algorithm has less",
    notation="1 | r_j, online-r_j | sum C_j",
    knowledge="clairvoyant",
    source="Hoogeveen and Vestjens 1996",
    status="published",
    proof=(
        "In the source: a smallest counterexample is one block without idle time, which is compared with shortest remaining"
        " time first. That nothing deterministic is better without preemption: one job of length 1 comes alone. Who starts "
        "it at 1 or later has lost a factor 2 already; otherwise many jobs that take next to nothing come right after its "
        "start."
    ),
    objective="total_completion_time",
    policies=("delayed-spt",),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily("a long job that has just started when many short ones come; a limit", JUST_STARTED, exact=False),
    schedule_class="gang-nonpreemptive",
)
