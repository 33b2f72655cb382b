"""SRPT completions against due dates in order: a bound on total tardiness that no assignment of names can beat.

**Problem**: P | r_j, size_j, pmtn | sum w_j max(C_j - d_j, 0); weights in layers (`optsched.bounds.weight_levels`).
**Bound**: on the fast machine (`optsched.bounds.gang_machine`) the k-th completion of SRPT, C_[k], is the earliest possible
k-th completion, for every k at once; so jobs with a due date have ``sum T_j >= sum_k max(0, C_[k] - d_[k])`` with the due
dates in ascending order. Jobs set aside, and weight above the levels, cost at least max(0, r_j + p_j - d_j) a unit.
**Proof**: of all ways to assign the completion times to the due dates the one in order has the least total tardiness
(exchange argument), and the terms are nondecreasing in C_[k]. On the grid due dates are rounded **up**, which
only lowers them.
**Complexity** O(n log n), a run per level.
**Reference**: Chu, A branch-and-bound algorithm to minimize total tardiness with different release dates, Naval Research
Logistics 39 (1992), 265-283.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.best_bound import best_over_machines, lower_bound
from optsched.bounds.certificate import Certificate, ratio_text, register_kind, require_same
from optsched.bounds.fast_machine import srpt_completions
from optsched.bounds.gang_machine import GangMachine
from optsched.bounds.grid import on_grid_with_dues
from optsched.bounds.sum_costs import TARDINESS, sum_costs
from optsched.bounds.verifier import machine_of, srpt, times_of
from optsched.bounds.weight_levels import levels_of, reduced, stated_levels, steps
from optsched.bounds.wide_integers import sum_words, total
from optsched.problem.instance import Instance

KIND = "srpt-due-dates"


@lower_bound(KIND, objectives=TARDINESS, statement="SRPT completions against the due dates in order")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate:
    """The certificate with the best threshold; data: machine, grid, levels of weight."""
    costs = sum_costs(instance, objective)
    levels = levels_of(costs.weight)
    texts = [ratio_text(Fraction(level)) for level in levels]

    def prove(machine: GangMachine) -> tuple[Fraction, dict[str, Any]]:
        jobs, due = on_grid_with_dues(costs.release, costs.duration, costs.counted, machine)
        weight = np.where(jobs.work > 0, reduced(costs.weight, levels), 0.0)
        value = costs.alone(costs.weight) - costs.alone(weight)
        for level, height in steps(levels):
            chosen = weight >= level
            late = srpt_completions(jobs.release[chosen], jobs.work[chosen]) - np.sort(due[chosen])
            value += height * jobs.tick * total(sum_words(np.maximum(late, 0)))
        return value, {**jobs.data(), "levels": texts}

    return best_over_machines(instance, objective, schedule_class, KIND, prove)


@register_kind(KIND, objectives=TARDINESS)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Start from max(0, r_j + p_j - d_j) for all; count what the matching adds, level by level."""
    times = times_of(instance, certificate.objective)
    machine = machine_of(certificate, instance, times)
    levels = stated_levels(certificate)
    value = times.cost_alone()
    for level, below in zip(levels, [Fraction(0), *levels], strict=False):
        jobs = [j for j in times.with_weight(level) if machine.work[j] > 0]
        done = srpt((machine.release[j], machine.work[j]) for j in jobs)
        dues = sorted(machine.ceil_ticks(times.counted[j] or 0, times.per_second) for j in jobs)
        late = sum(max(0, end - due) for end, due in zip(done, dues, strict=True))
        never = sum(times.alone(j) for j in jobs)
        value += (level - below) * (late * machine.tick - Fraction(never, times.per_second))
    data = {**machine.data(), "levels": [ratio_text(level) for level in levels]}
    require_same(certificate, value, data)
