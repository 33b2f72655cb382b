"""Unrelated machines, p_ij seconds of job j on machine i: what the prices of linear programs prove, exactly, of every run.

**Makespan** (Lenstra, Shmoys and Tardos 1990): rounding is within twice the optimum. `torn_job`: on each of m machines m -
1 jobs of 1 s that take 2 s elsewhere, and one job of m + 1 s on any. The program is least in one point only: all at home,
since elsewhere they take more of machines that are all full, and 1/m of the long job on every machine, which makes them
equally full. Whoever gets it whole has m - 1 + m + 1 seconds. But m + 1 are enough: a machine for the long job alone, whose
own jobs go to the others, one each.

**Weighted flow time** (Anand, Garg and Kumar 2012): immediate dispatch, by a dual solution that every run leaves behind.

**Theorem** R | r_j, pmtn: on machines s > 1 times as fast immediate dispatch has sum w_j (C_j - r_j) <= (s + 1) / (s - 1)
OPT, even against migration: 1 + 2 / eps for s = 1 + eps. Proof: let W_i(t) be the weight of the jobs that are bound to
machine i and not done at t, and Q_j what j adds when it is bound. Machines serve by density, weight / seconds left, and who
runs only grows denser; so a job that comes later changes nothing in the order of the others, and ALG = sum_j Q_j =
sum_i int W_i. In the program below with theta = 1 / (s + 1) take beta_i = W_i / (s + 1) and
alpha_j = s Q_j / (s + 1), whose value is (s - 1) / (s + 1) ALG. It is feasible if for all i and t >= r_j

    s Q_ij <= p_ij W_i(t) + w_j (s (t - r_j) + p_ij),   s Q_ij = w_j (V + p_ij) + p_ij U,

Q_ij >= Q_j being what j would add on i, V the work that denser jobs have left there at r_j, U the weight of the others.
Until t at most s (t - r_j) work of these is done. If that is less than V, what is left of V is denser than j, so that the
weight of its jobs is w_j / p_ij times it or more. Otherwise what is beyond V was spent on less dense jobs: those that it has
finished weigh at most w_j / p_ij times it. Both ways W_i(t) >= U + w_j (V - s (t - r_j)) / p_ij; jobs to come only add.

The bound of a run is found without Q: the best alpha for beta_i = lambda W_i, theta and lambda tried around those of the
proof. So it is no less than the theorem says, and one at speed 1, too, where the theorem promises nothing.

**Dual solutions for weighted flow time**: lower bounds on the optimum that any run may propose.

**Problem** R | r_j, pmtn | sum w_j (C_j - r_j), p_ij seconds of job j on machine i alone; jobs may migrate.
**Program** x_ij(t) >= 0, the share of machine i that j has at time t; for any fixed theta in [0, 1]

    min sum_ij int w_j ((1 - theta) (t - r_j) / p_ij + theta) x_ij(t) dt
    sum_i int x_ij(t) / p_ij dt >= 1 for all j,   sum_j x_ij(t) <= 1 for all i, t,   x_ij(t) = 0 for t < r_j.

Of any schedule the first part is (1 - theta) w_j times how late its work is done on average, the second theta w_j times how
long j runs; neither exceeds its flow time, so no schedule costs less than this program.
**Dual** alpha_j >= 0 and functions beta_i(t) >= 0 with alpha_j <= p_ij beta_i(t) + w_j ((1 - theta) (t - r_j) + theta p_ij)
for all i, j, t >= r_j prove that the optimum is at least sum_j alpha_j - sum_i int beta_i(t) dt.

Where every beta_i is a step function the right side is least at r_j or at a later step; so the best alpha is found by
looking at all of them. Every term there is >= 0, so its float is right but for `ROUNDINGS` roundings, and a little less than
it is feasible for certain; sums are fractions. **Complexity** O(n S) with n jobs and S steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from optsched.check.referee import schedule_value
from optsched.errors import check_legal
from optsched.guarantees.assumptions import (
    all_at_once,
    all_of,
    no_restart_cost,
    one_gpu_jobs,
    own_network,
    speed_by_type,
)
from optsched.guarantees.family import Challenge, family
from optsched.guarantees.guarantee import ROUNDING, TightFamily, guarantee
from optsched.guarantees.optimum import stating
from optsched.guarantees.speed import speed_theorem
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.run import Run
from optsched.speeds.type_speeds import type_speeds


@dataclass(frozen=True, eq=False)
class UnrelatedMachines:
    """Jobs on unrelated machines, with p_ij = work / rate; a machine with rate 0 is not for that job.

    Attributes
    ----------
    release
        Release dates in seconds, f64[n].
    weight
        Weights, f64[n].
    work
        Units of work, f64[n].
    rate
        Units of work a second, f64[m, n].
    """

    release: Floats
    weight: Floats
    work: Floats
    rate: Floats

    @classmethod
    def of(cls, instance: Instance) -> UnrelatedMachines:
        """Return one machine for every GPU, in the order of nodes, for jobs of one GPU.

        Times count from the first arrival.

        Parameters
        ----------
        instance
            Jobs and a cluster.

        Raises
        ------
        InputError
            A job needs more than one GPU.
        """
        instance, cluster = instance.relative, instance.cluster
        check_legal(bool((instance.gpus == 1).all()), "gpus", "gangs", "jobs of one GPU")
        node = np.repeat(np.arange(cluster.node_count), cluster.node_gpus)
        by_type = type_speeds(instance).together[:, cluster.node_type[node]]
        suits = instance.class_eligible[instance.job_class][:, node]
        return cls(instance.arrival, instance.weight, instance.work, np.where(suits, by_type, 0.0).T)

    def seconds(self, i: int, j: int) -> Fraction | None:
        """Return p_ij, exact; None if the job may not run there.

        Parameters
        ----------
        i
            Index of the machine.
        j
            Index of the job.
        """
        rate = Fraction(float(self.rate[i, j]))
        return Fraction(float(self.work[j])) / rate if rate else None


# --- makespan ------------------------------------------------------------------------------------------------------------


FACTOR = Fraction(2)
EQUAL = Fraction(1, 2**50)  # relative: seconds that differ by no more are one limit, rounded


def least_makespan(machines: UnrelatedMachines, prices: list[Fraction], limit: Fraction) -> Fraction:
    """Return a lower bound on the makespan without preemption of jobs that are all released at 0.

    Complexity O(n m) fractions.

    Parameters
    ----------
    machines
        The jobs and machines.
    prices
        Price >= 0 of every machine, [m]; any prices give a bound.
    limit
        Seconds up to which pairs of job and machine are used; any limit gives a bound.

    Notes
    -----
    Every job takes p_ij on some machine. A schedule shorter than the least p_ij above the limit uses only pairs up to
    the limit. Its machines, machine i at the price y_i, work for no less than the sum of the least y_i p_ij of every
    job, and all of them for no longer than the makespan.
    """
    alone, together, longer = Fraction(0), Fraction(0), list[Fraction]()
    for j in range(machines.release.size):
        every = [(machines.seconds(i, j), price) for i, price in enumerate(prices)]
        seconds = [(p, price) for p, price in every if p is not None]
        alone = max(alone, min(p for p, _ in seconds))
        together += min((p * price for p, price in seconds if p <= limit), default=Fraction(0))
        longer += [p for p, _ in seconds if p > limit]
    total = sum(prices, Fraction(0))
    return max(alone, min([together / total, *longer]) if total else Fraction(0))


def _proves(policy: Any, run: Run) -> Fraction | None:
    if not run.instance.n:
        return None
    nothing = {"assignment_prices": np.zeros(run.instance.cluster.gpus), "assignment_limit": np.zeros(1)}
    notes = run.notes or nothing  # of a job alone
    prices = [Fraction(y) for y in np.asarray(notes["assignment_prices"]).tolist()]
    limit = Fraction(float(notes["assignment_limit"][0])) * (1 + EQUAL)
    return least_makespan(UnrelatedMachines.of(run.instance), prices, limit)


def _audit(policy: Any, run: Run) -> list[str]:
    """The proof's own inequality: no longer than twice what the prices of this run prove."""
    least, run = _proves(policy, run), run.relative
    if least is None or run.unfinished:
        return []
    value = schedule_value(run.instance, run.schedule, "makespan")
    if value <= FACTOR * least * (1 + Fraction(ROUNDING)):
        return []
    return [f"the makespan is {float(value):.12g}, more than twice what the prices prove, {float(least):.12g}"]


