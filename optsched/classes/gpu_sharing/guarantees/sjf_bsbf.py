"""SJF-BSBF for two jobs: within (2 + th) / (1 + 2 th) of the optimum with preemption. For more: no constant.

**Theorem**. Two jobs that cannot run side by side without sharing (n_1 + n_2 > G), released at any times; job 1 is
released first and has R > 0 seconds of its own left when job 2 is released, r seconds later. xi_1, xi_2: slow-downs
beside each other,

    k = xi_2 (2 - 1/xi_1),  K = xi_1 (2 - 1/xi_2),  L = min(K, 2),  y = (L - 1) / (k - 1).

If k <= 2, or if both are released at once, SJF-BSBF is optimal for the sum of flow times, against all schedules that
share and preempt. Otherwise, whatever the length of job 2,

    sum (C_j - r_j)  <=  (r + (L + y) R) / (r + (1 + 2 y) R) OPT  <=  (L + y) / (1 + 2 y) OPT;

adding sum r_j on both sides, the same of sum C_j. For xi_1 = xi_2 = xi: 1 up to xi = 3/2, then (2 + th) / (1 + 2 th) with
th = 1 / (2 xi - 2): 17/16 for 1.6, 5/4 for 2, 3/2 for 3, 2 in the limit. Where K < 2 < k it is 2 xi_1 xi_2 / (2 xi_1 +
xi_2).

Proof. Job 1 runs alone from its release: no schedule does better, as every quantity below grows with what is left of it.
Let the second be as long as Y R. From r_2 on, by the pair theorem (`optsched.speeds.sharing_pair`), SJF-BSBF's completions
add up to min(1 + k Y, K + Y, 2 + Y) R = min(1 + k Y, L + Y) R, the optimum to min(that, 1 + 2 Y) R, and r is added to
both (the sum beside one partner is that of the pair, and nobody else came, so nobody is expected). If they differ, the
quotient is min(r + (1 + k Y) R, r + (L + Y) R) / (r + (1 + 2 Y) R). Its first form grows with Y iff k > 2, its second
falls (2 r + 2 L R > r + R); both meet at Y = y. For k <= 2 the first is at most 1. Two jobs released at once are asked
about shortest first: Y >= 1, and 1 + 2 Y >= 2 + Y. (``width`` asks by seconds times GPUs: the longer one may be first
then.)

**Tight** for every xi, r and R: e_2 = y R, where the pair test finds both equally good (`just_refused`, L = 2). Without
preemption the optimum cannot let job 2 go first for nothing once job 1 runs; the ratio is then reached as r -> 0 only.

**More jobs**: no constant, see `crowded`. **Partners one by one**: the pair test says yes to every partner of a wide job
where all together lose: recipe ``sharing-partners``.

**Reference** theorem and proof are this project's; the rule: Luo et al., IWQoS 2024, arXiv 2407.13088.

**SJF-FFS**, which always shares, and **SJF and FIFO**, which never do: exact ratios.

Two jobs that cannot run side by side without sharing, released at any times. Against all schedules that share and preempt,
sum of flow times (and of completion times):

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

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_of, any_free_gpus, instance_is, own_network, policy_is
from optsched.guarantees.family import Challenge, family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.optimum import stating
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.simulation.placement import Placement
from optsched.simulation.run import Run
from optsched.speeds.duration import seconds_alone
from optsched.speeds.sharing_pair import ends_first, ends_last, share_threshold, sharing_pair

NO_GAIN = "shortest remaining time first: two jobs do no more work together than one"  # why some optima are optima


@dataclass(frozen=True, slots=True)
class TwoSharers:
    """The job released first (of two at once, that of the first row) runs alone until the second comes.

    ``first`` xi_1, ``second`` xi_2: slow-downs beside each other; ``gap`` r = r_2 - r_1, ``left`` R: seconds that the first
    has left at r_2, at most 0 when they never meet; ``alone`` e_2.
    """

    first: Fraction
    second: Fraction
    gap: Fraction
    left: Fraction
    alone: Fraction

    @property
    def turned(self) -> TwoSharers:
        """The same with the roles exchanged, where both come at once."""
        return TwoSharers(self.second, self.first, self.gap, self.alone, self.left)


def slow_downs(instance: Instance) -> Floats:
    """Return xi of the two jobs next to each other, f64[2, 2].

    Parameters
    ----------
    instance
        Instance of two jobs with an interference model.
    """
    assert instance.interference is not None  # an assumption
    return instance.interference.table(instance.kinds)


def two_sharers(instance: Instance) -> TwoSharers:
    """Return the two jobs of an instance, exact for the floats as given.

    Parameters
    ----------
    instance
        Instance for which the assumptions of the theorem hold.
    """
    arrival = [Fraction(r) for r in instance.arrival.tolist()]
    alone = [Fraction(e) for e in seconds_alone(instance).tolist()]
    a, b = (0, 1) if arrival[0] <= arrival[1] else (1, 0)
    xi = slow_downs(instance)
    gap = arrival[b] - arrival[a]
    return TwoSharers(Fraction(float(xi[a, b])), Fraction(float(xi[b, a])), gap, alone[a] - gap, alone[b])


_one_beside_the_other = all_of(
    instance_is(lambda instance: instance.gpus.sum() > instance.cluster.gpus, "they fit side by side"),
    instance_is(
        lambda instance: (instance.gpus == instance.cluster.gpus).all() or not np.isnan(instance.duration).any(),
        "the time of some job depends on its placement",
    ),
    own_network,
    instance_is(lambda instance: instance.unrestricted, "some jobs may not use every GPU"),
    instance_is(
        lambda instance: (instance.gpu_memory.sum() <= instance.cluster.node_memory).all(),
        "some GPU lacks memory for both with their largest sub-batches",
    ),
    instance_is(lambda instance: np.isfinite(slow_downs(instance)[0, 1]), "the two never share a GPU"),
)


def cannot_run_apart(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...] | str:
    """Check that two jobs, n_1 + n_2 > G, may share their GPUs, at speeds that do not depend on the placement.

    Parameters
    ----------
    policy
        The policy.
    placement
        The placement.
    instance
        The instance.

    Returns
    -------
    tuple of str, or str
        The reason for each assumption that does not hold; empty if all hold.
    """
    if instance.n != 2 or instance.at_task_level:
        return "not two jobs without tasks"
    if instance.interference is None:
        return "nothing says what sharing costs"
    return _one_beside_the_other(policy, placement, instance)


# under a policy that is asked whenever a job comes or goes
decided_at_once = all_of(
    policy_is(lambda policy: policy.interval <= 0, "decisions wait for an interval"), cannot_run_apart
)


SECOND, OTHERS = 1e-6, 2e-6  # s: releases in `crowded`
JUST_BELOW = 0.99  # of the threshold, or of the first job: the second job of `crowded` is admitted


def two_job_ratio(first: Fraction, second: Fraction, gap: Fraction = Fraction(0)) -> Fraction:
    """Return SJF-BSBF's exact ratio by the theorem of the module.

    Parameters
    ----------
    first, second
        Slow-downs xi_1 and xi_2.
    gap
        r / R, at least 0: the time between the releases, over what is then left of the first job.
    """
    k, least = Fraction(ends_first(second, first)), min(Fraction(ends_last(second, first)), Fraction(2))
    if k <= 2:
        return Fraction(1)
    y = (least - 1) / (k - 1)
    return (gap + least + y) / (gap + 1 + 2 * y)


def _ratio(policy: Any, run: Run) -> Fraction:
    pair = two_sharers(run.instance)
    if pair.gap > 0:
        return two_job_ratio(pair.first, pair.second, pair.gap / pair.left) if pair.left > 0 else Fraction(1)
    if not policy.width:
        return Fraction(1)
    return max(two_job_ratio(each.first, each.second) for each in (pair, pair.turned))


@family(
    "xi = 1 + k / 2: a job with k s left when one of 1 s comes, which waits",
    policy="sjf-bsbf",
    objective="total_flow_time",
    ratio=lambda k: Fraction(2 * k + 2, k + 3),
    limit="2 for large xi",
)
def just_refused(k: int = 4) -> Instance:
    """Build an instance in which a job with k s left makes a job of 1 s wait; xi = 1 + k / 2 and th = 1 / k.

    The sum of flow times is 2 k + 2, and the optimum k + 3.

    Parameters
    ----------
    k
        Seconds that the first job has left, at least 2.
    """
    check_legal(k >= 2, "k", k, "an integer >= 2")
    optimum = stating(k + 3, "total_flow_time", "gpu-sharing", NO_GAIN)
    jobs = [Job("first", duration=k + 1), Job("second", arrival=1, duration=1)]
    return Instance(
        jobs, "1x1", f"just-refused-{k}", "total_flow_time", optimum=optimum, interference=Interference(1 + k / 2)
    )


SJF_BSBF = guarantee(
    id="sjf-bsbf-two-jobs",
    statement="two jobs that cannot run apart, r_j | sum F_j: SJF-BSBF <= (2 + th) / (1 + 2 th) OPT for equal xi, "
    "th = min(1, 1 / (2 xi - 2)); less where the first has run",
    notation="one set of GPUs, n = 2 | r_j, two jobs a GPU at slow-down xi | sum (C_j - r_j)",
    knowledge="clairvoyant",
    source="optsched, for the rule of SJF-BSBF (arXiv 2407.13088)",
    status="proved",
    proof=(
        "From the second release on, SJF-BSBF pays min(1 + k Y, L + Y) and the optimum the least of that and 1 + 2 Y, in "
        "units of what is left of the first job, of which the second is Y times as long. The first quotient grows with Y "
        "where k > 2, the second falls: the largest is where both meet."
    ),
    objective="total_flow_time",
    policies=("sjf-bsbf",),
    assumptions=decided_at_once,
    ratio=_ratio,
    tight=TightFamily("the second job th times what is left of the first", just_refused),
    schedule_class="gpu-sharing",
)


@family(
    "short jobs wait behind two that share the one GPU",
    policy="sjf-bsbf",
    objective="total_flow_time",
    limit="at least small / 11: no constant",
    sizes=(2, 10),
)
def crowded(small: int = 10, xi: float = 2.0, size: float = 0.0, second: float = 0.0) -> Challenge:
    """Build an instance in which ``small`` = m short jobs wait behind two that SJF-BSBF lets share the one GPU.

    The ratio grows like m. A job of 1 s comes at 0, one of ``second`` seconds at 1e-6 (SJF-BSBF admits it), then m
    jobs of ``size`` seconds at 2e-6. The reference schedule runs these first, one by one, then the two others in
    the best way.

    Parameters
    ----------
    small
        Number m of short jobs.
    xi
        Slow-down of two jobs on a GPU.
    size
        Seconds of a short job; 0: 1 / m^2.
    second
        Seconds of the second job; 0: 0.99 times the threshold 1 / (2 xi - 2), at most 0.99.

    Returns
    -------
    Challenge
        The instance, and the sum of flow times of the reference schedule.

    Notes
    -----
    With the default ``second``, the GPU is full until the second job ends, at 0.99 xi / (2 xi - 2) > 0.49 or 0.99
    xi, so that SJF-BSBF's flow is above 0.49 m. With size 1 / m^2 the reference is below 5 for m >= 2: the short
    jobs take 1/2 + 1/(2 m), the other two less than 3 + 2 / m. Hence the ratio is at least m / 11 for every xi.
    The same holds for SJF-FFS, and for SJF, where the short jobs wait for 1 s.
    """
    check_legal(small >= 1, "small", small, "an integer >= 1")
    check_legal(1 <= xi < math.inf, "xi", xi, "a finite number >= 1")
    check_legal(min(size, second) >= 0 and max(size, second) < math.inf, "size, second", (size, second), "seconds >= 0")
    short = size or 1 / small**2
    admitted = second or JUST_BELOW * min(float(share_threshold(xi, xi)), 1.0)
    jobs = [Job("long", duration=1), Job("second", arrival=SECOND, duration=admitted)]
    jobs += [Job(f"short-{i}", arrival=OTHERS, duration=short) for i in range(small)]
    instance = Instance(jobs, "1x1", f"crowded-{small}", "total_flow_time", interference=Interference(xi))
    each, after = Fraction(short), Fraction(OTHERS) + small * Fraction(short)
    pair = sharing_pair(Fraction(1), Fraction(admitted), Fraction(xi), Fraction(xi))
    both = after + (after - Fraction(SECOND)) + Fraction(pair.preemptive_sum)
    return Challenge(instance, each * small * (small + 1) / 2 + both)


def always_shared_ratio(first: Fraction, second: Fraction, gap: Fraction = Fraction(0)) -> Fraction:
    """Return SJF-FFS's exact ratio by the theorem of the module.

    Parameters
    ----------
    first, second
        Slow-downs xi_1 and xi_2.
    gap
        r / R, at least 0: the time between the releases, over what is then left of the first job.
    """
    q = first / second
    return max(Fraction(1), (gap + 2 * first) / (gap + min(1 + 2 * q, 2 + q)))


def _sharing_ratio(policy: Any, run: Run) -> Fraction:
    pair = two_sharers(run.instance)
    return always_shared_ratio(pair.first, pair.second, pair.gap / pair.left) if pair.left > 0 else Fraction(1)


@family(
    "two jobs of 1 s at once on a GPU that they may share, xi = k",
    policy="sjf-ffs",
    objective="total_flow_time",
    ratio=lambda k: max(Fraction(1), Fraction(2 * k, 3)),
    limit="2 xi / 3",
)
def equal_sharers(k: int = 4) -> Instance:
    """Build an instance of two jobs of 1 s at once, xi = k: together both end at k, in turn at 1 and 2.

    Parameters
    ----------
    k
        Slow-down of two jobs on a GPU, at least 2.
    """
    check_legal(k >= 2, "k", k, "an integer >= 2")
    optimum = stating(3, "total_flow_time", "gpu-sharing", NO_GAIN)
    jobs = [Job(name, duration=1) for name in "ab"]
    return Instance(
        jobs, "1x1", f"equal-sharers-{k}", "total_flow_time", optimum=optimum, interference=Interference(float(k))
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
    tight=TightFamily("two equal jobs at once", equal_sharers),
    schedule_class="gpu-sharing",
)


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
    assumptions=all_of(any_free_gpus, cannot_run_apart),
    ratio=_alone_ratio,
    tight=TightFamily("a long job, then one that takes next to nothing (a limit)"),
    schedule_class="gpu-sharing",
)
