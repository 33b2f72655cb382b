"""SRPT on the fast machine: the sum of completion times of a relaxation that one rule solves to optimality.

**Problem**: sum C_j and sum (C_j - r_j) on the machine of a relaxation (`optsched.bounds.relaxation`); with weights in
layers (`optsched.bounds.weight_levels`).
**Bound**: the jobs that take a part of the fast machine cost at least what SRPT, optimal for 1 | r_j, pmtn | sum C_j, makes
them cost there, plus the tails that follow; the others, set aside by a threshold, without work on a resource or shorter than
the grid, at least r_j + e_j each, e_j their seconds alone. Flow times: minus ``sum w_j r_j``. Prices and charges come from a
search; any legal ones give a bound.
**Proof**: a schedule of the class is one of the fast machine with the same completion times (tails apart), and SRPT is
optimal there. The grid rounds down only (`optsched.bounds.grid`).
**Guarantee**: exact for one machine with one-GPU jobs and equal weights; for forked jobs whose gang is one GPU on one type;
for elastic jobs that run G times as fast on G GPUs as on one; for one-GPU jobs on one GPU where xi = 2 (then sharing gains
nothing); and for tasks on one GPU, when they may be preempted. With equal weights, each.
**Complexity** O(n log n) a run, a run per level; at most 122 runs for a search.
**Reference**: Schrage, Operations Research 16 (1968), 687-690; for clusters the virtual
single machine of Luo et al., INFOCOM 2025 (there with a factor, here with none); the other relaxations are derived here.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Proof, best_proof, ratio_text
from optsched.bounds.exact_dot import exact_dot, exact_total
from optsched.bounds.fast_machine import srpt_completions
from optsched.bounds.grid import GridJobs
from optsched.bounds.relaxation import FastMachine, Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import COMPLETION, FLOW, SumCosts
from optsched.bounds.weight_levels import levels_of, reduced, steps
from optsched.problem.arrays import Floats


def build(relaxed: Relaxed, objective: str) -> Proof | None:
    """The proof on the best machine; data: machine, grid, levels of weight, flow constant."""
    costs = relaxed.costs(objective)
    levels = levels_of(costs.weight)
    stated = {**costs.data(), "levels": [ratio_text(Fraction(level)) for level in levels]}
    found = ((some, some.grid()) for (some,) in relaxed.machines(lambda some: rough_value(costs, some, levels)))
    return best_proof(
        (layered(costs, grid, levels, machine.tail), {**machine.data(grid), **stated}) for machine, grid in found
    )


def layered(costs: SumCosts, jobs: GridJobs, levels: list[float], tail: Floats | None = None) -> Fraction:
    """The bound with SRPT once a level of weight."""
    weight = np.where(jobs.work > 0, reduced(costs.weight, levels), 0.0)
    value = Fraction(0) if tail is None else exact_dot(weight, tail)
    for level, height in steps(levels):
        chosen = weight >= level
        every = bool(chosen.all())
        done = srpt_completions(
            jobs.release if every else jobs.release[chosen], jobs.work if every else jobs.work[chosen]
        )
        value += height * jobs.tick * (exact_total(done) + done.size * jobs.origin)
    if costs.objective in FLOW:
        value -= exact_dot(weight, costs.release)
    if not np.array_equal(weight, costs.weight):
        value += costs.alone(costs.weight) - costs.alone(weight)
    return value


def rough_value(costs: SumCosts, machine: FastMachine, levels: list[float]) -> float:
    """`layered` in floats, but for the flow constant."""
    grid = machine.rough_grid()
    weight = np.where(grid.work > 0, reduced(costs.weight, levels), 0.0)
    value = float((costs.weight - weight) @ (costs.release + costs.duration))
    for level, height in steps(levels):
        chosen = weight >= level
        done = srpt_completions(grid.release[chosen], grid.work[chosen])
        value += float(height) * float(grid.tick) * (float(done.astype(np.float64).sum()) + done.size * grid.origin)
    return value


theorem(Theorem("srpt", (*COMPLETION, *FLOW), "SRPT on one machine", build))