@family(
    "m - 1 jobs at home on each of m machines, and a long job that the linear program gives to all of them in parts",
    policy="lenstra-shmoys-tardos",
    objective="makespan",
    ratio=lambda m: Fraction(2 * m, m + 1),
    limit="2 for many machines",
)
def torn_job(m: int = 4) -> Instance:
    """m machines; m - 1 jobs at home on each, 1 s there and 2 s elsewhere; a job of m + 1 s on any machine: the optimum.

    The linear program divides the long job among all machines. Rounding gives the whole job to one of them, which keeps
    its own jobs.

    Parameters
    ----------
    m
        Number of machines.
    """
    check_legal(2 <= m <= 32, "m", m, "an integer in 2..32")
    machines = [f"m{i}" for i in range(m)]
    rates = {(f"of-{home}", gpu, 1): Throughput(2.0 if gpu == home else 1.0) for home in machines for gpu in machines}
    jobs = [Job(f"{home}-{k}", iterations=2, profile=f"of-{home}") for home in machines for k in range(m - 1)]
    return Instance(
        [*jobs, Job("long", duration=m + 1)],
        Cluster(tuple(NodeGroup(1, gpu=gpu) for gpu in machines)),
        name=f"torn-job-{m}",
        objective="makespan",
        throughputs=Throughputs(rates),
        optimum=stating(m + 1, "makespan", "gang-nonpreemptive", "the long job alone on a machine"),
    )


