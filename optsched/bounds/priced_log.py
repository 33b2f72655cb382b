"""Prices of GPUs over the cells of a long log: each job pays for the GPUs that it takes, and ends when that is best.

**Problem**: rigid gangs alone on their GPUs, as many as a log has | sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j -
d_j, 0), and the unweighted forms. The bound is computed on request (``strong``), since the search takes up to a minute.
**Bound**: cut time into C cells. For any prices omega_k >= 0 of a second of a GPU in cell k, 0 outside of the cells,

    sum_j m_j - G sum_k length_k omega_k,      m_j = min over ends C of [ w_j max(C - c_j, 0) + n_j paid_j(C) ],

c_j = 0, r_j or the due date, and paid_j(C) the price of the cheapest p_j seconds of [r_j, C], p_j the least seconds of
job j on its n_j GPUs.
**Proof**: in any schedule job j holds n_j GPUs for at least p_j seconds of [r_j, C_j], so that its cost and n_j omega_k
for each of these seconds are at least m_j. At every moment the jobs hold at most G GPUs: all payments are at most G
sum_k length_k omega_k. Add up. GPU types and nodes only forbid schedules.
**Relations**: omega = 0 is `alone`. On the same cells it is `priced_time` with a gang in place of modes, and less than
`priced_gangs`, which counts only sets of whole gangs. It is computed for as many jobs as logs have: each job looks at
the cells of its own stay only.
**Method**: ascent with momentum over finer and finer cells (`priced_log_search`), in floats. The certificate states the
prices and a number that the sum of all m_j is not below. The verifier computes every m_j in integers.
**Guarantee** none. **Complexity** O(P log P) a step for P pairs of a job and a cell of its stay.
**Reference**: Lagrangian duality of the time-indexed program; Dyer and Wolsey, Discrete Appl. Math. 26 (1990).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import GANG_CLASSES, Proof, ratio_text, rounded_down
from optsched.bounds.exact_dot import exact_sum
from optsched.bounds.priced_log_search import LogJobs, LogPrices, best_log_prices
from optsched.bounds.priced_time import SAFE, SAFE_TIME, floats, integers
from optsched.bounds.proof import proved_bound
from optsched.bounds.sum_costs import SUMS, sum_costs
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

KIND = "priced-log"
FEWEST_JOBS, MOST_JOBS = 513, 300_000  # `priced_time` serves fewer at once
MOMENT_BITS, PRICE_BITS = 40, 24  # of the last moment; of the largest price


@proved_bound(
    KIND,
    objectives=SUMS,
    classes=GANG_CLASSES,
    statement="jobs pay for GPUs by time, as many as a log has",
    strong=True,
)
def build(instance: Instance, objective: str, schedule_class: str) -> Proof | None:
    """Return the proof with the best prices found; None for few and for very many jobs, and if no price helps.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    objective
        Name of the objective.
    schedule_class
        Name of the class of schedules; the bound is the same for all its classes.
    """
    if not FEWEST_JOBS <= instance.n <= MOST_JOBS:
        return None
    jobs = jobs_of(instance, objective)
    prices = best_log_prices(jobs)
    return None if prices is None else proof_of(jobs, prices)


def jobs_of(instance: Instance, objective: str) -> LogJobs:
    """Return the jobs of an instance with their costs.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    objective
        Name of the objective.
    """
    return LogJobs(sum_costs(instance, objective), seconds_alone(instance), instance.gpus, instance.cluster.gpus)


def proof_of(jobs: LogJobs, prices: LogPrices) -> Proof | None:
    """Return the bound and the data of any prices; None if numbers are too far apart for floats.

    Parameters
    ----------
    jobs
        The jobs.
    prices
        Prices, >= 0.
    """
    moments, moment_bits = integers(prices.moments, MOMENT_BITS)
    price, price_bits = integers(prices.price, PRICE_BITS)
    if not (np.diff(moments) > 0).all():
        return None
    at = LogPrices(floats(moments, moment_bits), floats(price, price_bits))
    least, largest = jobs.responses(at)
    latest = max(float(np.abs(at.moments).max()), float((jobs.costs.release + jobs.seconds).max()))
    latest += float(np.abs(jobs.costs.counted).max())
    time = latest * (jobs.costs.weight + jobs.gpus * float(at.price.max()))
    least = least - (SAFE * (largest + np.abs(least)) + SAFE_TIME * time)
    if not np.isfinite(least).all():
        return None
    total = Fraction(rounded_down(exact_sum(least)))
    spent = int((np.diff(moments.astype(object)) * price.astype(object)).sum()) * jobs.total
    data = {"moments": moments.tolist(), "moment_exponent": moment_bits}
    data |= {"prices": price.tolist(), "price_exponent": price_bits, "least_together": ratio_text(total)}
    return total - spent / Fraction(2) ** (moment_bits + price_bits), data
