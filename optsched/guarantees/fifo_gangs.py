"""Strict first come, first served for gangs: the makespan is within a factor m of the optimum, and not less.

**Theorem** P | size_j | C_max: while jobs are left at least one GPU works, so C_max <= sum p_j <= sum size_j p_j <= m OPT.
This is all that is used: the head of the queue may block every other job. Tight: `wide_and_narrow`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_at_once, broken, rigid_gangs
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(
        "those that do not fit are passed over: a stronger theorem applies" if policy.skip else None,
        all_at_once(instance),
        *rigid_gangs(placement, instance),
    )


def _ratio(policy: Any, run: Run) -> Fraction:
    return Fraction(run.instance.cluster.gpus)


@of_a_theorem
def wide_and_narrow(m: int = 4, length: int = 1000) -> Instance:
    """m pairs, in turn a second on all m GPUs and ``length`` seconds on one: strictly in order nothing runs side by side.

    The optimum runs the wide ones first, then all narrow ones together: m + ``length``, and no GPU is ever idle.
    """
    check_legal(m >= 1, "m", m, "an integer >= 1")
    check_legal(length >= 1, "length", length, "an integer >= 1")
    pairs = [(Job(f"wide-{i}", gpus=m, duration=1), Job(f"narrow-{i}", duration=length)) for i in range(m)]
    optimum = stating(m + length, "makespan", "gang", "volume")
    return Instance(
        [job for pair in pairs for job in pair], f"1x{m}", f"wide-and-narrow-{m}", "makespan", optimum=optimum
    )


WIDE_AND_NARROW = family(
    name="wide-and-narrow",
    summary="m pairs of a short job on all m GPUs and a long one on one of them",
    policy="fifo",
    objective="makespan",
    make=wide_and_narrow,
    ratio=lambda m, length: Fraction(m * (length + 1), length + m),
    limit="m for long narrow jobs",
    theorem="fifo-gangs",
    sizes=(2, 4, 8, 16, 64),
)

FIFO_GANGS = guarantee(
    id="fifo-gangs",
    statement="P | size_j | C_max: strict first come, first served <= m OPT",
    notation="P | size_j | C_max",
    knowledge="non-clairvoyant",
    source="folklore",
    status="proved",
    proof=(
        "While jobs are left at least one GPU works, so C_max <= sum p_j <= sum size_j p_j, which no schedule does in less "
        "than an m-th of that time."
    ),
    objective="makespan",
    policies=("fifo",),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily("short jobs on all GPUs and long ones on one, in turn; a limit", WIDE_AND_NARROW, exact=False),
)