LENSTRA_SHMOYS_TARDOS = guarantee(
    id="lenstra-shmoys-tardos",
    statement="R || C_max: rounding a vertex of the linear program <= 2 OPT",
    knowledge="offline",
    source="Lenstra, Shmoys and Tardos 1990",
    status="proved",
    proof=(
        "Let T* be the least time for which the jobs, in parts, fit on the machines when no pair with p_ij > T* may be used;"
        " the optimum is one such time. A vertex of that program has no more positive variables than jobs and machines, in "
        "each of its components: jobs in parts and their machines are trees with one edge more at most, in which every such "
        "job can be given a machine of its own, where it has a part. So a machine has whole jobs that fit into T* and one "
        "more of T* at most. That T* is least is proved by the prices of the dual, in fractions, for every run."
    ),
    objective="makespan",
    policies=("lenstra-shmoys-tardos",),
    assumptions=all_of(one_gpu_jobs, all_at_once, speed_by_type, own_network),
    ratio=lambda policy, run: FACTOR,
    audit=_audit,
    proves=_proves,
    tight=TightFamily("a long job in equal parts on all machines, which have jobs of their own", torn_job, exact=False),
    schedule_class="gang-nonpreemptive",
)


# --- weighted flow time --------------------------------------------------------------------------------------------------

