"""Graham 1966: list scheduling on identical machines."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.assumptions import broken, parallel_machines
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee, late, told
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.problem.instance import Instance, Job
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(*parallel_machines(placement, instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    return 2 - Fraction(1, run.instance.cluster.gpus)


def _audit(policy: Any, run: Run) -> list[str]:
    """Until job j starts no machine is idle, so that C_j <= (sum_k p_k - p_j) / m + p_j."""
    run = run.relative  # all are released when the first one is
    p = run.instance.duration
    limit = (p.sum() - p) / run.instance.cluster.gpus + p
    return told(run, late(run, limit), limit)


@of_a_theorem
def blocked_long_job(m: int = 4) -> Instance:
    """m (m - 1) unit jobs, then one of length m, on m machines: list scheduling takes 2 m - 1, the optimum is m."""
    check_legal(m >= 1, "m", m, "an integer >= 1")
    lengths = [*np.ones(m * (m - 1), dtype=int).tolist(), m]
    return Instance(
        [Job(f"{j}", duration=length) for j, length in enumerate(lengths)],
        f"1x{m}",
        name=f"blocked-long-job-{m}",
        objective="makespan",
        optimum=stating(m, "makespan", "gang", "volume"),
    )


BLOCKED_LONG_JOB = family(
    name="blocked-long-job",
    summary="m (m - 1) unit jobs, then one of length m, on m machines",
    policy="list",
    objective="makespan",
    make=blocked_long_job,
    ratio=lambda m: 2 - Fraction(1, m),
    limit="2 - 1/m",
    theorem="graham-list",
)

GRAHAM = guarantee(
    id="graham-list",
    statement="P || C_max: list scheduling <= (2 - 1/m) OPT, whatever the list",
    notation="P || C_max",
    knowledge="non-clairvoyant",
    source="Graham 1966",
    status="proved",
    proof=(
        "Until job j starts no machine is idle: C_j <= (sum p - p_j) / m + p_j. Both sum p / m and p_j are at most OPT, "
        "hence C_max <= OPT + (1 - 1/m) OPT."
    ),
    objective="makespan",
    policies=("list", "fifo", "sjf", "wspt"),
    assumptions=_assumptions,
    ratio=_ratio,
    audit=_audit,
    tight=TightFamily("m (m - 1) unit jobs, then one of length m", BLOCKED_LONG_JOB),
)
