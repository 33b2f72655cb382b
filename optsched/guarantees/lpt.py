"""Graham 1969: longest processing time first on identical machines."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.errors import check_legal
from optsched.guarantees.assumptions import broken, parallel_machines
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    longest = policy.by == "longest" and not policy.jobs
    return broken(None if longest else "the list is not by=longest", *parallel_machines(placement, instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    return Fraction(4, 3) - Fraction(1, 3 * run.instance.cluster.gpus)


@of_a_theorem
def three_last(m: int = 4) -> Instance:
    """Lengths 2m-1, 2m-1, ..., m+1, m+1, m, m, m on m machines: LPT takes 4 m - 1, the optimum is 3 m."""
    check_legal(m >= 2, "m", m, "an integer >= 2")
    lengths = [length for length in range(2 * m - 1, m, -1) for _ in range(2)] + [m, m, m]
    return Instance(
        [Job(f"{j}", duration=length) for j, length in enumerate(lengths)],
        f"1x{m}",
        name=f"three-last-{m}",
        objective="makespan",
        optimum=stating(3 * m, "makespan", "gang", "volume"),
    )


THREE_LAST = family(
    name="three-last",
    summary="lengths 2m-1, 2m-1, ..., m+1, m+1, m, m, m on m machines",
    policy="list:by=longest",
    objective="makespan",
    make=three_last,
    ratio=lambda m: Fraction(4, 3) - Fraction(1, 3 * m),
    limit="4/3 - 1/(3m)",
    theorem="lpt",
)

LPT = guarantee(
    id="lpt",
    statement="P || C_max: the longest job first <= (4/3 - 1/(3m)) OPT",
    notation="P || C_max",
    knowledge="offline",
    source="Graham 1969",
    status="proved",
    proof=(
        "Take a counterexample with fewest jobs: the shortest, p, ends last and starts at (sum p_j - p) / m at the latest, "
        "so that C_max <= OPT + (1 - 1/m) p and p > OPT / 3. Then no machine of the optimum has more than two jobs, and for"
        " at most two a machine LPT is optimal: pairing the longest with the shortest is never worse, by exchange."
    ),
    objective="makespan",
    policies=("list",),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily("2m-1, 2m-1, ..., m+1, m+1, m, m, m; optimum 3m", THREE_LAST),
    # m + 1 unit jobs: 2 against (m + 1) / m for the best schedule that may preempt.
    schedule_class="gang-nonpreemptive",
)
