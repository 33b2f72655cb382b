"""Hadar: total utility within R_eff of the optimum, and a dual solution that certifies each run.

P = sum of the utilities u_j of the plans that were bought, k_q the prices at the end, mu_j the payoffs, D = sum_j mu_j +
sum_q c_q k_q, over the rounds of which anything was sold (`optsched.policies.exponential_prices` has the proof):

* D_0 = Lo sum_q c_q, and D <= D_0 + J + R_eff P, where J is what raising Up or the widest gang added on the way (0 when
  ``high`` was given and no later gang is wider than the first). So OPT over plans <= (R_eff + (D_0 + J) / P) P; with
  D_0 + J <= theta OPT that is the textbook form OPT <= R_eff / (1 - theta) P.
* OPT may start in the middle of a round, change its speed, and go on after the last round sold. By weak duality no gang
  schedule is worth more than D' = sum_j mu'_j + sum_q c_q k_q, where mu'_j is the most that *any* schedule of j earns at
  the prices k: U(f) - (least cost of its work by f). A mixed gang never beats its devices used type by type, so that
  cost is a fluid problem, bounded from below by its Lagrangian for any price of a unit of work: max over those tried.

The ratio of a run is max(R_eff + (D_0 + J) / P, D' / P): the theorem's factor, and no less than what is proved about
schedules that are no plans. It needs no job to be small; but R_eff grows without limit as gangs come near a resource.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_of, instance_is, own_network, policy_is
from optsched.guarantees.family import family
from optsched.guarantees.guarantee import SHOWN_JOBS, TightFamily, guarantee
from optsched.guarantees.optimum import stating
from optsched.policies.exponential_prices import PriceFunction
from optsched.policies.hadar_reservations import Request, Reservations
from optsched.policies.simulate import specify
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run
from optsched.speeds.type_speeds import type_speeds

# The least that any schedule of a job pays for its work by a time, when GPU time has prices that change over time.
#
# A gang of one type t costs ``cost[i, t]`` a second in interval i and does ``rate[t]`` units of work; the job may split its
# time among types as it likes and stop when it likes. (A gang of several types runs at its slowest; its devices used type
# by type for the same time cost the same and do no less, so it is covered.) The least cost of ``work`` within the first
# i + 1 intervals is a linear program; for every price v >= 0 of a unit of work its Lagrangian
#
#     v * work - sum_{i' <= i} seconds[i'] * max(0, max_t (v * rate[t] - cost[i', t]))
#
# is a lower bound. Here the best of several v. **Complexity** O(V R T).

SAFE = 1e-10  # relative to the terms added: what rounding cannot reach
BLOCK = 64  # intervals looked at together


def fluid_costs(work: float, seconds: Floats, rate: Floats, cost: Floats, prices: Floats) -> Floats:
    """Return a lower bound on the cost of some work by the end of each of R intervals, f64[R], rounded down.

    Parameters
    ----------
    work
        Work of the job, in units of work.
    seconds
        Seconds of each interval that the job may use, f64[R].
    rate
        Units of work a second on each GPU type, f64[T].
    cost
        Cost of the gang a second, by interval and GPU type, f64[R, T].
    prices
        Prices of a unit of work that are tried, f64[V].
    """
    least, v, saved = np.zeros(seconds.size), prices[:, None], np.zeros(prices.size)
    for begin in range(0, seconds.size, BLOCK):
        block = slice(begin, begin + BLOCK)
        gain = np.zeros((v.size, seconds[block].size))
        for t in range(rate.size):
            np.maximum(gain, v * rate[t] - cost[block, t], out=gain)
        gain *= seconds[block]
        gain[:, 0] += saved
        total = np.cumsum(gain, axis=1)
        least[block] = np.max(v * work - total - SAFE * (v * work + total), axis=0, initial=0.0)
        more = v[:, 0] * work > total[:, -1]  # elsewhere the bound is negative from here on
        v, saved = v[more], total[more, -1]
    return least


SLACK = 1e-8  # relative: payoffs and prices are floats; of a round: times are
ULPS = 16  # of the clock
UNIT_PRICES = 160  # prices of a unit of work that are tried


class DualSolution:
    """The dual solution of a run of ``hadar``, as it noted it; see `dual_solution`, which makes it.

    Resources: H kinds of GPUs on kinds of nodes. Rounds: R of ``policy.round`` seconds, round i from ``zero`` + i round on.
    ``run`` is `Run.relative`: what it notes counts from the first arrival. Values are in the unit of the total utility.

    * ``payoff`` mu_j, what the plan of each job was worth beyond what it paid: f64[n];
    * ``prices`` k_q, what a GPU of a resource costs in a round at the end: f64[R, H]; ``capacity`` c_q, its GPUs: i64[H];
    * ``price_of``: the price function at the end; None when nothing was worth anything;
    * ``primal`` P, what all plans that were bought are worth; ``sold_value`` sum_q c_q k_q, all GPUs of all rounds;
    * ``dual`` D = payoffs + what is sold: no choice of plans is worth more; ``initial`` D_0 + J, what it was before anything
      was sold, and what raised prices added.
    """

    def __init__(self, policy: Any, run: Run) -> None:
        self.policy, self.run = policy, run.relative
        notes = self.run.notes
        low, high, jumps, zero = (float(value) for value in notes["hadar_constants"])
        self.zero = zero
        self.payoff: Floats = np.asarray(notes["hadar_payoff"])
        self.prices: Floats = np.asarray(notes["hadar_prices"])
        self.capacity: Ints = np.asarray(notes["hadar_capacity"]).astype(np.int64)
        widest = np.asarray(notes["hadar_widest"]).astype(np.int64)
        self.price_of = None if low <= 0 else PriceFunction(low, high, self.capacity, widest)
        self.primal = math.fsum(notes["hadar_utility"].tolist())
        self.sold_value = math.fsum((self.prices * self.capacity).ravel().tolist())
        self.dual = math.fsum(self.payoff.tolist()) + self.sold_value
        self.initial = low * float(self.capacity.sum()) * len(self.prices) + jumps

    @cached_property
    def every_schedule(self) -> float:
        """D', rounded up: no gang schedule whatever is worth more in total."""
        return float((math.fsum(best_payoffs(self).tolist()) + self.sold_value) * (1 + SAFE))


