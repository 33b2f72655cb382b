"""Least mean busy times on the machine that elastic jobs leave: `mean_busy_time` for jobs on any number of GPUs.

**Problem**: jobs on any number of GPUs (class ``elastic``) | sum w_j C_j and sum w_j (C_j - r_j), and the unweighted forms.
**Bound**: ``sum u_j (M_j + e_j / 2) + sum (w_j - u_j)(r_j + e_j)`` with the least possible ``sum u_j M_j`` on the machine of
`optsched.bounds.elastic_machine`, attained by preemptive WSPT; u_j is w_j rounded down. Flow times: minus ``sum w_j r_j``.
**Proof**: that of `optsched.bounds.mean_busy_time`, word for word: at most the fraction 1 / e_j of job j is done a second,
so its mean busy time is at most C_j - e_j / 2; and the shares of the machine add up to at most 1.
**Complexity** O(n log n). **Reference**: Goemans et al., SIAM J. Discrete Math. 15 (2002), 165-192.
"""

from __future__ import annotations

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Certificate, data_integer, register_kind, require_same
from optsched.bounds.elastic_machine import ELASTIC, elastic_machine_of, elastic_numbers, proved_numbers
from optsched.bounds.mean_busy_time import OBJECTIVES, bound_with, proved, weights_on_grid
from optsched.bounds.sum_costs import costs_with
from optsched.bounds.verifier import MAX_EXPONENT, floor_to_grid, times_of
from optsched.problem.instance import Instance

KIND = "elastic-busy-time"


@lower_bound(
    KIND,
    objectives=OBJECTIVES,
    classes=[ELASTIC],
    statement="least mean busy times on one machine, jobs at their fewest GPU-seconds",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate; data: machine, grids of time and weight, flow constant."""
    numbers = elastic_numbers(instance)
    costs, jobs = costs_with(instance, objective, numbers.alone), numbers.on_grid(instance)
    weight, exponent = weights_on_grid(costs.weight)
    value, bits = bound_with(costs, jobs, np.where(jobs.work > 0, weight, 0), exponent)
    data = {**jobs.data(), **costs.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
    return Certificate(instance.digest, objective, schedule_class, KIND, value, data)


@register_kind(KIND, objectives=OBJECTIVES, classes=[ELASTIC])
def verify(certificate: Certificate, instance: Instance) -> None:
    """Find every job's GPU-seconds again in fractions, and run preemptive WSPT in Python integers."""
    alone, volume = proved_numbers(instance)
    times = times_of(instance, certificate.objective, alone)
    machine = elastic_machine_of(certificate, instance, times, volume)
    exponent = data_integer(certificate, "multiplier_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    multiplier = [
        floor_to_grid(w, times.per_weight, exponent) if work > 0 else 0
        for w, work in zip(times.weight, machine.work, strict=True)
    ]
    value, bits = proved(times, machine, multiplier, exponent)
    data = {**machine.data(), **times.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
    require_same(certificate, value, data)
