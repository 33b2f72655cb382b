"""Two transfers on one link: AdaDUAL within (2 + theta) / (1 + 2 theta) of the optimum, SRSF within 2 or more.

**AdaDUAL**. Two transfers on one link, released at any times, no preemption, eta >= 0, theta = b / (2 (b + eta)). AdaDUAL
has sum (C_j - r_j) <= (2 + theta) / (1 + 2 theta) OPT; adding sum r_j to both sides, the same of sum C_j.

Proof. Let b = 1. The first released starts at once; let x be what is left of it when the other one, of size m, is
released (or asked about, where both come together) r seconds later. If x = 0 they never meet. No byte moves faster than at
rate 1, so by SRPT OPT >= r + x + 2 m if m <= x, and >= r + 2 x + m if m >= x. AdaDUAL pays

    m < theta x:    r + x + m + m / theta       at once: x + m (1 + eta) and m (2 + eta), and 3 + 2 eta = 1 + 1 / theta
    m >= theta x:   r + 2 x + m                 one after the other

Without r, the quotient by OPT rises in m / x over the first line and falls over the second, down to 1 at m = x; at m =
theta x both lines give (2 + theta) / (1 + 2 theta). r >= 0 on both sides only brings a quotient nearer to 1.

**Tight**: sizes 1 and theta, the long one asked about first. That is what happens with equal releases where a tie is broken
by index (`long_one_first`: nobody has any service left), and the ratio is reached. Where the smaller one of the two is asked
first, AdaDUAL is optimal with equal releases; with the second released r > 0 later it stays below the ratio, and reaches it
in the limit r -> 0 (k and 1 - e bytes, the second k e seconds later).

**More transfers**: no constant, see `blocked_transfers`. Theorem for any releases, proof and families: this project; the
rule: Q. Wang, S. Shi, C. Wang, X. Chu, arXiv 2002.10105.

**SRSF(k)**: never to overlap costs a factor 2, always to overlap more than AdaDUAL. Two transfers on one link, released at
any times, no preemption, eta >= 0: sum (C_j - r_j), and sum C_j, is at most 2 OPT under SRSF(1) and at most (4 + 2 eta / b)
/ 3 OPT under SRSF(k), k >= 2.

Proof. Notation and lower bounds as above, b = 1. SRSF(1) pays r + 2 x + m, at most twice
r + x + 2 m. SRSF(2) pays r + x + m (3 + 2 eta) for m <= x, whose quotient rises in m / x, and r + x (3 + 2 eta) + m for
m >= x, whose quotient by r + 2 x + m falls; at m = x and r = 0 both are (4 + 2 eta) / 3.

**Tight**: for k >= 2 two equal transfers at once; for k = 1 in the limit, a long one first and m -> 0. So AdaDUAL's rule
is better than both for every eta: (2 + theta) / (1 + 2 theta) < min(2, (4 + 2 eta / b) / 3).
**Reference**: the rules are baselines of Q. Wang, S. Shi, C. Wang, X. Chu, arXiv 2002.10105; the theorem is this project's.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.classes.task_sharing.guarantees.transfer_assumptions import two_transfers
from optsched.classes.task_sharing.models.transfer_completions import transfer_completions
from optsched.classes.task_sharing.problem.transfers import TransferProblem, transfer_instance
from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_of, policy_is
from optsched.guarantees.family import Challenge, family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import stating
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance
from optsched.simulation.run import Run
from optsched.speeds.sharing_pair import adadual_ratio

SECOND, OTHERS = 1e-6, 2e-6  # s: releases in `blocked_transfers`
JUST_BELOW = 0.99  # of theta: the second transfer of `blocked_transfers` is admitted


def _ratio(policy: Any, run: Run) -> Fraction:
    contention = run.instance.contention
    assert contention is not None  # what sends a message has one
    b, eta = Fraction(contention.seconds_per_byte), Fraction(contention.penalty)
    return Fraction(adadual_ratio(b / (2 * (b + eta))))


@family(
    "two transfers of k bytes and of 1 at once, the long one asked about first, theta = 1 / k",
    policy="ada-srsf",
    objective="total_completion_time",
    ratio=lambda k: Fraction(2 * k + 1, k + 2),
    limit="(2 + theta) / (1 + 2 theta)",
)
def long_one_first(k: int = 4) -> Instance:
    """k bytes and then 1, b = 1, eta = k / 2 - 1, hence theta = 1 / k: in turn k + (k + 1), at best 1 + (k + 1).

    Parameters
    ----------
    k
        Bytes of the long transfer.
    """
    check_legal(k >= 2, "k", k, "an integer >= 2")
    optimum = stating(k + 2, "total_completion_time", "task-sharing", "shortest transfer first, without contention")
    problem = TransferProblem(np.zeros(2), np.array([k, 1.0]), Contention(1, k / 2 - 1))
    return transfer_instance(problem, f"long-one-first-{k}", optimum=optimum, in_order=True)


ADADUAL = guarantee(
    id="adadual-two-transfers",
    statement="two transfers, r_j | sum C_j: AdaDUAL <= (2 + theta) / (1 + 2 theta) OPT, theta = b / (2 b + 2 eta)",
    notation="one link, n = 2 | r_j | sum C_j",
    knowledge="clairvoyant",
    source="optsched, for the rule of Wang, Shi, Wang and Chu 2020",
    status="proved",
    proof=(
        "Let x be what is left of the first transfer when the second, of size m, comes. No byte moves faster than at rate "
        "1, so SRPT bounds OPT by x + 2 m or 2 x + m. Overlapping costs x + m + m / theta, waiting 2 x + m; the quotients "
        "rise and fall in m / x and meet at m = theta x, where both are (2 + theta) / (1 + 2 theta)."
    ),
    objective="total_completion_time",
    policies=("adadual", "ada-srsf", "k-way"),  # beside one transfer the k-way rule is AdaDUAL's
    assumptions=all_of(
        policy_is(lambda policy: getattr(policy, "theta", 0) == 0, "theta is set by hand"), two_transfers
    ),
    ratio=_ratio,
    tight=TightFamily("sizes 1 and theta, the long one asked about first", long_one_first),
    schedule_class="task-sharing",
)


@family(
    "short transfers wait behind two that run together on the one link",
    policy="ada-srsf",
    objective="total_flow_time",
    limit="at least small / 11: no constant",
    sizes=(2, 10),
)
def blocked_transfers(small: int = 10, eta: float = 0.2745, size: float = 0.0) -> Challenge:
    """``small`` short transfers wait behind two that AdaDUAL let run together: a ratio that grows like their number.

    b = 1. Sizes 1 at 0 and 0.99 theta at 1e-6 (admitted), then m = ``small`` of ``size`` bytes (0: 1 / m^2) at 2e-6. Two
    run, so none of these starts before the second ends, at 0.99 theta (2 + eta) or later: AdaDUAL's flow is at least
    m 0.99 theta (2 + eta) > 0.49 m. The reference: one after the other, the shortest first. With 1 / m^2 all its flows
    together are below 5, so that the ratio is at least m / 11. SRSF(1) fares no better: its m transfers wait for a second.
    With a ``size`` that does not fall with m they cost m^2 size / 2 themselves, and the ratio grows only up to about
    (size)^-1/2 of them.

    Parameters
    ----------
    small
        Number of short transfers.
    eta
        Penalty of contention, in seconds a byte.
    size
        Bytes of a short transfer; 0: 1 / small^2.
    """
    check_legal(small >= 1, "small", small, "an integer >= 1")
    check_legal(0 <= eta < math.inf, "eta", eta, "a finite number >= 0")
    check_legal(0 <= size < math.inf, "size", size, "bytes, 0: 1 / small^2")
    contention = Contention(1, eta)
    sizes = [1.0, JUST_BELOW * contention.theta, *[size or 1 / small**2] * small]
    problem = TransferProblem(np.array([0.0, SECOND, *[OTHERS] * small]), np.array(sizes), contention)
    first, lengths = Fraction(OTHERS), [Fraction(bytes_) for bytes_ in sizes]
    after = first + small * lengths[-1]
    start = (after + lengths[1], after, *(first + i * lengths[-1] for i in range(small)))
    completion = transfer_completions(problem, start, exact=True)
    instance = transfer_instance(problem, f"blocked-transfers-{small}", objective="total_flow_time")
    return Challenge(instance, Fraction(sum(completion)) - sum(map(Fraction, problem.release.tolist())))


def _ratio_of_srsf(policy: Any, run: Run) -> Fraction:
    contention = run.instance.contention
    assert contention is not None  # what sends a message has one
    if policy.k == 1:
        return Fraction(2)
    return (4 + 2 * Fraction(contention.penalty) / Fraction(contention.seconds_per_byte)) / 3


@family(
    "two transfers of k bytes at once, b = 1, eta = k",
    policy="srsf:k=2",
    objective="total_completion_time",
    ratio=lambda k: Fraction(4 + 2 * k, 3),
    limit="(4 + 2 eta / b) / 3",
)
def equal_pair(k: int = 4) -> Instance:
    """Two transfers of k bytes at 0, b = 1, eta = k: together both end at k (2 + k); in turn k and 2 k.

    Parameters
    ----------
    k
        Bytes of each transfer.
    """
    check_legal(k >= 1, "k", k, "an integer >= 1")
    optimum = stating(3 * k, "total_completion_time", "task-sharing", "shortest transfer first, without contention")
    return transfer_instance(
        TransferProblem(np.zeros(2), np.full(2, float(k)), Contention(1, k)), f"equal-pair-{k}", optimum=optimum
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
    assumptions=two_transfers,
    ratio=_ratio_of_srsf,
    tight=TightFamily("two equal transfers at once (k >= 2); a long one first (k = 1, a limit)", equal_pair),
    schedule_class="task-sharing",
)
