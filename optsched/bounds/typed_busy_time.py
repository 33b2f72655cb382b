"""Mean busy times on the machine that prices of GPU types give: `split_busy_time` for several types, and for forked jobs.

**Problem**: jobs with a speed on each GPU type, rigid gangs, preemption; sum w_j C_j, sum w_j (C_j - r_j),
sum w_j max(C_j - d_j, 0), and the unweighted forms.
**Bound**: for prices omega and any multipliers 0 <= u_j <= w_j

    min sum u_j M_j + sum u_j (f_j / 2 - c_j) + sum (w_j - u_j) max(0, r_j + f_j - c_j),

c_j = 0, r_j or the due date, M_j the mean busy times for works ``p_j(omega)`` on one machine (`typed_machine`), f_j the
seconds of j alone on its best type, in the class ``forking`` on all GPUs at once. u = w is B3(omega) of the sheet below,
u = 0 is `release_plus_duration` and holds for forked jobs, too.
**Proof**: let phi_j(t) be the fraction of j's work done per second, phi_j <= 1 / f_j on any GPUs that the class allows.
The mean moment M_j at which it is done is at most C_j - f_j / 2. The cost of j's GPUs is at least v_j phi_j(t) at every
moment (the theorem of `typed_machine`, moment by moment), so the shares p_j phi_j(t) add up to at most 1 and the M_j are
mean busy times of a schedule on the machine. The rest is as in `split_busy_time`.
**Method**: a search for prices with u = w, the ascent of `split_busy_time` for u, and both once more.
**Complexity** O(n (log n + T)) a step: at most 240 for the prices and 400 for the multipliers.
**Reference**: section 4.3 of this project's reference sheet on Hadar; Goemans et al., SIAM J. Discrete Math. 15 (2002),
165-192.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import EXCLUSIVE_CLASSES, Certificate, data_integer, register_kind, require_same
from optsched.bounds.grid import GridJobs
from optsched.bounds.mean_busy_time import bound_with, proved, weights_on_grid
from optsched.bounds.split_busy_time import (
    OBJECTIVES,
    SHARE_BITS,
    TOO_MANY,
    best_shares,
    rough_mean_busy_times,
    stated_multipliers,
)
from optsched.bounds.sum_costs import SumCosts
from optsched.bounds.typed_machine import (
    TypedJobs,
    TypePrices,
    best_prices,
    price_data,
    typed_costs,
    typed_jobs,
    worth_pricing,
)
from optsched.bounds.typed_verifier import speeds_of, typed_machine_of, typed_times
from optsched.bounds.verifier import MAX_EXPONENT
from optsched.problem.instance import Instance

Floats = npt.NDArray[np.float64]

KIND = "typed-busy-time"


@lower_bound(
    KIND,
    objectives=OBJECTIVES,
    classes=EXCLUSIVE_CLASSES,
    statement="mean busy times and release plus duration, mixed job by job, GPU types at prices",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate with the best prices and multipliers found; data: them, grids of time and weight, flow constant."""
    if not worth_pricing(instance, schedule_class):
        return None
    jobs = typed_jobs(instance)
    costs = typed_costs(instance, objective, schedule_class, jobs)
    weight, exponent = weights_on_grid(costs.weight, SHARE_BITS)
    found = []
    share = np.ones(instance.n)
    for _ in range(1 if len(jobs.types) == 1 else 2):
        prices = best_prices(jobs, partial(_rough_gain_at, costs, jobs, share * costs.weight))
        grid = jobs.grid(prices)
        share = shares_on(costs, grid)
        multiplier = np.where(grid.work > 0, np.floor(weight * share), 0).astype(np.int64)
        found.append((*bound_with(costs, grid, multiplier, exponent), prices, grid, multiplier))
    value, bits, prices, grid, multiplier = max(found, key=lambda each: each[0])
    data = {**price_data(jobs, prices, grid), **costs.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
    data["multipliers"] = multiplier.tolist()
    return Certificate(instance.digest, objective, schedule_class, KIND, value, data)


def _rough_gain_at(costs: SumCosts, jobs: TypedJobs, part: Floats, prices: TypePrices) -> float:
    return rough_gain(costs, jobs.rough_grid(prices), part)


def rough_gain(costs: SumCosts, grid: GridJobs, part: Floats) -> float:
    """What the bound with multipliers ``part`` is above that of nobody waiting, in floats."""
    used = np.flatnonzero((grid.work > 0) & (part > 0))
    used = used[np.argsort(grid.release[used], kind="stable")]
    with np.errstate(all="ignore"):
        busy = float(grid.tick) * (rough_mean_busy_times(grid.release[used], grid.work[used], part[used]) + grid.origin)
        never = np.maximum(costs.release + costs.duration - costs.counted, 0.0)
        return float(part[used] @ (busy + (costs.duration / 2 - costs.counted - never)[used]))


def shares_on(costs: SumCosts, grid: GridJobs) -> Floats:
    """u_j / w_j, f64[n]: the best that an ascent meets; all ones for very many jobs."""
    if costs.weight.size > TOO_MANY:
        return np.ones(costs.weight.size)
    with np.errstate(all="ignore"):  # of times near the ends of the floats nothing but the direction suffers
        return best_shares(costs, grid)


@register_kind(KIND, objectives=OBJECTIVES, classes=EXCLUSIVE_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Price every job again in fractions, check 0 <= u <= w, and run preemptive WSPT in Python integers."""
    speeds = speeds_of(instance)
    times = typed_times(certificate, instance, speeds)
    machine, data = typed_machine_of(certificate, speeds, times)
    exponent = data_integer(certificate, "multiplier_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    multipliers = stated_multipliers(certificate, instance, times, machine, exponent)
    value, bits = proved(times, machine, multipliers, exponent)
    data |= {**times.data(), "multiplier_exponent": exponent, "held_up_bits": bits, "multipliers": multipliers}
    require_same(certificate, value, data)
