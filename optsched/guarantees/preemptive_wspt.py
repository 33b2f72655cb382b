"""WSPT with preemption on identical machines: total weighted completion time within twice the optimum.

**Proof.** Jobs in the order of Smith's ratio. While j has come and does not run, all m machines work at jobs before it, so
C_j <= r_j + p_j + sum_{k < j} p_k / m (the audit). No schedule has C_j < r_j + p_j, so these two terms, weighted, add up to
at most OPT; and sum_j w_j sum_{k <= j} p_k / m is the optimum of one machine m times as fast without release dates, at most
OPT. Together at most 2 OPT. (One machine: Schulz and Skutella 2002; m: Megow and Schulz 2004.)

`overtaking`: n jobs of q s, job k released at k (q - 1) and a little heavier than those before it, which it interrupts one
second before they are done; all these seconds are made up at the end. In order of release every job but the first waits for
no more than k s.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.assumptions import broken, no_restart_cost, parallel_machines_over_time
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee, late, told
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.policies.queue_orders import smith_ratio
from optsched.problem.instance import Instance, Job
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(no_restart_cost(policy, instance), *parallel_machines_over_time(placement, instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    return Fraction(2)


def _audit(policy: Any, run: Run) -> list[str]:
    run = run.relative
    instance, p = run.instance, run.instance.duration
    order = np.lexsort((np.arange(instance.n), smith_ratio(p, instance.weight)))
    before = np.empty(instance.n)
    before[order] = np.cumsum(p[order]) - p[order]
    limit = instance.arrival + p + before / instance.cluster.gpus
    return told(run, late(run, limit), limit)


def _base_weight(n: int) -> int:
    # Larger than sum_k k C_k of the optimum: a schedule that is worse by a second for equal weights is worse.
    return 1 + sum(k * (k + 1) * n * n for k in range(n))


@of_a_theorem
def overtaking(n: int = 5) -> Instance:
    """n jobs of q = n^2 s, r_k = k (q - 1), each a little heavier than the one before: each stops it a second too early.

    For equal weights first come, first served is optimal, at q, 2 q, ..., n q: no job k can complete before (k + 1) q. So
    no other schedule has as small a sum, all data are integers, and the weights W + k are too alike to make up for a second.
    """
    check_legal(n >= 2, "n", n, "an integer >= 2")
    q, w = n * n, _base_weight(n)
    jobs = [Job(f"{k}", arrival=k * (q - 1), duration=q, weight=w + k) for k in range(n)]
    objective = "total_weighted_completion_time"
    optimum = stating(
        sum((w + k) * (k + 1) * q for k in range(n)), objective, "gang", "unique optimum of equal weights"
    )
    return Instance(jobs, "1x1", f"overtaking-{n}", objective, optimum=optimum)


def _lost(n: int) -> Fraction:
    q, w = n * n, _base_weight(n)
    value = sum((w + k) * (n * q - k) for k in range(n))  # the last one is done at n q - (n - 1), then one a second
    return Fraction(value, sum((w + k) * (k + 1) * q for k in range(n)))


OVERTAKING = family(
    name="overtaking",
    summary="n alike jobs, each a little heavier than the one before, which it interrupts just before its end",
    policy="preemptive-wspt",
    objective="total_weighted_completion_time",
    make=overtaking,
    ratio=_lost,
    limit="2 for many jobs, about 2 - 2 / (n + 1)",
    theorem="preemptive-wspt",
    sizes=(2, 5, 20, 100),
)

PREEMPTIVE_WSPT = guarantee(
    id="preemptive-wspt",
    statement="P | r_j, pmtn | sum w_j C_j: WSPT with preemption <= 2 OPT",
    notation="P | r_j, pmtn, online-r_j | sum w_j C_j",
    knowledge="clairvoyant",
    source="Schulz and Skutella 2002 (one machine), Megow and Schulz 2004",
    status="proved",
    proof=(
        "While j has come and does not run, all machines work at jobs of smaller ratio: C_j <= r_j + p_j + sum_{k < j} p_k "
        "/ m. The first two terms are below every C_j; the last ones add up to no more than the optimum of one machine m "
        "times as fast without release dates. Each part is at most OPT."
    ),
    objective="total_weighted_completion_time",
    policies=("preemptive-wspt",),
    assumptions=_assumptions,
    ratio=_ratio,
    audit=_audit,
    tight=TightFamily("alike jobs that overtake each other just before their end; a limit", OVERTAKING, exact=False),
)
