"""From a solver's duals, floats, to prices that prove a bound, integers over a common denominator.

Any prices >= 0 prove something (`optsched.bounds.lp_dual`), so rounding can cost a little of the bound, never its truth.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.lp_dual import PriceRow, Prices, integers
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.sequence_paths import QUANTUM, cheapest_paths
from optsched.solvers.single_machine import SingleMachine
from optsched.solvers.start_program import SlotJobs, StartProgram

# Vertices of these LPs mostly have duals with small denominators; then the bound loses nothing at all.
DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 24, 60, 120, 360, 840, 2520, 27720)
NEARLY = 1e-6
FINE = 1 << 24


def rational(values: Floats) -> tuple[Ints, int]:
    """Nonnegative floats as integers over the smallest denominator that fits all of them, else over 2**24."""
    values = np.maximum(values, 0.0)
    for denominator in DENOMINATORS:
        scaled = np.round(values * denominator)
        if np.all(np.abs(values * denominator - scaled) <= NEARLY * np.maximum(1.0, values)):
            return scaled.astype(np.int64), denominator
    return np.round(values * FINE).astype(np.int64), FINE


def prices_of_duals(program: StartProgram, row_dual: Floats) -> Prices:
    """Prices of slots of a solved `StartProgram` (HiGHS's convention: a ``<=`` row's dual is <= 0 in a minimisation)."""
    jobs = program.jobs
    duals = -row_dual[jobs.release.size :]
    amount, denominator = rational(duals)
    cells = int(program.row_slot.max(initial=-1)) + 1
    rows = []
    for f, family in enumerate(program.families):
        of_family = (program.row_family == f) & (amount > 0)
        if of_family.any():
            price = np.zeros(cells, dtype=np.int64)
            price[program.row_slot[of_family]] = amount[of_family]
            rows.append(PriceRow(family.width, price))
    return Prices("rigid-time-indexed", Fraction(jobs.origin), jobs.unit, denominator, tuple(rows))


def prices_of_multipliers(jobs: SlotJobs, machine: SingleMachine, multipliers: Floats, step: Fraction) -> Prices:
    """Prices from job multipliers u of a single machine: the fall of the shortest path's length with time.

    Let V(t) be the length of a shortest path from 0 to t with arcs of cost ``c_js - u_j`` and free waiting. V never
    rises, and ``V(s) - V(s + p_j) >= u_j - c_js`` for every arc: with ``pi_t = V(t) - V(t + 1)`` this is dual
    feasibility, with the value ``sum u - sum pi = sum u + V(H)``. Multipliers of a machine that never waits are only
    known up to a multiple of p_j (all paths have the same length), which is found by a search on that concave value.

    ``machine`` reaches one job length beyond the last completion; its costs are in units of ``step``.
    """
    alive = np.arange(machine.horizon + 1) + machine.length[:, None] <= machine.horizon
    alive &= np.arange(machine.horizon + 1) >= machine.release[:, None]
    length = machine.length.astype(np.float64)
    path = np.empty(machine.horizon + 1)

    def value(shift: int) -> float:
        u = multipliers + shift * length
        cheapest_paths(machine.cost, u, machine.length, alive, True, path)
        return float(u.sum() + path[-1])

    low, high = 0, int(machine.cost[:, -1].max()) + 1
    while low < high:
        middle = (low + high) // 2
        if value(middle) < value(middle + 1):
            low = middle + 1
        else:
            high = middle
    value(low)
    amount = np.maximum(np.round((path[:-1] - path[1:]) * QUANTUM), 0.0)
    quantum = step / int(QUANTUM)
    # steps of decimal times, such as 0.1 as float64 has it, have numerators that no 64 bits hold when multiplied
    price = integers([int(units) * quantum.numerator for units in amount.tolist()])
    row = PriceRow(np.ones(length.size, dtype=np.int64), price)
    return Prices("time-indexed", Fraction(jobs.origin), jobs.unit, quantum.denominator, (row,))
