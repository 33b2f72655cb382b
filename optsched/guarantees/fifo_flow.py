"""First come, first served on one machine: total flow time within a factor n, and not much less.

**Theorem** sum (C_j - r_j) <= n OPT. Proof: first come, first served has the least possible max (C_j - r_j), even with
preemption: the jobs that it serves without idle time up to the latest of them cannot all be done earlier, and the last of
them to be done has come no later. So each of the n flow times is at most the largest one of any schedule, which is at most
their sum.

`convoy`: n unit jobs come, one a second, while one of n seconds runs; each waits for as long as the long one still took.
"""

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
    return Fraction(max(1, run.instance.n))


@of_a_theorem
def convoy(n: int = 10) -> Instance:
    """In half seconds: a job of 2 n at 0, n jobs of 2 at 1, 3, 5, ...: first come, first served has a flow of 2 n + 1 each.

    Shortest remaining time first serves them at once, 2 each, and the long one in between: it is done at 4 n.
    """
    check_legal(n >= 1, "n", n, "an integer >= 1")
    jobs = [Job("long", duration=2 * n), *(Job(f"{i}", arrival=2 * i + 1, duration=2) for i in range(n))]
    optimum = stating(_best(n), "total_flow_time", "gang", "shortest remaining time first")
    return Instance(jobs, "1x1", f"convoy-{n}", "total_flow_time", optimum=optimum)


def _best(n: int) -> int:
    # With one job nothing is gained by stopping the long one, which has less left than the short one is long.
    return 6 * n if n > 1 else 2 * n + 2 * n + 1


CONVOY = family(
    name="convoy",
    summary="a job of n seconds, and n unit jobs that come while it runs, one a second",
    policy="fifo",
    objective="total_flow_time",
    make=convoy,
    ratio=lambda n: Fraction(2 * n + n * (2 * n + 1), _best(n)),
    limit="(n + 3/2) / 3",
    theorem="fifo-one-machine",
    sizes=(2, 10, 100, 1000),
)

FIFO = guarantee(
    id="fifo-one-machine",
    statement="1 | r_j, pmtn | sum (C_j - r_j): first come, first served <= n OPT",
    notation="1 | r_j, online-r_j | sum (C_j - r_j)",
    knowledge="non-clairvoyant",
    source="folklore",
    status="proved",
    proof=(
        "First come, first served has the least possible largest flow time, even with preemption, and no flow time of it is"
        " larger than that; the sum of all flow times of any schedule is at least its largest one."
    ),
    objective="total_flow_time",
    policies=("fifo",),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily("short jobs that come while a long one runs: a third of n", CONVOY, exact=False),
)
