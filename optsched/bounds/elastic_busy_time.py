"""Mean busy times and release plus duration, mixed job by job, on the machine that elastic jobs leave: `split_busy_time`.

**Problem**: jobs on any number of GPUs (class ``elastic``) | sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j - d_j, 0),
and the unweighted forms.
**Bound**: for any multipliers 0 <= u_j <= w_j

    min sum u_j M_j + sum u_j (e_j / 2 - c_j) + sum (w_j - u_j) max(0, r_j + e_j - c_j),

c_j = 0, r_j or the due date, M_j the mean busy times on the machine of `optsched.bounds.elastic_machine`, e_j its seconds.
**Proof**: that of `optsched.bounds.split_busy_time`, word for word: at most the fraction 1 / e_j of job j is done a second,
so its mean busy time is at most C_j - e_j / 2; and the shares of the machine add up to at most 1.
**Method**: the ascent of `split_busy_time` for u. Files of before name no multipliers: theirs are w_j, rounded down.
**Complexity** O(n log n) a step. **Reference**: Goemans et al., SIAM J. Discrete Math. 15 (2002), 165-192.
"""

from __future__ import annotations

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Certificate, data_integer, register_kind, require_same
from optsched.bounds.elastic_machine import ELASTIC, elastic_machine_of, elastic_numbers, proved_numbers
from optsched.bounds.mean_busy_time import bound_with, proved, weights_on_grid
from optsched.bounds.split_busy_time import OBJECTIVES, SHARE_BITS, stated_multipliers
from optsched.bounds.sum_costs import costs_with
from optsched.bounds.typed_busy_time import shares_on
from optsched.bounds.verifier import MAX_EXPONENT, floor_to_grid, times_of
from optsched.problem.instance import Instance

KIND = "elastic-busy-time"


@lower_bound(
    KIND,
    objectives=OBJECTIVES,
    classes=[ELASTIC],
    statement="mean busy times and release plus duration, mixed job by job, jobs at their fewest GPU-seconds",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate; data: machine, grids of time and weight, multipliers, flow constant."""
    numbers = elastic_numbers(instance)
    costs, jobs = costs_with(instance, objective, numbers.alone), numbers.on_grid(instance)
    weight, exponent = weights_on_grid(costs.weight, SHARE_BITS)
    multiplier = np.where(jobs.work > 0, np.floor(weight * shares_on(costs, jobs)), 0).astype(np.int64)
    value, bits = bound_with(costs, jobs, multiplier, exponent)
    data = {**jobs.data(), **costs.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
    data["multipliers"] = multiplier.tolist()
    return Certificate(instance.digest, objective, schedule_class, KIND, value, data)


@register_kind(KIND, objectives=OBJECTIVES, classes=[ELASTIC])
def verify(certificate: Certificate, instance: Instance) -> None:
    """Find every job's GPU-seconds again in fractions, check 0 <= u <= w, and run preemptive WSPT in Python integers."""
    alone, volume = proved_numbers(instance)
    times = times_of(instance, certificate.objective, alone)
    machine = elastic_machine_of(certificate, instance, times, volume)
    exponent = data_integer(certificate, "multiplier_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    stated = "multipliers" in certificate.data
    if stated:
        multiplier = stated_multipliers(certificate, instance, times, machine, exponent)
    else:
        multiplier = [
            floor_to_grid(w, times.per_weight, exponent) if work > 0 and moment is not None else 0
            for w, work, moment in zip(times.weight, machine.work, times.counted, strict=True)
        ]
    value, bits = proved(times, machine, multiplier, exponent)
    data = {**machine.data(), **times.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
    data |= {"multipliers": multiplier} if stated else {}
    require_same(certificate, value, data)
