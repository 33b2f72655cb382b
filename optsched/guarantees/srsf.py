"""SRSF(k) on two transfers of one link: never to overlap costs a factor 2, always to overlap (4 + 2 eta / b) / 3.

**Theorem**. Two transfers on one link, released at any times, no preemption, eta >= 0: sum (C_j - r_j), and sum C_j, is at
most 2 OPT under SRSF(1) and at most (4 + 2 eta / b) / 3 OPT under SRSF(k), k >= 2.

Proof. Notation and lower bounds as in `optsched.guarantees.adadual`, b = 1. SRSF(1) pays r + 2 x + m, at most twice
r + x + 2 m. SRSF(2) pays r + x + m (3 + 2 eta) for m <= x, whose quotient rises in m / x, and r + x (3 + 2 eta) + m for
m >= x, whose quotient by r + 2 x + m falls; at m = x and r = 0 both are (4 + 2 eta) / 3.

**Tight**: for k >= 2 two equal transfers at once; for k = 1 in the limit, a long one first and m -> 0. So AdaDUAL's rule
is better than both for every eta: (2 + theta) / (1 + 2 theta) < min(2, (4 + 2 eta / b) / 3).
**Reference**: the rules are baselines of Q. Wang, S. Shi, C. Wang, X. Chu, arXiv 2002.10105; the theorem is this project's.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.assumptions import broken, two_transfers
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance
from optsched.problem.transfer_instance import transfer_instance
from optsched.problem.transfers import TransferProblem
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def _assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(*two_transfers(instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    contention = run.instance.contention
    assert contention is not None  # what sends a message has one
    if policy.k == 1:
        return Fraction(2)
    return (4 + 2 * Fraction(contention.penalty) / Fraction(contention.seconds_per_byte)) / 3


@of_a_theorem
def equal_pair(k: int = 4) -> Instance:
    """Two transfers of k bytes at 0, b = 1, eta = k: together both end at k (2 + k); in turn k and 2 k."""
    check_legal(k >= 1, "k", k, "an integer >= 1")
    optimum = stating(3 * k, "total_completion_time", "task-sharing", "shortest transfer first, without contention")
    return transfer_instance(
        TransferProblem(np.zeros(2), np.full(2, float(k)), Contention(1, k)), f"equal-pair-{k}", optimum=optimum
    )


EQUAL_PAIR = family(
    name="equal-pair",
    summary="two transfers of k bytes at once, b = 1, eta = k",
    policy="srsf:k=2",
    objective="total_completion_time",
    make=equal_pair,
    ratio=lambda k: Fraction(4 + 2 * k, 3),
    limit="(4 + 2 eta / b) / 3",
    theorem="srsf-two-transfers",
)

SRSF = guarantee(
    id="srsf-two-transfers",
    statement="two transfers, r_j | sum C_j: SRSF(1) <= 2 OPT, SRSF(k) <= (4 + 2 eta / b) / 3 OPT for k >= 2",
    notation="one link, n = 2 | r_j | sum C_j",
    knowledge="clairvoyant",
    source="optsched, for the rules of Wang, Shi, Wang and Chu 2020",
    status="proved",
    proof=(
        "With the bounds of AdaDUAL's theorem, x left of the first and a second of size m: never to overlap pays 2 x + m, "
        "at most twice x + 2 m. Always to overlap pays x + m (3 + 2 eta) or x (3 + 2 eta) + m, whose quotients are largest "
        "at m = x."
    ),
    objective="total_completion_time",
    policies=("srsf",),
    assumptions=_assumptions,
    ratio=_ratio,
    tight=TightFamily("two equal transfers at once (k >= 2); a long one first (k = 1, a limit)", EQUAL_PAIR),
    schedule_class="task-sharing",
)