# relative, rounded up: a quotient, three products, a difference, two sums, and their constants
ROUNDINGS = 16 * 2.0**-53
AT_ONCE = 4_000_000  # terms in memory


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A step function of time: ``value[k]`` from ``time[k]`` on.

    Times rise; the value is 0 before the first time and from the last time on.
    """

    time: Floats
    value: Floats

    @property
    def integral(self) -> Fraction:
        """The integral over all time, exact."""
        t, v = (list(map(Fraction, each.tolist())) for each in (self.time, self.value))
        return sum((v[k] * (t[k + 1] - t[k]) for k in range(len(t) - 1)), Fraction(0))

    def times(self, factor: float) -> StepFunction:
        """Return the function multiplied by a factor.

        Parameters
        ----------
        factor
            The factor, >= 0.
        """
        return StepFunction(self.time, self.value * factor)


@dataclass(frozen=True, eq=False)
class FlowDual:
    """A dual solution: ``theta``, ``alpha`` f64[n], and ``beta``, a function for every machine."""

    theta: float
    alpha: Floats
    beta: tuple[StepFunction, ...]

    @property
    def value(self) -> Fraction:
        """A lower bound on the cost of every schedule, if the solution is feasible."""
        earned = sum(map(Fraction, self.alpha.tolist()), Fraction(0))
        return earned - sum((each.integral for each in self.beta), Fraction(0))


def best_dual(machines: UnrelatedMachines, beta: Sequence[StepFunction], theta: float) -> FlowDual:
    """Return the largest alpha for given ``beta``, rounded down so that it is feasible in exact arithmetic.

    Parameters
    ----------
    machines
        The jobs and machines.
    beta
        A function of time for every machine.
    theta
        Parameter of the program, in [0, 1].
    """
    least = np.full(machines.release.size, np.inf)
    for i, steps in enumerate(beta):
        may = np.flatnonzero(machines.rate[i] > 0)
        for some in np.array_split(may, 1 + may.size * steps.time.size // AT_ONCE):
            least[some] = np.minimum(least[some], _least(machines, i, some, steps, theta))
    return FlowDual(theta, np.where(np.isfinite(least), least, 0.0) * (1 - ROUNDINGS), tuple(beta))


def _least(machines: UnrelatedMachines, i: int, jobs: Ints, steps: StepFunction, theta: float) -> Floats:
    """The least right side of machine i, f64[jobs]."""
    r, w, p = machines.release[jobs], machines.weight[jobs], machines.work[jobs] / machines.rate[i, jobs]
    now = np.searchsorted(steps.time, r, side="right") - 1
    here = p * np.where(now >= 0, np.append(steps.value, 0.0)[now], 0.0)
    if steps.time.size:
        wait = steps.time[None, :] - r[:, None]
        later = p[:, None] * steps.value[None, :] + ((1 - theta) * w)[:, None] * wait
        here = np.minimum(here, np.where(wait > 0, later, np.inf).min(axis=1))
    return np.asarray(here + theta * w * p)


OBJECTIVE = "total_weighted_flow_time"
LEAST_SPEED = Fraction(9, 8)  # any above 1 would do; the factor grows without limit towards 1
STEPS = (0.25, 0.125, 0.0625, 0.03125)  # by which theta and lambda are changed


def waiting_weight(run: Run) -> tuple[StepFunction, ...]:
    """Return W_i(t) of every GPU: the weight of its jobs that are not done; times count from the first arrival.

    Parameters
    ----------
    run
        A run of immediate dispatch.
    """
    run = run.relative
    slot = np.asarray(run.notes["dispatch_slot"]).astype(np.int64)
    release, done, weight = run.instance.arrival, run.schedule.completion, run.instance.weight
    return tuple(
        _steps(release[mine], done[mine], weight[mine])
        for mine in (np.flatnonzero(slot == i) for i in range(run.instance.cluster.gpus))
    )


def _steps(begin: np.ndarray, end: np.ndarray, height: np.ndarray) -> StepFunction:
    time, place = np.unique(np.concatenate([begin, end]), return_inverse=True)
    change = np.zeros(time.size)
    np.add.at(change, place.reshape(-1), np.concatenate([height, -height]))
    value = np.maximum(np.cumsum(change), 0.0)
    value[-1:] = 0.0
    return StepFunction(time, value)


def dual_of(run: Run, speed: Fraction = Fraction(1), instance: Instance | None = None) -> FlowDual:
    """Return the dual solution of a run of immediate dispatch on faster machines than those of an instance.

    Its value is a lower bound on the optimum of the instance, at least (s - 1) / (s + 1) times the value of the run.
    Complexity O(n^2) for each of some twenty choices of theta and lambda.

    Parameters
    ----------
    run
        The run.
    speed
        Speed s of its machines.
    instance
        The instance at speed 1; None: that of the run.
    """
    machines, waiting = UnrelatedMachines.of(instance or run.instance), waiting_weight(run)

    def dual(theta: float, factor: float) -> FlowDual:
        return best_dual(machines, [steps.times(factor) for steps in waiting], theta)

    shown = float(1 / (speed + 1))
    tried = {point: dual(*point) for point in ((shown, shown), (1.0, 0.0))}
    point, best = max(tried.items(), key=lambda each: each[1].value)
    for step in STEPS:
        t, f = point
        for theta, factor in ((t - step, f), (t + step, f), (t, f - step), (t, f + step)):
            near = min(max(theta, 0.0), 1.0), max(factor, 0.0)
            if near not in tried:
                tried[near] = found = dual(*near)
                if found.value > best.value:
                    point, best = near, found
    return best


@lru_cache(maxsize=1)  # of the run that was judged last: its bound is asked for more than once
def _dual_value(relative: Run) -> Fraction:
    return dual_of(relative).value


def _dual_proves(policy: Any, run: Run) -> Fraction | None:
    return None if run.unfinished else _dual_value(run.relative)


def _dual_ratio(policy: Any, run: Run) -> Fraction | float:
    bound, run = _dual_proves(policy, run), run.relative
    if not run.instance.n:
        return Fraction(1)
    return schedule_value(run.instance, run.schedule, OBJECTIVE) / bound if bound else math.inf


@family(
    "k jobs for two machines, then unit jobs for one of them, one a second",
    policy="immediate-dispatch",
    objective=OBJECTIVE,
    limit="at least (k + 2) (k^2 + k + 1) / (2 (k + 1)^2), about k / 2: no constant",
    sizes=(2, 4),
)
def divided_evenly(k: int = 4) -> Challenge:
    """k jobs of 2 s at 0 for GPUs of type a or b, one of each; from 0 on k^2 (k + 1) unit jobs for a, one a second.

    Each of the first is bound where it adds least, in turn to a and b; those on a wait for all the unit jobs. All on b cost
    k (k + 1), and then no unit job waits.

    Parameters
    ----------
    k
        Number of jobs that both GPU types can run; even.
    """
    check_legal(k >= 2 and k % 2 == 0, "k", k, "an even integer >= 2")
    jobs = [Job(f"either-{i}", duration=2) for i in range(k)]
    jobs += [Job(f"a-{i}", arrival=i, duration=1, gpu_types=("a",)) for i in range(k * k * (k + 1))]
    instance = Instance(jobs, "1x1:a+1x1:b", f"divided-evenly-{k}", OBJECTIVE)
    return Challenge(instance, Fraction(k * k * (k + 1) + k * (k + 1)))


_one_gpu_without_restart = all_of(one_gpu_jobs, no_restart_cost, speed_by_type, own_network)

DUAL_FITTING = guarantee(
    id="dual-fitting",
    statement="R | r_j, pmtn | sum w_j F_j: immediate dispatch <= (ALG / D) OPT, D the value of its run's dual solution",
    notation="R | r_j, pmtn, online-r_j | sum w_j (C_j - r_j)",
    knowledge="clairvoyant",
    source="the method of Anand, Garg and Kumar 2012; optsched for runs at speed 1",
    status="proved",
    proof=(
        "Of any schedule, (1 - theta) times how late the work of j is done on average and theta times how long j runs are "
        "together no more than its flow time. That is a linear program; alpha and beta >= 0 with alpha_j <= p_ij beta_i(t) "
        "+ w_j ((1 - theta) (t - r_j) + theta p_ij) are a solution of its dual, of value D = sum alpha_j - sum int beta_i. "
        "For beta_i the weight that waits at machine i, times a constant, the best alpha is a minimum over the events of "
        "the run."
    ),
    objective=OBJECTIVE,
    policies=("immediate-dispatch",),
    assumptions=_one_gpu_without_restart,
    ratio=_dual_ratio,
    proves=_dual_proves,
    tight=TightFamily("the factor is that of the run; at speed 1 it is no constant", divided_evenly, exact=False),
)

FASTER_DISPATCH = speed_theorem(
    id="dual-fitting-faster",
    statement="R | r_j, pmtn | sum w_j F_j: immediate dispatch on machines s = 1 + eps times as fast <= (1 + 2 / eps) OPT",
    notation="R | r_j, pmtn, online-r_j | sum w_j (C_j - r_j)",
    knowledge="clairvoyant",
    source="Anand, Garg and Kumar 2012 (O(1 / eps)), from recollection; the constant is optsched's",
    status="proved",
    proof=(
        "By dual fitting: beta_i(t) = W_i(t) / (s + 1), the weight that waits at machine i, alpha_j = s Q_j / (s + 1), what "
        "j added when it was bound, theta = 1 / (s + 1). Both sums are ALG, so the value is (s - 1) / (s + 1) ALG. Feasible:"
        " what j would add on i is w_j times what denser jobs have left and p_ij times the weight of the others; of both "
        "machine i, until t, can take away no more than s w_j (t - r_j) / p_ij in weight."
    ),
    objective=OBJECTIVE,
    policies=("immediate-dispatch",),
    assumptions=_one_gpu_without_restart,
    speed=lambda instance: LEAST_SPEED,
    ratio=lambda speed: (speed + 1) / (speed - 1),
    proves=lambda instance, run, speed: dual_of(run, speed, instance).value,
)
