"""Weighted completion times: Smith's rule as a list, with preemption, and by alpha points of what it does with preemption.

**Identical machines**: (1 + sqrt 2) / 2 = 1.2071 (Kawaguchi and Kyan 1986). `sand`: where w_j = p_j every order is one of
Smith's rule, and sum w_j C_j = (sum_i L_i^2 + sum_j p_j^2) / 2 for loads L_i, so that only the loads count. Smith's rule
spreads m N unit jobs evenly and puts k jobs of length L on top; the best schedule gives each of these a machine of its own
and the other m - k machines the rest, if these are loaded no more. For N -> inf the ratio is largest at L / N = m (1 +
sqrt(2m/k - 1)) / (2 (m - k)); with k/m -> 1 - sqrt(1/2), L / N -> 1 + sqrt 2.

**With preemption**, jobs in the order of Smith's ratio: C_j <= r_j + p_j + sum_{k < j} p_k / m (the audit).

**Alpha points** (Goemans, Queyranne, Schulz, Skutella and Wang 2002) on one machine, against the linear program. **At
random**, in expectation and for every draw. Preemptive WSPT is optimal for the linear program (`LpSchedule` of
`optsched.solvers.methods.lp_order`), with mean busy times M_j and LP = sum w_j (M_j + p_j / 2) <= OPT. t_j(a) is when a
part a of j is done there, eta_k(t) the part of k that is done by t.

**Every draw** C_j <= B_j = t_j + sum_k (1 + alpha_k - eta_k) p_k, t_j = t_j(alpha_j), eta_k = eta_k(t_j), over the k with
alpha_k <= eta_k, j among them (the audit). Proof: since some k started at its alpha point t_k <= t_j the machine has not
idled, so that C_j - t_k is the p_l of those whose points are in [t_k, t_j]; a part eta_l - alpha_l of each, at least, was
done in that time.

**In expectation** E B_j <= c (M_j + p_j / 2), c = 1.6853, for independent alpha_j of density f(a) = e^a / (e^delta - 1) on
[0, delta], delta = 0.8999. Proof: while j is under way, a job that began before j has done a constant part eta_k, and a job
that interrupts j when a part mu_k of it is done is done before j goes on. So t_j(a) = idle time + sum eta_k p_k +
sum_{mu_k < a} p_k + a p_j, and M_j is the same with (1 - mu_k) p_k and p_j / 2. As int_0^eta f(a) (1 + a - eta) da <=
(c_1 - 1) eta, c_1 = 1 + 1 / (e^delta - 1) = 1.68524, the former cost c_1 eta_k p_k at most; the latter cost (1 + E alpha)
p_k if mu_k < alpha_j, and j itself (1 + E alpha) p_j. It remains that (1 + E alpha) P(alpha > mu) <= c (1 - mu) for all mu
in [0, 1]: left / right is largest, 1.68527 / c, near mu = 0.4835.
For one alpha for all, delta = 0.85106, what remains is int_mu^delta f(a) (1 + a) da <= c (1 - mu), c = 1.7451.

`late_short_job`: the expectation is that, but for the last digits. A job of length 1 and no weight comes at 0, a short one
of weight 1 at some time eta < delta. If alpha of the former is at most eta, it is in the way of the latter until 1 + alpha;
the expected completion is eta + int_0^eta f(a) (1 + a - eta) da = c_1 eta, and eta is possible: 1.68524, with one alpha for
all 1.74509.

**Offline** (Hall, Schulz, Shmoys and Wein 1997; Goemans et al. 2002): the best order of the program. 1 | r_j | sum w_j C_j,
M_j the mean busy times of the linear program and LP = sum w_j (M_j + p_j / 2) <= OPT: in the order of M_j every job has C_j
<= 3 M_j (the audit), so that the sum is at most 3 LP; the best order of alpha points with one alpha for all costs at most
1.7451 LP: it does in expectation, and ``lp-order`` tries one alpha of every interval in which the order is the same.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.assumptions import (
    all_of,
    known_durations,
    no_restart_cost,
    one_machine,
    parallel_machines,
    parallel_machines_over_time,
)
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee, in_time
from optsched.guarantees.judge import method_theorem
from optsched.guarantees.optimum import stating
from optsched.policies.queue_orders import smith_ratio
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run

if TYPE_CHECKING:
    from optsched.solvers.methods.lp_order import LpSchedule

OBJECTIVE = "total_weighted_completion_time"
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
    objective=OBJECTIVE,
    ratio=lambda m, grains: (made := _sand(m, grains)).by_smiths_rule / made.optimum,
    limit="(1 + sqrt 2) / 2 for many machines and grains",
    sizes=(2, 4, 10),
)
def sand(m: int = 4, grains: int = 8) -> Instance:
    """m (m - k) ``grains`` unit jobs, then k long ones, w_j = p_j: Smith's rule puts the long ones on top of the sand.

    Parameters
    ----------
    m
        Number of machines.
    grains
        Unit jobs (the sand) on each machine, divided by m - k.
    """
    made = _sand(m, grains)
    lengths = [*[1] * (m * made.fine), *[made.length] * made.long]
    jobs = [Job(f"{j}", duration=length, weight=length) for j, length in enumerate(lengths)]
    optimum = stating(int(made.optimum), OBJECTIVE, "gang-nonpreemptive", "loads are as equal as they can be")
    return Instance(jobs, f"1x{m}", f"sand-{m}-{grains}", OBJECTIVE, optimum=optimum)


WSPT = guarantee(
    id="wspt-parallel-machines",
    statement="P || sum w_j C_j: Smith's rule <= (1 + sqrt 2) / 2 OPT, and optimal on one machine",
    knowledge="clairvoyant",
    source="Kawaguchi and Kyan 1986; one machine: Smith 1956",
    status="published",
    proof=(
        "One machine: exchanging two neighbours in the wrong order gains. More: the worst instances have w_j = p_j, since a"
        " list by p_j / w_j is a sum of nested lists in which all these ratios are equal; there only the loads count, jobs "
        "that are no longer than the least load may be ground to sand, and what is left is to maximise a function of k / m "
        "and L."
    ),
    objective=OBJECTIVE,
    policies=("wspt",),
    assumptions=parallel_machines,
    ratio=lambda policy, run: Fraction(1) if run.instance.cluster.gpus == 1 else BOUND,
    tight=TightFamily("sand, then k long jobs, w_j = p_j; a limit for many machines", sand, exact=False),
    schedule_class="gang-nonpreemptive",
)


def _after_smaller_ratios(run: Run) -> Floats:
    instance, p = run.instance, run.instance.duration
    order = np.lexsort((np.arange(instance.n), smith_ratio(p, instance.weight)))
    before = np.empty(instance.n)
    before[order] = np.cumsum(p[order]) - p[order]
    return instance.arrival + p + before / instance.cluster.gpus


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
    objective=OBJECTIVE,
    ratio=_lost_by_overtaking,
    limit="2 for many jobs, about 2 - 2 / (n + 1)",
    sizes=(2, 5, 20, 100),
)
def overtaking(n: int = 5) -> Instance:
    """n jobs of q = n^2 s, r_k = k (q - 1), each a little heavier than the one before: each stops it a second too early.

    For equal weights first come, first served is optimal, at q, 2 q, ..., n q: no job k can complete before (k + 1) q. So
    no other schedule has as small a sum, all data are integers, and the weights W + k are too alike to make up for a second.

    Parameters
    ----------
    n
        Number of jobs.
    """
    check_legal(n >= 2, "n", n, "an integer >= 2")
    q, w = n * n, _base_weight(n)
    jobs = [Job(f"{k}", arrival=k * (q - 1), duration=q, weight=w + k) for k in range(n)]
    optimum = stating(
        sum((w + k) * (k + 1) * q for k in range(n)), OBJECTIVE, "gang", "unique optimum of equal weights"
    )
    return Instance(jobs, "1x1", f"overtaking-{n}", OBJECTIVE, optimum=optimum)


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
    objective=OBJECTIVE,
    policies=("preemptive-wspt",),
    assumptions=all_of(no_restart_cost, parallel_machines_over_time),
    ratio=lambda policy, run: Fraction(2),
    audit=in_time(_after_smaller_ratios),
    tight=TightFamily("alike jobs that overtake each other just before their end; a limit", overtaking, exact=False),
)


# --- alpha points --------------------------------------------------------------------------------------------------------

ALPHA_POINTS = guarantee(
    id="alpha-points",
    statement="1 | r_j, online-r_j | sum w_j C_j: alpha points <= max(1 + 1 / alpha, 1 + 2 alpha) OPT",
    knowledge="clairvoyant",
    source="Goemans, Queyranne, Schulz, Skutella and Wang 2002",
    status="recollected",
    proof=(
        "Preemptive WSPT is the optimum of the linear program in mean busy times, C_j >= M_j + p_j / 2. From the alpha "
        "point t_j of j on only jobs with earlier points run before it, so that C_j <= t_j + their p_k + p_j; a part alpha "
        "of each of them was done before t_j. Added up with weights over the order of WSPT, that is at most the factor "
        "times the program's sum w_j (M_j + p_j / 2)."
    ),
    objective=OBJECTIVE,
    policies=("alpha-points",),
    assumptions=all_of(one_machine, known_durations),
    ratio=lambda policy, run: max(1 + 1 / Fraction(policy.alpha), 1 + 2 * Fraction(policy.alpha)),
    tight=TightFamily(
        "not known to be tight; drawn at random (random-alpha-points) 1.6853 in expectation", exact=False
    ),
)


FACTOR_APART, FACTOR_COMMON = Fraction(16853, 10000), Fraction(17451, 10000)


def program_of(instance: Instance) -> LpSchedule:
    """Return the schedule of the linear program, with times from the first arrival and ties broken as in the policies.

    Parameters
    ----------
    instance
        Jobs on one machine.
    """
    from optsched.solvers.methods.lp_order import LpSchedule  # solvers take longer to import than most runs

    instance = instance.relative
    ratio = np.divide(instance.duration, instance.weight, out=np.full(instance.n, np.inf), where=instance.weight > 0)
    return LpSchedule.of(instance.arrival.tolist(), instance.duration.tolist(), leading(ratio).tolist())


def limits(instance: Instance, alpha: Floats) -> Floats:
    """Return B_j, the latest completion of every job, in seconds from the first arrival, f64[n]. Complexity O(n^2).

    Parameters
    ----------
    instance
        Jobs on one machine.
    alpha
        Draws of alpha, f64[n].
    """
    program = program_of(instance)
    p = np.array([float(each) for each in program.seconds])
    point = np.array([float(t) for t in program.points([Fraction(a) for a in alpha.tolist()])])
    found = point.copy()
    for k, mine in enumerate(program.of_job):
        times = [float(t) for each in mine for t in (each.start, each.end)]
        parts = [float(share) for each in mine for share in (each.before, each.after)]
        done = np.interp(point, times, parts)
        done[k] = alpha[k]  # but for rounding it is
        found += np.where(done >= alpha[k], (1 + alpha[k] - done) * p[k], 0.0)
    return found


def _drawn_ratio(policy: Any, run: Run) -> float:
    run = run.relative
    least = float(program_of(run.instance).value(run.instance.weight.tolist()))
    allowed = float(run.instance.weight @ limits(run.instance, np.asarray(run.notes["alpha"])))
    return allowed / least if least else 1.0


@family(
    "a long job of no weight, and a short one that comes before it could be done",
    policy="random-alpha-points",
    objective=OBJECTIVE,
    limit="1.68524 in expectation for long jobs, 1.74509 with one alpha for all",
    sizes=(10, 100, 1000),
)
def late_short_job(length: int = 1000) -> Instance:
    """A job of ``length`` s and weight 0 at 0, and one of 1 s when four fifths of it could be done, best served at once.

    Parameters
    ----------
    length
        Length of the long job, in seconds; a multiple of 5.
    """
    check_legal(length >= 5 and length % 5 == 0, "length", length, "a multiple of 5")
    come = 4 * length // 5
    jobs = [Job("long", duration=length, weight=0), Job("short", arrival=come, duration=1)]
    optimum = stating(come + 1, OBJECTIVE, "gang", "the short job at once")
    return Instance(jobs, "1x1", f"late-short-job-{length}", OBJECTIVE, optimum=optimum)


RANDOM_ALPHA_POINTS = guarantee(
    id="random-alpha-points",
    statement=(
        "1 | r_j, online-r_j | sum w_j C_j: random alpha points <= 1.6853 OPT in expectation, <= 1.7451 OPT with one alpha "
        "for all; and <= (sum w_j B_j / LP) OPT for what was drawn"
    ),
    notation="1 | r_j, online-r_j | sum w_j C_j",
    knowledge="clairvoyant",
    source="Goemans, Queyranne, Schulz, Skutella and Wang 2002",
    status="proved",
    proof=(
        "From the alpha point t_j of j on only jobs with earlier points run before it: C_j <= B_j = t_j + sum_k (1 + alpha_k"
        " - eta_k) p_k, eta_k the part of k that preemptive WSPT has done by t_j, over alpha_k <= eta_k. Integrated over the"
        " density e^a / (e^delta - 1), a job that began before j costs c eta_k p_k at most, one that interrupts j at its "
        "part mu_k (1 + E alpha) P(alpha_j > mu_k) p_k <= c (1 - mu_k) p_k, and j itself (1 + E alpha) p_j: together c (M_j "
        "+ p_j / 2), c = 1.6853."
    ),
    objective=OBJECTIVE,
    policies=("random-alpha-points",),
    assumptions=all_of(one_machine, known_durations),
    ratio=_drawn_ratio,
    audit=in_time(lambda run: limits(run.instance, np.asarray(run.notes["alpha"]))),
    tight=TightFamily(
        "in expectation, up to the last digit: a short job after a long one", late_short_job, exact=False
    ),
)


def _late_in_the_order(instance: Instance) -> list[str]:
    from optsched.solvers.methods.lp_order import lp_orders

    program = program_of(instance)
    done = program.one_after_the_other(next(lp_orders(program)))
    # orders are by the leading digits of M_j
    late = [j for j, c in enumerate(done) if c > 3 * program.mean_busy[j] * (1 + Fraction(1, 10**11))]
    return [f"job {instance.ids[j]!r} completes at {float(done[j]):.9g}, after 3 M_j" for j in late]


LP_ORDER = method_theorem(
    id="lp-order",
    statement="1 | r_j | sum w_j C_j: the best order of alpha points <= 1.7451 OPT; that of mean busy times <= 3 OPT",
    source="Hall, Schulz, Shmoys and Wein 1997 (3); Goemans, Queyranne, Schulz, Skutella and Wang 2002 (1.7451)",
    status="proved",
    proof=(
        "Of the jobs S up to j in the order of mean busy times p(S) M_j >= sum p_k M_k >= p(S)^2 / 2 and r_k <= M_k <= M_j: "
        "C_j <= max r_k + p(S) <= 3 M_j. With one alpha of density e^a / (e^delta - 1) for all jobs the expected cost is "
        "within 1.7451 of the linear program (random-alpha-points), and the best alpha costs no more."
    ),
    objective=OBJECTIVE,
    method="lp-order",
    ratio=FACTOR_COMMON,
    proves=lambda instance: program_of(instance).value(instance.weight.tolist()),
    audit=_late_in_the_order,
)