_last: list[DualSolution] = []  # of the run that was judged last: its factor is asked for more than once


def dual_solution(run: Run) -> DualSolution:
    """Return the dual solution that the final prices of a run of ``hadar`` form, which bounds every other schedule.

    ``.primal`` is P, the value of its plans; ``.dual`` is D, an upper bound on the value of all choices of plans;
    ``.every_schedule`` is D', an upper bound on the value of all gang schedules. ``.price_of.charged_ratio`` is R_eff;
    ``.prices``, ``.payoff`` and ``.capacity`` are the data of the solution.

    Parameters
    ----------
    run
        A run of ``hadar``.

    Raises
    ------
    InputError
        The run is of another policy.
    """
    check_legal("hadar_prices" in run.notes, "run", run.policy, "a run of hadar")
    return _dual_solution(specify(run.policy).policy, run)


def _dual_solution(policy: Any, run: Run) -> DualSolution:
    if not _last or _last[0].run is not run.relative or _last[0].policy is not policy:
        _last[:] = [DualSolution(policy, run)]
    return _last[0]


def best_payoffs(solution: DualSolution) -> Floats:
    """Return mu'_j, the most that any gang schedule of job j earns at the final prices, f64[n], rounded up.

    Complexity O(UNIT_PRICES R T) a job.

    Parameters
    ----------
    solution
        The dual solution of a run.
    """
    instance, length = solution.run.instance, float(solution.policy.round)
    rates, price = _rates(instance, solution)  # units a second f64[n, H]; price of a device-second f64[R, H]
    begin = length * np.arange(price.shape[0] + 1)  # after round 0 began: without the rounding of a late clock
    since = instance.arrival - solution.zero
    found = np.zeros(instance.n)
    for j in range(instance.n):
        runs = rates[j] > 0
        found[j] = _best_payoff(
            float(instance.weight[j] * instance.work[j]),
            float(instance.work[j]),
            rates[j, runs],
            price[:, runs] * float(instance.gpus[j]),
            begin - float(since[j]),
        )
    return found


