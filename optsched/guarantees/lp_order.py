"""Hall, Schulz, Shmoys and Wein 1997, Goemans et al. 2002: the best order of a linear program, offline.

**Theorem** 1 | r_j | sum w_j C_j, M_j the mean busy times of the linear program and LP = sum w_j (M_j + p_j / 2) <= OPT: in
the order of M_j every job has C_j <= 3 M_j (the audit), so that the sum is at most 3 LP; the best order of alpha points with
one alpha for all costs at most 1.7451 LP. Proof of the former: of the jobs S up to j in that order p(S) M_j is at least
sum_{k in S} p_k M_k, and that at least p(S)^2 / 2, since one machine does S; r_k <= M_k <= M_j. So C_j <= max r_k + p(S) <=
M_j + 2 M_j. Of the latter: it holds in expectation (`optsched.guarantees.random_alpha_points`), and ``lp-order`` tries one
alpha of every interval in which the order is the same.
"""

from __future__ import annotations

from fractions import Fraction

from optsched.guarantees.method_theorem import method_theorem
from optsched.guarantees.random_alpha_points import FACTOR_COMMON, program_of
from optsched.problem.instance import Instance
from optsched.solvers.methods.lp_order import NAME, lp_orders


def _proves(instance: Instance) -> Fraction:
    return program_of(instance).value(instance.weight.tolist())


def _audit(instance: Instance) -> list[str]:
    program = program_of(instance)
    done = program.one_after_the_other(next(lp_orders(program)))
    # orders are by the leading digits of M_j
    late = [j for j, c in enumerate(done) if c > 3 * program.mean_busy[j] * (1 + Fraction(1, 10**11))]
    return [f"job {instance.ids[j]!r} completes at {float(done[j]):.9g}, after 3 M_j" for j in late]


LP_ORDER = method_theorem(
    id="lp-order",
    statement="1 | r_j | sum w_j C_j: the best order of alpha points <= 1.7451 OPT; that of mean busy times <= 3 OPT",
    notation="1 | r_j | sum w_j C_j",
    source="Hall, Schulz, Shmoys and Wein 1997 (3); Goemans, Queyranne, Schulz, Skutella and Wang 2002 (1.7451)",
    status="proved",
    proof=(
        "Of the jobs S up to j in the order of mean busy times p(S) M_j >= sum p_k M_k >= p(S)^2 / 2 and r_k <= M_k <= M_j: "
        "C_j <= max r_k + p(S) <= 3 M_j. With one alpha of density e^a / (e^delta - 1) for all jobs the expected cost is "
        "within 1.7451 of the linear program (random-alpha-points), and the best alpha costs no more."
    ),
    objective="total_weighted_completion_time",
    method=NAME,
    ratio=FACTOR_COMMON,
    proves=_proves,
    audit=_audit,
)
