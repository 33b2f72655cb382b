"""Due dates on one machine: how late jobs make each other, at most and in sum.

**First come, first served**. **Problem**: max (C_j - r_j) on the machine of a relaxation (`optsched.bounds.relaxation`).
**Bound**: ``max over sets S of min_S release + work of S / capacity + min_S tail - max_S r_j``, the release on the machine
being r_j but for transfers, which begin later; of jobs that come in [a, b] the work less b - a. The machine that serves the
released job with the least r_j - tail first, tails being what follows the work on the machine, reaches the maximum: with E_j
its end, ``max_j E_j + tail_j - r_j``.
**Proof**: the last job of S on the machine ends no earlier than the first release plus the work of S, and completes its tail
after that; it came no later than the last of S. That the rule attains the best S is Jackson's: S are the jobs served
without a pause before the job that is latest, since the last moment at which one with a later r_j - tail was served. On the
grid r_j - tail is rounded **up**, which only lowers the bound.
**Tight** for one machine, where first come, first served is optimal. **Complexity** O(n log n).
**Reference**: Horn, Some simple scheduling algorithms, Naval Research Logistics 21 (1974), 177-185.

**SRPT against due dates in order**, which no assignment of names can beat. **Problem**: sum w_j max(C_j - d_j, 0) there;
weights in layers (`optsched.bounds.weight_levels`).
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
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from optsched.bounds.certificate import Proof, best_proof, ratio_text
from optsched.bounds.exact_dot import exact_total
from optsched.bounds.fast_machine import priority_run, srpt_completions
from optsched.bounds.grid import GridJobs, due_ticks
from optsched.bounds.relaxation import FastMachine, Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import LARGEST_FLOW, TARDINESS, SumCosts, two_sum
from optsched.bounds.weight_levels import levels_of, reduced, steps
from optsched.problem.arrays import Floats


def first_come(relaxed: Relaxed, objective: str) -> Proof | None:
    """The proof on the best machine; data: the machine and the grid."""
    return _best(relaxed, relaxed.instance.arrival, _latest, {})


def due_dates_in_order(relaxed: Relaxed, objective: str) -> Proof | None:
    """The proof on the best machine; data: machine, grid, levels of weight."""
    costs = relaxed.costs(objective)
    levels = levels_of(costs.weight)
    texts = [ratio_text(Fraction(level)) for level in levels]
    return _best(relaxed, costs.counted, partial(_late, costs, levels), {"levels": texts})


def _best(
    relaxed: Relaxed, moment: Floats, value: Callable[[GridJobs, Floats], Fraction], more: dict[str, Any]
) -> Proof | None:
    proofs = []

    def rough(machine: FastMachine) -> float:
        due = due_dates(moment, machine)
        return float(value(machine.rough_grid(due), due))

    for (machine,) in relaxed.machines(rough):
        due = due_dates(moment, machine)
        grid = machine.grid(due)
        proofs.append((value(grid, due), machine.data(grid) | more))
    return best_proof(proofs)


def due_dates(due: Floats, machine: FastMachine) -> Floats:
    """Less the tails, rounded up; none after the machine's last possible completion. f64[n]."""
    if machine.tail is not None:
        less, error = two_sum(due, -machine.tail)
        due = np.where(error > 0, np.nextafter(less, math.inf), less)
    busy = float(np.sum(machine.width * machine.seconds)) / machine.capacity
    return np.minimum(due, np.ceil((float(machine.release.max(initial=0.0)) + busy) * (1 + 1e-9)))


def _latest(grid: GridJobs, due: Floats) -> Fraction:
    counted = due_ticks(due, grid)
    used = np.flatnonzero(grid.work > 0)
    used = used[np.lexsort((counted[used], grid.release[used]))]
    release, work, counted = grid.release[used], grid.work[used], counted[used]
    rank = np.empty_like(used)
    rank[np.argsort(counted, kind="stable")] = np.arange(used.size)
    done, *_ = priority_run(release, work, rank)
    return grid.tick * int(np.max(done - counted, initial=0))


def _late(costs: SumCosts, levels: list[float], grid: GridJobs, due: Floats) -> Fraction:
    weight = np.where(grid.work > 0, reduced(costs.weight, levels), 0.0)
    value, ticks = costs.alone(costs.weight) - costs.alone(weight), due_ticks(due, grid)
    for level, height in steps(levels):
        chosen = weight >= level
        late = srpt_completions(grid.release[chosen], grid.work[chosen]) - np.sort(ticks[chosen])
        value += height * grid.tick * exact_total(np.maximum(late, 0))
    return value


STATEMENT = "work of jobs that come in some seconds, less these, on one machine"
theorem(Theorem("first-come", (LARGEST_FLOW,), STATEMENT, first_come))
IN_ORDER = "SRPT completions against the due dates in order on one machine"
theorem(Theorem("due-dates", TARDINESS, IN_ORDER, due_dates_in_order))
