"""Mean busy times where jobs share GPUs, mixed job by job with release plus duration: `typed_busy_time` with charges.

**Problem**: jobs with interference, at most two on a GPU (class ``gpu-sharing``); sum w_j C_j, sum w_j (C_j - r_j),
sum w_j max(C_j - d_j, 0), and the unweighted forms.
**Bound**: for any multipliers 0 <= u_j <= w_j

    min sum u_j M_j + sum u_j (e_j / 2 - k_j) + sum (w_j - u_j) max(0, r_j + e_j - k_j),

k_j = 0, r_j or the due date, e_j the seconds of j alone at best, M_j the mean busy times for the works of
`optsched.bounds.shared_machine` on one machine. u = w is LB3 of the sheet below, u = 0 is LB2 (`release_plus_duration`).
**Proof**: let phi_j(t) <= 1 / e_j be the fraction of j's work done per second; partners and small sub-batches only lower it.
The mean moment M_j at which it is done is at most C_j - e_j / 2. What j pays in `shared_machine` is at least v_j phi_j(t) at
every moment, so the shares p_j phi_j(t) add up to at most 1 and the M_j are mean busy times of a schedule on the machine.
The rest is as in `split_busy_time`.
**Method**: charges and prices for u = w, the ascent of `split_busy_time` for u, then better charges, and u once more.
**Relations**: for r_j = 0, one-GPU jobs and equal charges 1 / S this is Eastman, Even and Isaacs' bound for S G machines.
**Guarantee** none. **Complexity** O(n (log n + T)) a step, some hundreds of them.
**Reference**: section 4.3 of this project's reference sheet on SJF-BSBF; Goemans et al., SIAM J. Discrete Math. 15 (2002),
165-192.
"""

from __future__ import annotations

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import GPU_SHARING_CLASSES, Certificate, data_integer, register_kind, require_same
from optsched.bounds.mean_busy_time import bound_with, proved, weights_on_grid
from optsched.bounds.shared_machine import SharedMachineJobs, best_start, better_charges, shared_jobs
from optsched.bounds.shared_verifier import charges_of, shared_machine_of
from optsched.bounds.split_busy_time import OBJECTIVES, SHARE_BITS, stated_multipliers
from optsched.bounds.sum_costs import sum_costs
from optsched.bounds.typed_busy_time import rough_gain, shares_on
from optsched.bounds.typed_machine import TypePrices, price_data
from optsched.bounds.verifier import MAX_EXPONENT, times_of
from optsched.problem.instance import Instance

KIND = "shared-busy-time"


@lower_bound(
    KIND,
    objectives=OBJECTIVES,
    classes=GPU_SHARING_CLASSES,
    statement="mean busy times and release plus duration, mixed job by job, jobs that share GPUs at their best charges",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate with the best charges and multipliers found; data: them, prices, grids, flow constant."""
    jobs = shared_jobs(instance)
    if jobs is None:
        return None
    costs = sum_costs(instance, objective)
    weight, exponent = weights_on_grid(costs.weight, SHARE_BITS)
    part = costs.weight

    def value(some: SharedMachineJobs, prices: TypePrices) -> float:
        return rough_gain(costs, some.rough_grid(prices), part)

    jobs, prices = best_start(jobs, value)
    found = []
    for better in (False, True):
        tried = better_charges(jobs, prices, value) if better else jobs
        if better and np.array_equal(tried.charge, jobs.charge):
            break
        jobs, grid = tried, tried.grid(prices)
        share = shares_on(costs, grid)
        part = share * costs.weight
        multiplier = np.where(grid.work > 0, np.floor(weight * share), 0).astype(np.int64)
        found.append((*bound_with(costs, grid, multiplier, exponent), jobs, grid, multiplier))
    best, bits, jobs, grid, multiplier = max(found, key=lambda each: each[0])
    data = {**price_data(jobs, prices, grid), **jobs.data(), **costs.data()}
    data |= {"multiplier_exponent": exponent, "held_up_bits": bits, "multipliers": multiplier.tolist()}
    return Certificate(instance.digest, objective, schedule_class, KIND, best, data)


@register_kind(KIND, objectives=OBJECTIVES, classes=GPU_SHARING_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Try the charges on every pair, check 0 <= u <= w, and run preemptive WSPT in Python integers."""
    times = times_of(instance, certificate.objective)
    machine, data = shared_machine_of(certificate, charges_of(certificate, instance), times)
    exponent = data_integer(certificate, "multiplier_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    multipliers = stated_multipliers(certificate, instance, times, machine, exponent)
    value, bits = proved(times, machine, multipliers, exponent)
    data |= {**times.data(), "multiplier_exponent": exponent, "held_up_bits": bits, "multipliers": multipliers}
    require_same(certificate, value, data)
