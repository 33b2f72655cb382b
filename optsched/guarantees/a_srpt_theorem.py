"""A-SRPT: total completion time within a constant of the optimum, given the communication sensitivity of the jobs.

A guarantee of the kind that Luo, Liu, Lee and Shroff announce for A-SRPT (arXiv 2501.05563); statement and constant are
this project's own. G GPUs, g_j gang, n_j length, alpha seconds a unit of length (1 for a job with a duration):

* rho = max slowest / fastest alpha, split by the nominal alpha of the virtual machine: rho_1 = max nominal / fastest,
  rho_2 = max slowest / nominal. kappa = G / (G - g_max + 1).
* lam_o, lam_u >= 1: the worst factors by which a prediction was above and below the true length.
* B_j: when SRPT on the virtual machine, with lengths p_j = g_j predicted_j nominal_j / G, has done beta p_j of job j.

* sigma: ``overtake``. What runs out of turn between B_j and the start of j is charged at most sigma G B_j GPU-seconds.

Per job, C_j <= (1 + (tau + lam_u rho_2 kappa) / beta + lam_u sigma kappa) B_j + n_j slowest_j. All jobs up to j in the queue
have sum p_k <= B_j / beta. From B_j to its start let b(t) GPUs be busy, b' = b / (G - g_max + 1). The integral of b' is at
most kappa times lam_u rho_2 B_j / beta, for jobs up to j, plus lam_u sigma B_j, for those out of turn (what was charged
lasts at most lam_u times as long as predicted). Where b' < 1 the head fits and waits for a better place by its own choice;
it counts 1 - b' of each such second, to at most tau p_k. So the time from B_j to the start, the integral of b' + (1 - b')^+
at least, is at most the sum of all three. Summed up, with sum B_j <= lam_o rho_1 OPT (SRPT is optimal on the relaxation)
and sum n_j slowest_j <= rho OPT, it gives the theorem.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.check.referee import schedule_value
from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_of, any_free_gpus, one_gpu_type, own_network, policy_is
from optsched.guarantees.family import Challenge, family
from optsched.guarantees.guarantee import SHOWN_JOBS, TightFamily, guarantee, late, late_findings
from optsched.policies.simulate import specify
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule
from optsched.simulation.run import Run
from optsched.speeds.duration import paces

TIE = 1e-9  # relative: virtual lengths that differ by rounding alone may be served in either order


@dataclass(frozen=True)
class Factors:
    """The factors of the theorem of A-SRPT.

    Attributes
    ----------
    tau, beta, overtake
        Parameters of the policy.
    rho
        Slowest over fastest pace of a job, the largest.
    rho_1, rho_2
        Its split at the pace that the virtual machine takes.
    kappa
        G / (G - g_max + 1).
    over, under
        The worst factors, >= 1, by which a prediction was above and below the truth.
    """

    tau: float
    beta: float
    rho: float
    rho_1: float
    rho_2: float
    kappa: float
    over: float
    under: float
    overtake: float

    @property
    def of_beta_point(self) -> float:
        """Factor of its beta point by which a job starts at the latest."""
        in_turn = (self.tau + self.under * self.rho_2 * self.kappa) / self.beta
        return 1 + in_turn + self.under * self.overtake * self.kappa

    @property
    def ratio(self) -> float:
        """The factor of the theorem."""
        return self.over * self.rho_1 * self.of_beta_point + self.rho


def virtual_srpt(arrival: Floats, length: Floats, beta: float = 1.0) -> Floats:
    """Return when preemptive SRPT on a unit machine has done the part ``beta`` of every job, f64[n] seconds.

    The machine serves the smallest (remaining, index), so that an arrival preempts only if it is strictly smaller (or
    equal, with a smaller index).

    Parameters
    ----------
    arrival
        Release dates in seconds, f64[n], in any order.
    length
        Lengths in seconds, f64[n].
    beta
        Part of a job, in (0, 1].

    Notes
    -----
    Complexity O(n log n).

    References
    ----------
    Schrage 1968; beta points: Phillips, Stein and Wein 1998.
    """
    n, r, p = arrival.size, arrival.tolist(), length.tolist()
    order = np.lexsort((np.arange(n), arrival)).tolist()
    point: list[float | None] = [None] * n
    waiting: list[tuple[float, int]] = []  # (remaining, job)
    now, following = 0.0, 0
    while waiting or following < n:
        if not waiting:
            now = max(now, r[order[following]])
        while following < n and r[order[following]] <= now:
            heapq.heappush(waiting, (p[order[following]], order[following]))
            following += 1
        left, j = heapq.heappop(waiting)
        until, after = now + left, 0.0
        if following < n and r[order[following]] < until:
            until = r[order[following]]
            after = max(0.0, left - (until - now))
        left_at_point = (1.0 - beta) * p[j]
        if point[j] is None and after <= left_at_point:
            point[j] = now + (left - left_at_point)
        if after > 0.0:
            heapq.heappush(waiting, (after, j))
        now = until
    return np.array(point, dtype=np.float64)


def _nominal(policy: Any, run: Run, fastest: Floats, slowest: Floats) -> Floats:
    """Nominal alphas, f64[n]; those of Heavy-Edge on an idle cluster are what the policy noted (any would serve)."""
    if policy.virtual_alpha != "heavy-edge":
        return {"min": fastest, "max": slowest}[policy.virtual_alpha]
    instance = run.instance
    return run.notes["virtual_length"] * instance.cluster.gpus / (instance.gpus * _predicted(run))


def _predicted(run: Run) -> Floats:
    """Return the lengths that were predicted at the arrivals, f64[n]."""
    if run.predicted is None:
        raise ValueError(f"the run of {run.policy} does not say what was predicted")
    return run.predicted


def factors(policy: Any, run: Run) -> Factors:
    """Return the factors of the theorem for a run.

    Parameters
    ----------
    policy
        The policy.
    run
        Its run.
    """
    instance = run.instance
    if instance.n == 0:
        return Factors(policy.tau, policy.beta, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, policy.overtake)
    fastest, slowest = paces(instance)
    nominal = _nominal(policy, run, fastest, slowest)
    predicted, gpus = _predicted(run), instance.cluster.gpus
    with np.errstate(over="ignore"):  # an absurd prediction: the factor is infinite, and promises nothing
        over, under = float((predicted / instance.work).max()), float((instance.work / predicted).max())
    return Factors(
        tau=policy.tau,
        beta=policy.beta,
        rho=float((slowest / fastest).max()),
        rho_1=float((nominal / fastest).max()),
        rho_2=float((slowest / nominal).max()),
        kappa=gpus / (gpus - int(instance.gpus.max()) + 1),
        over=max(1.0, over),
        under=max(1.0, under),
        overtake=policy.overtake,
    )


def a_srpt_factors(run: Run) -> Factors:
    """Return the factors of A-SRPT's theorem for a run of ``a-srpt``. Complexity O(n).

    ``.ratio`` is the guarantee, ``.rho`` the cost of the worst placement, ``.kappa`` the cost of wide gangs; see
    `optsched.guarantees.a_srpt_theorem`.

    Parameters
    ----------
    run
        The run.

    Raises
    ------
    InputError
        The run is of another policy.
    """
    return factors(_policy_of(run), run)


def a_srpt_limits(run: Run) -> Floats:
    """Return the latest completion of each job of a run of ``a-srpt`` by the theorem, f64[n], seconds on its clock.

    It is the inequality C_j <= (...) B_j + n_j slowest_j of the module, which adds up to the guarantee and is audited
    in every run that reports one. Complexity O(n log n).

    Parameters
    ----------
    run
        The run.

    Raises
    ------
    InputError
        The run is of another policy.
    """
    return _limits(_policy_of(run), run.relative)[0] + run.instance.epoch


def _policy_of(run: Run) -> Any:
    policy = specify(run.policy).policy if run.policy.partition(":")[0].partition("+")[0] in A_SRPT.policies else None
    check_legal(policy is not None, "run", run.policy, "a run of a-srpt")
    return policy


def _limits(policy: Any, run: Run) -> tuple[Floats, Floats, Floats, float]:
    """Latest completions, and what they are made of: virtual lengths, slowest alphas, and the factor of beta points."""
    instance = run.instance
    fastest, slowest = paces(instance)
    length = instance.gpus * _predicted(run) * _nominal(policy, run, fastest, slowest) / instance.cluster.gpus
    factor = factors(policy, run).of_beta_point
    return (
        factor * virtual_srpt(instance.arrival, length, policy.beta) + instance.work * slowest,
        length,
        slowest,
        factor,
    )


def _audit(policy: Any, run: Run) -> list[str]:
    run = run.relative  # what was noted counts from the first arrival
    instance, beta = run.instance, policy.beta
    limit, length, slowest, factor = _limits(policy, run)
    suspects = late(run, limit)
    for j in suspects[:SHOWN_JOBS].tolist():
        # Equal lengths, computed in another order, may be served in the other order: let the suspect lose its ties.
        longer = np.where(np.arange(instance.n) == j, length * (1 + TIE), length)
        limit[j] = factor * virtual_srpt(instance.arrival, longer, beta)[j] + instance.work[j] * slowest[j]
    return late_findings(run, limit)


A_SRPT = guarantee(
    id="a-srpt",
    statement=(
        "P | r_j, size_j | sum C_j: A-SRPT <= (lam_o rho_1 (1 + (tau + lam_u rho_2 kappa) / beta + lam_u sigma kappa) + "
        "rho) OPT, kappa = G / (G - g_max + 1), sigma = overtake"
    ),
    notation="P | r_j, size_j, online-r_j | sum C_j",
    knowledge="predicted",
    source="optsched, in the manner of Luo, Liu, Lee and Shroff 2025",
    status="proved",
    proof=(
        "C_j <= (1 + (tau + lam_u rho_2 kappa) / beta + lam_u sigma kappa) B_j + n_j slowest_j for every job: all jobs up "
        "to j in the queue have done beta of their virtual length by B_j, those out of turn are charged at most sigma G "
        "B_j GPU-seconds, the head waits for a better place at most tau p_k seconds, each counted by the idle share of G - "
        "g_max + 1 GPUs, and while it does not fit all of these are busy. SRPT is optimal on the machine as fast as the "
        "cluster, so the B_j add up to at most lam_o rho_1 OPT."
    ),
    objective="total_completion_time",
    policies=("a-srpt",),
    assumptions=all_of(
        one_gpu_type,
        any_free_gpus,
        own_network,
        policy_is(lambda policy: policy.overtake < math.inf, "overtake=inf may let a job wait for ever"),
    ),
    ratio=lambda policy, run: factors(policy, run).ratio,
    audit=_audit,
    tight=TightFamily("not known to be tight; kappa is needed where sigma = 0: the family kappa, ratio about G / 2"),
)


# Families on which scheduling rules lose much, for P | r_j, size_j | sum C_j on one node, each with a feasible schedule that
# does not: what a policy makes divided by that is a proven lower bound on its ratio. They are our own.

STEP = 1e-6  # s: what sets the lengths of the kappa family apart
SHORT = 1e-8  # s: length of the wide jobs of the starvation family
LATE = 1.0001  # s: their release, when two narrow jobs run


def _challenge(jobs: list[Job], gpus: int, starts: list[float], name: str) -> Challenge:
    instance = Instance(jobs, f"1x{gpus}", name, "total_completion_time")
    better = Schedule.from_starts(instance, starts, policy="better")
    return Challenge(instance, schedule_value(instance, better, "total_completion_time"), better)


@family(
    "pairs of a narrow and a cluster-wide job that are alike to SRPT on a machine as fast as the cluster",
    policy="a-srpt:overtake=0",
    objective="total_completion_time",
    limit="(G + 1) / 2 for many pairs",
    sizes=(4,),
)
def kappa(gpus: int = 4, pairs: int = 100) -> Challenge:
    """Narrow and cluster-wide jobs in turn: every strict order of SRPT's completions loses about G / 2.

    ``pairs`` pairs on G = ``gpus`` GPUs, all released at 0: one of (1 GPU, 1 + 2k 1e-6 s) and one of (G GPUs,
    (1 + (2k+1) 1e-6) / G s). On a machine as fast as the cluster they are all but alike, so SRPT completes them in turn,
    and on the cluster every narrow job leaves G - 1 GPUs idle. Better: all wide jobs first, then the narrow ones G at a
    time. For many pairs the ratio tends to (1 + 1/G) / (2/G) = (G + 1) / 2.

    Parameters
    ----------
    gpus
        Number of GPUs of the one node, G.
    pairs
        Number of pairs of jobs.
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
    return _challenge(jobs, gpus, starts, f"kappa-{gpus}-{pairs}")


@family(
    "narrow jobs that keep coming hold wide ones up",
    policy="a-srpt:overtake=inf",
    objective="total_completion_time",
    limit="about n: no constant",
    sizes=(4,),
)
def starvation(n: int = 10) -> Challenge:
    """Narrow jobs that keep coming delay wide ones: overtaking without a budget loses a factor that grows with n.

    On 2 GPUs: n narrow jobs (1 GPU, 2 s, released at 0, 1, 2, ...) and 10 n^2 wide ones (2 GPUs, 1e-8 s, released at
    1.0001). Better: the wide jobs as soon as they come, then the narrow ones in order.

    Parameters
    ----------
    n
        Number of narrow jobs.
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
    return _challenge(jobs, 2, starts, f"starvation-{n}")
