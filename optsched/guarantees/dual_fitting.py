"""Anand, Garg and Kumar 2012: immediate dispatch on unrelated machines, by a dual solution that every run leaves behind.

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
from typing import Any

import numpy as np

from optsched.check.referee import schedule_value
from optsched.errors import InputError, check_legal
from optsched.guarantees.assumptions import all_of, no_restart_cost, one_gpu_jobs, own_network, speed_by_type
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import TightFamily, guarantee
from optsched.guarantees.speed import speed_theorem
from optsched.guarantees.unrelated_machines import UnrelatedMachines
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run

# relative, rounded up: a quotient, three products, a difference, two sums, and their constants
ROUNDINGS = 16 * 2.0**-53
AT_ONCE = 4_000_000  # terms in memory


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A function of time: ``value[k]`` from ``time[k]`` on; times rise, the last value is 0, as it is before the first."""

    time: Floats
    value: Floats

    @property
    def integral(self) -> Fraction:
        """Over all time, exact."""
        t, v = (list(map(Fraction, each.tolist())) for each in (self.time, self.value))
        return sum((v[k] * (t[k + 1] - t[k]) for k in range(len(t) - 1)), Fraction(0))

    def times(self, factor: float) -> StepFunction:
        """The same function, ``factor`` >= 0 times as large."""
        return StepFunction(self.time, self.value * factor)


@dataclass(frozen=True, eq=False)
class FlowDual:
    """A dual solution: ``theta``, ``alpha`` f64[n], and ``beta``, a function for every machine."""

    theta: float
    alpha: Floats
    beta: tuple[StepFunction, ...]

    @property
    def value(self) -> Fraction:
        """No schedule costs less, if it is feasible (`prove`)."""
        earned = sum(map(Fraction, self.alpha.tolist()), Fraction(0))
        return earned - sum((each.integral for each in self.beta), Fraction(0))


def best_dual(machines: UnrelatedMachines, beta: Sequence[StepFunction], theta: float) -> FlowDual:
    """The largest alpha for ``beta``, rounded down so that it is feasible in exact arithmetic."""
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


def prove(machines: UnrelatedMachines, dual: FlowDual) -> Fraction:
    """The value of a feasible dual solution, every constraint looked at in fractions: O(n S) of them.

    Raises `InputError` naming the first that fails, or a function that is no legal one.
    """
    theta = Fraction(dual.theta)
    check_legal(0 <= theta <= 1, "theta", dual.theta, "a number in [0, 1]")
    check_legal(len(dual.beta) == machines.rate.shape[0], "beta", len(dual.beta), "a function for every machine")
    if min(dual.alpha, default=0) < 0:
        raise InputError("some alpha is negative")
    for i, steps in enumerate(dual.beta):
        rising = bool((np.diff(steps.time) > 0).all()) and steps.time.size == steps.value.size
        ends = not steps.value.size or (float(steps.value[-1]) == 0 and float(steps.value.min()) >= 0)
        if not (rising and ends and np.isfinite(steps.time).all() and np.isfinite(steps.value).all()):
            raise InputError(f"beta of machine {i} is no step function >= 0 that ends")
        times, values = (list(map(Fraction, each.tolist())) for each in (steps.time, steps.value))
        for j, row in enumerate(
            zip(machines.release.tolist(), machines.weight.tolist(), dual.alpha.tolist(), strict=True)
        ):
            p, (release, weight, alpha) = machines.seconds(i, j), map(Fraction, row)
            if p is None:
                continue
            begun = [v for t, v in zip(times, values, strict=True) if t <= release]
            looked = [(release, begun[-1] if begun else Fraction(0))]
            looked += [(t, v) for t, v in zip(times, values, strict=True) if t > release]
            for t, v in looked:
                if alpha > p * v + weight * ((1 - theta) * (t - release) + theta * p):
                    raise InputError(f"alpha of job {j} is too large on machine {i} at {float(t):.12g} s")
    return dual.value


OBJECTIVE = "total_weighted_flow_time"
LEAST_SPEED = Fraction(9, 8)  # any above 1 would do; the factor grows without limit towards 1
STEPS = (0.25, 0.125, 0.0625, 0.03125)  # by which theta and lambda are changed


def waiting_weight(run: Run) -> tuple[StepFunction, ...]:
    """W_i(t) of every GPU: the weight of the jobs that were bound to it and are not done; counted from the first arrival."""
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
    """The dual solution of a run of immediate dispatch on machines ``speed`` times as fast as those of ``instance``.

    Its value is a lower bound on the optimum of ``instance`` (None: that of the run), at least (s - 1) / (s + 1) times the
    value of the run. O(n^2) for each of some twenty choices of theta and lambda.
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


_last: list[tuple[Run, Fraction]] = []  # of the run that was judged last: its bound is asked for more than once


def _proves(policy: Any, run: Run) -> Fraction | None:
    if run.unfinished:
        return None
    if not _last or _last[0][0] is not run.relative:
        _last[:] = [(run.relative, dual_of(run).value)]
    return _last[0][1]


def _ratio(policy: Any, run: Run) -> Fraction | float:
    bound, run = _proves(policy, run), run.relative
    if not run.instance.n:
        return Fraction(1)
    return schedule_value(run.instance, run.schedule, OBJECTIVE) / bound if bound else math.inf


@family(
    "k jobs for two machines, then unit jobs for one of them, one a second",
    policy="immediate-dispatch",
    objective=OBJECTIVE,
    reference=lambda k: Fraction(k * k * (k + 1) + k * (k + 1)),
    limit="at least (k + 2) (k^2 + k + 1) / (2 (k + 1)^2), about k / 2: no constant",
    theorem="dual-fitting",
    sizes=(2, 4),
)
def divided_evenly(k: int = 4) -> Instance:
    """k jobs of 2 s at 0 for GPUs of type a or b, one of each; from 0 on k^2 (k + 1) unit jobs for a, one a second.

    Each of the first is bound where it adds least, in turn to a and b; those on a wait for all the unit jobs. All on b cost
    k (k + 1), and then no unit job waits.
    """
    check_legal(k >= 2 and k % 2 == 0, "k", k, "an even integer >= 2")
    jobs = [Job(f"either-{i}", duration=2) for i in range(k)]
    jobs += [Job(f"a-{i}", arrival=i, duration=1, gpu_types=("a",)) for i in range(k * k * (k + 1))]
    return Instance(jobs, "1x1:a+1x1:b", f"divided-evenly-{k}", OBJECTIVE)


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
    assumptions=all_of(one_gpu_jobs, no_restart_cost, speed_by_type, own_network),
    ratio=_ratio,
    proves=_proves,
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
    assumptions=all_of(one_gpu_jobs, no_restart_cost, speed_by_type, own_network),
    speed=lambda instance: LEAST_SPEED,
    ratio=lambda speed: (speed + 1) / (speed - 1),
    proves=lambda instance, run, speed: dual_of(run, speed, instance).value,
)
