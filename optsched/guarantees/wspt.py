"""Smith's rule on identical machines: (1 + sqrt 2) / 2 = 1.2071 (Kawaguchi and Kyan 1986), and 2 with preemption.

`sand`: where w_j = p_j every order is one of Smith's rule, and sum w_j C_j = (sum_i L_i^2 + sum_j p_j^2) / 2 for loads L_i,
so that only the loads count. Smith's rule spreads m N unit jobs evenly and puts k jobs of length L on top; the best schedule
gives each of these a machine of its own and the other m - k machines the rest, if these are loaded no more. For N -> inf the
ratio is largest at L / N = m (1 + sqrt(2m/k - 1)) / (2 (m - k)); with k/m -> 1 - sqrt(1/2), L / N -> 1 + sqrt 2.

**With preemption**, jobs in the order of Smith's ratio: C_j <= r_j + p_j + sum_{k < j} p_k / m (the audit).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_of, no_restart_cost, parallel_machines, parallel_machines_over_time
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee, late_findings
from optsched.guarantees.optimum import stating
from optsched.policies.queue_orders import smith_ratio
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run

BOUND = (1 + math.sqrt(2)) / 2


class _Sand(NamedTuple):
    """``long`` k jobs of ``length`` L on N ``fine`` unit jobs a machine; sum w_j C_j of sand first, and at best."""

    long: int
    fine: int
    length: int
    by_smiths_rule: Fraction
    optimum: Fraction


def _sand(m: int, grains: int) -> _Sand:
    """``grains`` unit jobs a machine for each of m - k, so that the best schedule can spread them evenly."""
    check_legal(m >= 2, "m", m, "an integer >= 2")
    check_legal(grains >= 1, "grains", grains, "an integer >= 1")
    k = max(1, round(m * (1 - math.sqrt(0.5))))
    fine = grains * (m - k)
    length = m * (fine * k + math.isqrt(fine * fine * k * (2 * m - k))) // (2 * k * (m - k))
    pieces = m * fine + k * length**2  # sum p_j^2
    sand_first = (m - k) * fine**2 + k * (fine + length) ** 2 + pieces
    best = (m - k) * (m * grains) ** 2 + k * length**2 + pieces  # loads m N / (m - k) and L
    return _Sand(k, fine, length, Fraction(sand_first, 2), Fraction(best, 2))


@family(
    "w_j = p_j: unit jobs, as many on every machine, then k long ones with k/m about 1 - sqrt(1/2)",
    policy="wspt",
    objective="total_weighted_completion_time",
    ratio=lambda m, grains: (made := _sand(m, grains)).by_smiths_rule / made.optimum,
    limit="(1 + sqrt 2) / 2 for many machines and grains",
    sizes=(2, 4, 10),
)
def sand(m: int = 4, grains: int = 8) -> Instance:
    """m (m - k) ``grains`` unit jobs, then k long ones, w_j = p_j: Smith's rule puts the long ones on top of the sand."""
    made = _sand(m, grains)
    lengths = [*[1] * (m * made.fine), *[made.length] * made.long]
    jobs = [Job(f"{j}", duration=length, weight=length) for j, length in enumerate(lengths)]
    objective = "total_weighted_completion_time"
    optimum = stating(int(made.optimum), objective, "gang-nonpreemptive", "loads are as equal as they can be")
    return Instance(jobs, f"1x{m}", f"sand-{m}-{grains}", objective, optimum=optimum)


WSPT = guarantee(
    id="wspt-parallel-machines",
    statement="P || sum w_j C_j: Smith's rule <= (1 + sqrt 2) / 2 OPT, and optimal on one machine",
    notation="P || sum w_j C_j",
    knowledge="clairvoyant",
    source="Kawaguchi and Kyan 1986; one machine: Smith 1956",
    status="published",
    proof=(
        "One machine: exchanging two neighbours in the wrong order gains. More: the worst instances have w_j = p_j, since a"
        " list by p_j / w_j is a sum of nested lists in which all these ratios are equal; there only the loads count, jobs "
        "that are no longer than the least load may be ground to sand, and what is left is to maximise a function of k / m "
        "and L."
    ),
    objective="total_weighted_completion_time",
    policies=("wspt",),
    assumptions=parallel_machines,
    ratio=lambda policy, run: Fraction(1) if run.instance.cluster.gpus == 1 else BOUND,
    tight=TightFamily("sand, then k long jobs, w_j = p_j; a limit for many machines", sand, exact=False),
    schedule_class="gang-nonpreemptive",
)


def _audit(policy: Any, run: Run) -> list[str]:
    run = run.relative
    instance, p = run.instance, run.instance.duration
    order = np.lexsort((np.arange(instance.n), smith_ratio(p, instance.weight)))
    before = np.empty(instance.n)
    before[order] = np.cumsum(p[order]) - p[order]
    limit = instance.arrival + p + before / instance.cluster.gpus
    return late_findings(run, limit)


def _base_weight(n: int) -> int:
    # Larger than sum_k k C_k of the optimum: a schedule that is worse by a second for equal weights is worse.
    return 1 + sum(k * (k + 1) * n * n for k in range(n))


def _lost_by_overtaking(n: int) -> Fraction:
    q, w = n * n, _base_weight(n)
    value = sum((w + k) * (n * q - k) for k in range(n))  # the last one is done at n q - (n - 1), then one a second
    return Fraction(value, sum((w + k) * (k + 1) * q for k in range(n)))


@family(
    "n alike jobs, each a little heavier than the one before, which it interrupts just before its end",
    policy="preemptive-wspt",
    objective="total_weighted_completion_time",
    ratio=_lost_by_overtaking,
    limit="2 for many jobs, about 2 - 2 / (n + 1)",
    sizes=(2, 5, 20, 100),
)
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
    assumptions=all_of(no_restart_cost, parallel_machines_over_time),
    ratio=lambda policy, run: Fraction(2),
    audit=_audit,
    tight=TightFamily("alike jobs that overtake each other just before their end; a limit", overtaking, exact=False),
)
