"""Families of instances on which scheduling rules lose much, each with a schedule that does not: limits of the theorems.

Those with a `Limit` are for P | r_j, size_j | sum C_j on one node. `Limit.better` is a feasible schedule, so OPT <=
``reference``, and what a policy makes divided by it is a proven lower bound on the policy's ratio. The families are our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from optsched.check.referee import schedule_value
from optsched.errors import check_legal
from optsched.guarantees.family import family
from optsched.guarantees.optimum import stating
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule

STEP = 1e-6  # s: what sets the lengths of the kappa family apart
SHORT = 1e-8  # s: length of the wide jobs of the starvation family
LATE = 1.0001  # s: their release, when two narrow jobs run


@dataclass(frozen=True)
class Limit:
    """An instance, a schedule of it, and the value of that schedule: total completion time in seconds."""

    instance: Instance
    better: Schedule

    @property
    def reference(self) -> float:
        """sum C_j of ``better``: no optimum is larger."""
        return float(self.exact)

    @property
    def exact(self) -> Fraction:
        """The same as a fraction."""
        return schedule_value(self.instance, self.better, "total_completion_time")


def kappa_family(gpus: int, pairs: int = 400) -> Limit:
    """Narrow and cluster-wide jobs in turn: every strict order of SRPT's completions loses about G / 2.

    ``pairs`` pairs on G = ``gpus`` GPUs, all released at 0: one of (1 GPU, 1 + 2k `STEP` s) and one of (G GPUs,
    (1 + (2k+1) `STEP`) / G s). On a machine as fast as the cluster they are all but alike, so SRPT completes them in turn,
    and on the cluster every narrow job leaves G - 1 GPUs idle. ``better``: all wide jobs first, then the narrow ones G at a
    time. For ``pairs`` -> inf the ratio tends to (1 + 1/G) / (2/G) = (G + 1) / 2.
    """
    check_legal(gpus >= 2, "gpus", gpus, "an integer >= 2")
    check_legal(pairs >= 1, "pairs", pairs, "an integer >= 1")
    jobs, starts, now = [], [0.0] * (2 * pairs), 0.0
    for k in range(pairs):
        jobs.append(Job(f"narrow-{k}", duration=1 + 2 * k * STEP))
        jobs.append(Job(f"wide-{k}", gpus=gpus, duration=(1 + (2 * k + 1) * STEP) / gpus))
        starts[2 * k + 1] = now
        now += jobs[-1].duration or 0.0
    free = [now] * gpus
    for k in range(pairs):
        lane = k % gpus  # the lengths grow, so the lane that took its last job first is free first
        starts[2 * k], free[lane] = free[lane], free[lane] + (jobs[2 * k].duration or 0.0)
    return _limit(jobs, gpus, starts, f"kappa-{gpus}-{pairs}")


def starvation_family(n: int) -> Limit:
    """Narrow jobs that keep coming hold wide ones up: overtaking without a budget loses a factor that grows with n.

    On 2 GPUs: ``n`` narrow jobs (1 GPU, 2 s, released at 0, 1, 2, ...) and 10 n^2 wide ones (2 GPUs, `SHORT` s, released at
    `LATE`). ``better``: the wide jobs as soon as they come, then the narrow ones in order.
    """
    check_legal(n >= 2, "n", n, "an integer >= 2")
    wide = 10 * n * n
    jobs = [Job(f"narrow-{k}", arrival=k, duration=2) for k in range(n)]
    jobs += [Job(f"wide-{k}", arrival=LATE, gpus=2, duration=SHORT) for k in range(wide)]
    starts, now = [0.0] * (n + wide), LATE
    for k in range(wide):
        starts[n + k] = now
        now += SHORT
    free = [now, now]
    for k in range(n):
        starts[k] = max(float(k), free[k % 2])
        free[k % 2] = starts[k] + 2
    return _limit(jobs, 2, starts, f"starvation-{n}")


def _limit(jobs: list[Job], gpus: int, starts: list[float], name: str) -> Limit:
    instance = Instance(jobs, f"1x{gpus}", name, "total_completion_time")
    return Limit(instance, Schedule.from_starts(instance, starts, policy="better"))


@family(
    "pairs of a narrow and a cluster-wide job that are alike to SRPT on a machine as fast as the cluster",
    policy="a-srpt:overtake=0",
    objective="total_completion_time",
    reference=lambda gpus, pairs: kappa_family(gpus, pairs).exact,
    limit="(G + 1) / 2 for many pairs",
    sizes=(4,),
)
def kappa(gpus: int = 4, pairs: int = 100) -> Instance:
    """See `optsched.guarantees.families.kappa_family`."""
    return kappa_family(gpus, pairs).instance


@family(
    "narrow jobs that keep coming hold wide ones up",
    policy="a-srpt:overtake=inf",
    objective="total_completion_time",
    reference=lambda n: starvation_family(n).exact,
    limit="about n: no constant",
    sizes=(4,),
)
def starvation(n: int = 10) -> Instance:
    """See `optsched.guarantees.families.starvation_family`."""
    return starvation_family(n).instance


@family(
    "two jobs on one GPU, n = 2^k - 1: the first to come takes it for n s, the other one is worth n times as much",
    policy="hadar-commit:round=1",
    objective="total_utility",
    ratio=lambda k: Fraction((2**k - 1) * (2**k + 1), 2 ** (k + 1) - 1),
    limit="n (n + 2) / (2 n + 1), about n / 2: no constant for jobs as large as a resource",
    theorem="hadar-commit",
    sizes=(1, 2, 3, 4, 6),
)
def sold_out(k: int = 4) -> Instance:
    """Two jobs at once on one GPU, n = 2^k - 1: one of n s and weight 1, one of 1 s and weight n.

    The first is offered a plan when nothing is sold, and buys all seconds up to n; the second gets the one after, where it
    is worth n / (n + 1). The other way round they are worth n and n / (n + 1), and no schedule has more, since one of them
    is done last.
    """
    check_legal(1 <= k <= 12, "k", k, "an integer in 1..12")
    n = 2**k - 1
    jobs = [Job("first", duration=n), Job("second", duration=1, weight=n)]
    optimum = stating(float(n + Fraction(n, n + 1)), "total_utility", "gang", "the second job first")
    return Instance(jobs, "1x1", f"sold-out-{n}", "total_utility", optimum=optimum)
