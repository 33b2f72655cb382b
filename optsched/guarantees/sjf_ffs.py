"""Two jobs under SJF-FFS, which always shares, and under SJF and FIFO, which never do: exact ratios.

**Theorem**. Two jobs that cannot run side by side without sharing, released at any times, notation of
`optsched.guarantees.sjf_bsbf`. Against all schedules that share and preempt, sum of flow times (and of completion times):

    SJF-FFS      max(1, (r + 2 xi_1 R) / (r + min(1 + 2 q, 2 + q) R)) OPT,  q = xi_1 / xi_2;
                 for r = 0  max(1, 2 xi_1 xi_2 / (xi_1 + xi_2 + min(xi_1, xi_2))), equal xi: max(1, 2 xi / 3)
    SJF, FIFO    (r + 2 R) / (r + R) OPT <= 2 OPT, whatever xi >= 1

Proof. Let the second be Y R long. SJF-FFS pays r + min(1 + k Y, K + Y) R; the pieces meet at Y = q, where they are 2
xi_1. The optimum is the smallest of that, r + (2 + Y) R and r + (1 + 2 Y) R. Up to q, the quotient of 1 + k Y by 2 + Y
grows, that by 1 + 2 Y grows iff k > 2; from q on that of K + Y by 1 + 2 Y falls, that by 2 + Y falls iff K > 2. If q <= 1
and k <= 2, then K - 1 = (k - 1) q <= 1; if q >= 1 and K <= 2, then k <= 2: in both cases nothing exceeds 1. Otherwise the
largest is at q, or 1. The other two pay r + (2 + Y) R at most, every schedule r + (1 + Y) R, since each of them needs its
own seconds; the quotient falls with Y > 0.

**Tight**: two equal jobs at once for SJF-FFS and equal xi >= 3/2. For SJF and FIFO a limit: a long job, then one that
takes next to nothing, beside which the long one hardly loses. So the pair test is worth having: for equal xi > 3/2
SJF-BSBF's ratio is below 2 and, as (2 + th) / (1 + 2 th) = (4 xi - 3) / (2 xi), below 2 xi / 3, too.

**Reference** the rules are baselines of arXiv 2407.13088; the theorem is this project's.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.errors import check_legal
from optsched.guarantees.assumptions import any_free_gpus, broken
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import of_a_theorem, stating
from optsched.guarantees.two_sharers import NO_GAIN, cannot_run_apart, decided_at_once, two_sharers
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run


def always_shared_ratio(first: Fraction, second: Fraction, gap: Fraction = Fraction(0)) -> Fraction:
    """SJF-FFS's exact ratio for slow-downs xi_1, xi_2 and r / R = ``gap`` >= 0; the theorem of the module."""
    q = first / second
    return max(Fraction(1), (gap + 2 * first) / (gap + min(1 + 2 * q, 2 + q)))


def _sharing_ratio(policy: Any, run: Run) -> Fraction:
    pair = two_sharers(run.instance)
    return always_shared_ratio(pair.first, pair.second, pair.gap / pair.left) if pair.left > 0 else Fraction(1)


@of_a_theorem
def equal_sharers(k: int = 4) -> Instance:
    """Two jobs of 1 s at once, xi = k: together both end at k; in turn at 1 and 2."""
    check_legal(k >= 2, "k", k, "an integer >= 2")
    optimum = stating(3, "total_flow_time", "gpu-sharing", NO_GAIN)
    jobs = [Job(name, duration=1) for name in "ab"]
    return Instance(
        jobs, "1x1", f"equal-sharers-{k}", "total_flow_time", optimum=optimum, interference=Interference(float(k))
    )


EQUAL_SHARERS = family(
    name="equal-sharers",
    summary="two jobs of 1 s at once on a GPU that they may share, xi = k",
    policy="sjf-ffs",
    objective="total_flow_time",
    make=equal_sharers,
    ratio=lambda k: max(Fraction(1), Fraction(2 * k, 3)),
    limit="2 xi / 3",
    theorem="sjf-ffs-two-jobs",
)

SJF_FFS = guarantee(
    id="sjf-ffs-two-jobs",
    statement="two jobs that cannot run apart, r_j | sum F_j: SJF-FFS <= max(1, 2 xi / 3) OPT for equal xi; less where "
    "the first has run",
    notation="one set of GPUs, n = 2 | r_j, two jobs a GPU at slow-down xi | sum (C_j - r_j)",
    knowledge="clairvoyant",
    source="optsched, for the baseline of SJF-BSBF (arXiv 2407.13088)",
    status="proved",
    proof=(
        "SJF-FFS pays min(1 + k Y, K + Y), Y as in SJF-BSBF's theorem; the optimum is the least of that, 2 + Y and 1 + 2 Y."
        " The quotients grow up to Y = xi_1 / xi_2 and fall from there, where SJF-FFS pays 2 xi_1."
    ),
    objective="total_flow_time",
    policies=("sjf-ffs",),
    assumptions=decided_at_once,
    ratio=_sharing_ratio,
    tight=TightFamily("two equal jobs at once", EQUAL_SHARERS),
    schedule_class="gpu-sharing",
)


def _alone_assumptions(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    return broken(any_free_gpus(placement, instance), *cannot_run_apart(instance))


def _alone_ratio(policy: Any, run: Run) -> Fraction:
    pair = two_sharers(run.instance)
    return 1 + pair.left / (pair.gap + pair.left) if pair.left > 0 else Fraction(1)


NEVER_SHARED = guarantee(
    id="never-shared-two-jobs",
    statement="two jobs that cannot run apart, r_j | sum F_j: SJF, FIFO <= 2 OPT, though OPT may share GPUs",
    notation="one set of GPUs, n = 2 | r_j, two jobs a GPU at slow-down xi | sum (C_j - r_j)",
    knowledge="non-clairvoyant",
    source="optsched",
    status="proved",
    proof=(
        "Without sharing the flow times are at most r + (2 + Y) R, where every schedule needs r + (1 + Y) R: each job needs"
        " its own seconds."
    ),
    objective="total_flow_time",
    policies=("sjf", "fifo"),
    assumptions=_alone_assumptions,
    ratio=_alone_ratio,
    tight=TightFamily("a long job, then one that takes next to nothing (a limit)"),
    schedule_class="gpu-sharing",
)
