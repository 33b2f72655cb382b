"""SRPT completions against due dates in order: a bound on total tardiness that no assignment of names can beat.

**Problem**: sum w_j max(C_j - d_j, 0) on the machine of a relaxation (`optsched.bounds.relaxation`); weights in layers
(`optsched.bounds.weight_levels`).
**Bound**: on the fast machine the k-th completion of SRPT, C_[k], is the earliest possible k-th completion, for every k
at once; so jobs with a due date have ``sum T_j >= sum_k max(0, C_[k] - d_[k])`` with the due dates, less what follows the
work on the machine (its tail), in ascending order. Jobs set aside, and weight above the levels, cost at least max(0, r_j
+ e_j - d_j) a unit.
**Proof**: of all ways to assign the completion times to the due dates the one in order has the least total tardiness
(exchange argument), and the terms are nondecreasing in C_[k]. On the grid due dates are rounded **up**, which
only lowers them; those after the machine's last possible completion are moved down to it, which changes nothing.
**Complexity** O(n log n), a run per level.
**Reference**: Chu, A branch-and-bound algorithm to minimize total tardiness with different release dates, Naval Research
Logistics 39 (1992), 265-283.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Proof, ratio_text
from optsched.bounds.exact_dot import exact_total
from optsched.bounds.fast_machine import srpt_completions
from optsched.bounds.grid import GridJobs, due_ticks
from optsched.bounds.relaxation import FastMachine, Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import TARDINESS, SumCosts, two_sum
from optsched.bounds.weight_levels import levels_of, reduced, steps
from optsched.problem.arrays import Floats


def build(relaxed: Relaxed, objective: str) -> Proof | None:
    """The proof on the best machine; data: machine, grid, levels of weight."""
    costs = relaxed.costs(objective)
    levels = levels_of(costs.weight)
    texts, proofs = [ratio_text(Fraction(level)) for level in levels], []

    def rough(machine: FastMachine) -> float:
        due = due_dates(costs.counted, machine)
        return float(_value(costs, machine.rough_grid(due), due, levels))

    for (machine,) in relaxed.machines(rough):
        due = due_dates(costs.counted, machine)
        grid = machine.grid(due)
        proofs.append((_value(costs, grid, due, levels), {**machine.data(grid), "levels": texts}))
    return max(proofs, key=lambda proof: proof[0], default=None)


def due_dates(due: Floats, machine: FastMachine) -> Floats:
    """Less the tails, rounded up; none after the machine's last possible completion. f64[n]."""
    if machine.tail is not None:
        less, error = two_sum(due, -machine.tail)
        due = np.where(error > 0, np.nextafter(less, math.inf), less)
    busy = float(np.sum(machine.width * machine.seconds)) / machine.capacity
    return np.minimum(due, np.ceil((float(machine.release.max(initial=0.0)) + busy) * (1 + 1e-9)))


def _value(costs: SumCosts, grid: GridJobs, due: Floats, levels: list[float]) -> Fraction:
    weight = np.where(grid.work > 0, reduced(costs.weight, levels), 0.0)
    value, ticks = costs.alone(costs.weight) - costs.alone(weight), due_ticks(due, grid)
    for level, height in steps(levels):
        chosen = weight >= level
        late = srpt_completions(grid.release[chosen], grid.work[chosen]) - np.sort(ticks[chosen])
        value += height * grid.tick * exact_total(np.maximum(late, 0))
    return value


theorem(Theorem("due-dates", TARDINESS, "SRPT completions against the due dates in order on one machine", build))