def _best_payoff(worth: float, work: float, rate: Floats, cost: Floats, begin: Floats) -> float:
    """``worth`` / age less the least cost of ``work`` until then: ``rate`` [T], ``cost`` [R, T] a second.

    ``begin`` [R + 1]: ages at which rounds begin, < 0 before the arrival.
    """
    soonest = work / float(rate.max()) * (1 - SAFE)
    seconds = np.maximum(0.0, begin[1:] - np.maximum(begin[:-1], 0.0))
    unit = (cost / rate)[seconds > 0]
    least = np.zeros(seconds.size)
    if unit.size:
        # The price of a unit of work lies between the cheapest and the dearest way to do one.
        tried = np.geomspace(float(unit.min()), 2 * float(unit.max()), UNIT_PRICES)
        least = fluid_costs(work, seconds, rate, cost, tried)
    # A completion in round i is worth U at its beginning at most and costs what it costs by its end; after the last
    # round everything is free.
    finish = np.maximum(begin, soonest)
    possible = np.append(begin[1:] >= soonest, True)
    earned = worth / finish * (1 + SAFE) - np.append(least, 0.0)
    return max(0.0, float(earned[possible].max()))


def _rates(instance: Instance, solution: DualSolution) -> tuple[Floats, Floats]:
    """The best rate of every job on every GPU type and kind of node, and the least price of a device-second there."""
    cluster, speeds = instance.cluster, type_speeds(instance)
    kinds = np.vstack([cluster.node_type[None, :], instance.class_eligible]).T
    kind, of_node = np.unique(kinds, axis=0, return_inverse=True)
    of_node = of_node.reshape(-1)
    resource = np.asarray(solution.run.notes["hadar_resource"]).astype(np.int64)
    price = np.column_stack([
        solution.prices[:, np.unique(resource[of_node == k])].min(axis=1) for k in range(kind.shape[0])
    ])  # fmt: skip
    best = np.maximum(speeds.together, speeds.spread)[:, kind[:, 0].astype(np.int64)]
    return best * kind[:, 1:].T[instance.job_class], price / float(solution.policy.round)


def factor(policy: Any, run: Run) -> float:
    """Return the ratio of the theorem for a run; it is infinite if no plan is worth anything.

    Parameters
    ----------
    policy
        The policy ``hadar`` with its parameters.
    run
        Its run.
    """
    if run.instance.n == 0:
        return 1.0
    solution = _dual_solution(policy, run)
    if solution.primal <= 0 or solution.price_of is None:
        return math.inf
    ratio = float(solution.price_of.charged_ratio) * (1 + SAFE) + solution.initial / solution.primal
    return max(ratio, solution.every_schedule / solution.primal)


def _findings(solution: DualSolution) -> Iterator[str]:
    """Yield the statements of the proof that the run violates."""
    run, ids = solution.run, solution.run.instance.ids
    sold = np.asarray(run.notes["hadar_sold"])
    for i, h in np.argwhere(sold > solution.capacity)[:SHOWN_JOBS].tolist():
        yield f"{sold[i, h]:g} of {solution.capacity[h]} GPUs of resource {h} are sold in round {i}"
    # Each start may be late by what a job of the round before ends late, and by the rounding of the clock.
    completion, segments = run.schedule.completion, np.bincount(run.schedule.job, minlength=run.instance.n)
    moment = SLACK * float(solution.policy.round) + ULPS * np.spacing(completion)
    late = np.flatnonzero(completion > np.asarray(run.notes["hadar_end"]) + moment * (1 + segments))
    for j in late[:SHOWN_JOBS].tolist():
        yield f"job {ids[j]!r} completes at {completion[j]:.9g} s after the first arrival, after its plan"
    price_of = solution.price_of
    if price_of is None:
        return
    top = solution.initial + float(price_of.charged_ratio_above()) * solution.primal
    if solution.dual > top * (1 + SLACK):
        yield f"the dual value {solution.dual:.9g} is more than D_0 + J + R_eff P = {top:.9g}"
    if solution.every_schedule < solution.primal * (1 - SLACK):
        yield "weak duality fails: the dual value is less than what the plans are worth"
    yield from _infeasible(solution, price_of, sold.astype(np.int64))


def _infeasible(solution: DualSolution, price_of: PriceFunction, sold: Ints) -> Iterator[str]:
    """Jobs for which some plan earns more than mu_j at the final prices: dual constraints that fail."""
    run, policy = solution.run, solution.policy
    reservations = Reservations(solution.capacity, float(policy.round))
    reservations.price_of, reservations.used = price_of, sold.shape[0]
    reservations.sold = np.vstack([sold, np.zeros((1, sold.shape[1]), dtype=np.int64)])
    first, own = np.asarray(run.notes["hadar_first"]), run.instance.restart
    shown = 0
    for j in np.flatnonzero(np.isfinite(first)).tolist():
        number = int(first[j])
        request = Request(
            gang=int(run.instance.gpus[j]),
            work=float(run.instance.work[j]),
            age=max(0.0, number * float(policy.round) - (float(run.instance.arrival[j]) - solution.zero)),
            alone=np.asarray(run.notes["hadar_alone"])[j],
            shared=np.asarray(run.notes["hadar_shared"])[j],
            scale=float(run.instance.weight[j] * run.instance.work[j]),
            span=0.0,
            restart=float(policy.restart if np.isnan(own[j]) else own[j]),
        )
        plan = reservations.best(request, number)
        if plan is not None and plan.payoff > solution.payoff[j] + SLACK * plan.utility:
            shown += 1
            if shown > SHOWN_JOBS:
                return
            yield (
                f"job {run.instance.ids[j]!r}: a plan earns {plan.payoff:.9g} at the final prices, "
                f"more than its payoff {solution.payoff[j]:.9g}"
            )


@family(
    "two jobs on one GPU, n = 2^k - 1: the first to come takes it for n s, the other one is worth n times as much",
    policy="hadar:round=1",
    objective="total_utility",
    ratio=lambda k: Fraction((2**k - 1) * (2**k + 1), 2 ** (k + 1) - 1),
    limit="n (n + 2) / (2 n + 1), about n / 2: no constant for jobs as large as a resource",
    sizes=(1, 2, 3, 4, 6),
)
def sold_out(k: int = 4) -> Instance:
    """Two jobs at once on one GPU, n = 2^k - 1: one of n s and weight 1, one of 1 s and weight n.

    The first is offered a plan when nothing is sold, and buys all seconds up to n; the second gets the one after, where it
    is worth n / (n + 1). The other way round they are worth n and n / (n + 1), and no schedule has more, since one of them
    is done last.

    Parameters
    ----------
    k
        Exponent of n = 2^k - 1, the length of the first job in seconds.
    """
    check_legal(1 <= k <= 12, "k", k, "an integer in 1..12")
    n = 2**k - 1
    jobs = [Job("first", duration=n), Job("second", duration=1, weight=n)]
    optimum = stating(float(n + Fraction(n, n + 1)), "total_utility", "gang", "the second job first")
    return Instance(jobs, "1x1", f"sold-out-{n}", "total_utility", optimum=optimum)


HADAR = guarantee(
    id="hadar",
    statement=(
        "P | r_j, size_j, pmtn | max sum w_j N_j / (C_j - r_j): OPT <= max(R_eff + (D_0 + J) / ALG, D' / ALG) ALG, R_eff = "
        "max_q (c_q / w)(e^{a min(1, w / (c_q - w_q + 1))} - 1), a = ln(Up / Lo); against plans on rounds R_eff / (1 - "
        "theta) where D_0 + J <= theta OPT"
    ),
    notation="P | r_j, size_j, pmtn | max sum w_j N_j / (C_j - r_j)",
    knowledge="clairvoyant",
    source="optsched, in the manner of Sultana et al. 2024 (Hadar) and Bao et al. 2018 (OASiS)",
    status="proved",
    proof=(
        "Every plan that is bought raises the prices by so much that the dual value grows by at most R_eff times what it is"
        " worth; the final prices and payoffs are a feasible dual solution, so that no plans are worth more than D_0 + J + "
        "R_eff ALG. For schedules that are no plans the same prices are valued by a fluid relaxation of every job, which "
        "gives D'."
    ),
    objective="total_utility",
    policies=("hadar",),
    assumptions=all_of(
        policy_is(
            lambda policy: policy.utility == "throughput", "utility={policy.utility} is not what total_utility adds up"
        ),
        instance_is(
            lambda instance: not instance.jobs_at("profiles").size,
            "the speed of jobs with stage profiles depends on more than GPU types",
        ),
        own_network,
    ),
    ratio=factor,
    audit=lambda policy, run: list(_findings(_dual_solution(policy, run))) if run.instance.n else [],
    tight=TightFamily(
        "not known to be tight; it cannot be logarithmic in Up / Lo for jobs as large as a resource: "
        "two jobs of a whole node, worth 1 and then X, ratio X with 2 ln(Up / Lo) = 2 ln(4 X)",
        sold_out,
        exact=False,
    ),
)
