"""The method ``sequence-branching``: clusters on which no two gangs fit together are one machine."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from optsched.bounds.lp_dual import PriceRow, Prices, integers, price_certificate
from optsched.problem.arrays import Floats
from optsched.solvers.linear_program import Size
from optsched.solvers.lp_bound import SlotJobs
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.outcome import there
from optsched.solvers.sequence_paths import QUANTUM, Jobs, cheapest_paths
from optsched.solvers.single_machine import EXACT, SingleMachine, prove_single_machine
from optsched.solvers.solve_state import SolveState

NAME = "sequence-branching"
STATES = 20_000_000  # jobs x slots: memory of a bound
CERTIFYING = 5e-7  # seconds a job and slot that a certificate and its check take
PAIRS = 2e9  # jobs x jobs x slots: a few seconds of one bound
BEYOND = 1 << 52  # largest cost x slots; values x slots are below `EXACT`


def _applies(state: SolveState) -> str | None:
    instance, grid = state.instance, state.grid
    if reason := state.misfit():
        return reason
    if instance.n > 1 and int(np.sort(instance.gpus)[:2].sum()) <= instance.cluster.gpus:
        return "two jobs can run at the same time"
    if grid is None or state.finest_step is None:
        return "the times or the values have no useful common unit"
    slots = grid.end
    if instance.n * slots > STATES or instance.n**2 * slots > PAIRS:
        return f"{instance.n} jobs x {slots} slots are too many"
    if state.value is not None and state.value / state.finest_step * slots >= EXACT:
        return "values are too large for exact arithmetic"
    return None


def machine_of(state: SolveState, horizon: int) -> SingleMachine:
    """Return the jobs with costs in steps (integers), without the constant that every schedule pays.

    Parameters
    ----------
    state
        The solve.
    horizon
        Last time in slots.
    """
    grid, step, n = there(state.grid), there(state.finest_step), state.instance.n
    rise, base, most = np.zeros(n), np.zeros(n), BEYOND // (horizon + 1)
    for j, c in enumerate(state.costs):
        # slope (origin + k unit - kink) / step, k = s + p_j, is an integer for every s
        by_slot = int(c.slope * grid.unit / step)
        at_zero = int(c.slope * (Fraction(grid.origin) + int(grid.duration[j]) * grid.unit - c.kink) / step)
        if by_slot > most or at_zero > most:
            # The weight counts from a due date on, and ``most`` is beyond the incumbent's value: as good as infinite.
            late = max(-at_zero // by_slot + 1, 0) if by_slot else 0  # first start with a cost
            first = min(by_slot * late + at_zero, most)
            by_slot, at_zero = (most, first - most * late) if late <= horizon else (0, 0)
        rise[j], base[j] = by_slot, at_zero
    return SingleMachine(rise, base, grid.duration, grid.release, horizon)


def _run(state: SolveState) -> MethodReport:
    grid, step, value = there(state.grid), there(state.finest_step), there(state.value)
    horizon = grid.end - 1
    machine = machine_of(state, horizon)

    def seconds(amount: int) -> Fraction:
        return state.values_from + amount * step

    def progress(_value: int, bound: int, stages: int) -> None:
        state.raise_bound(seconds(bound), "solver", tell=False)
        state.report(stages)

    def priced(multipliers: Floats, bound: float) -> None:
        better = state.certificate is None or seconds(math.ceil(bound)) > state.certificate.value
        if better and machine.size * (horizon + 1) * CERTIFYING <= state.left:
            jobs = SlotJobs(state.instance, state.goal.name, grid.origin, grid.unit, grid.release, grid.duration)
            longer = machine_of(state, horizon + int(grid.duration.max()))
            prices = prices_of_multipliers(jobs, longer, multipliers, step)
            state.offer_certificate(price_certificate(state.instance, state.goal.name, "gang-nonpreemptive", prices))

    order = np.argsort(there(state.schedule).completion, kind="stable")
    proof = prove_single_machine(
        machine, state.steps(value), order=order, deadline=state.deadline, priced=priced, progress=progress
    )
    if proof.starts is not None:
        state.offer_starts(grid.seconds(proof.starts), NAME)
    state.raise_bound(seconds(proof.bound), "solver")
    note = "" if proof.proved else f"the time limit came after {proof.stages} stages"
    arcs = int(np.sum(horizon + 1 - grid.duration - grid.release))
    return MethodReport("dynamic programming", Size(columns=arcs), proof.stages, note=note)


def prices_of_multipliers(jobs: SlotJobs, machine: SingleMachine, multipliers: Floats, step: Fraction) -> Prices:
    """Return prices from job multipliers u of a single machine: the fall of the shortest path's length with time.

    Let V(t) be the length of a shortest path from 0 to t with arcs of cost ``c_js - u_j`` and free waiting. V never
    rises, and ``V(s) - V(s + p_j) >= u_j - c_js`` for every arc: with ``pi_t = V(t) - V(t + 1)`` this is dual
    feasibility, with the value ``sum u - sum pi = sum u + V(H)``. Multipliers of a machine that never waits are only
    known up to a multiple of p_j (all paths have the same length), which a search on that concave value finds.

    Parameters
    ----------
    jobs
        The jobs on a grid.
    machine
        The jobs up to one job length beyond the last completion, with costs in units of ``step``.
    multipliers
        u, f64[n].
    step
        Unit of the costs.
    """
    at, n = np.arange(machine.horizon + 1)[:, None], np.arange(machine.size)
    alive = ((at >= machine.release) & (at + machine.length <= machine.horizon)).T
    length = machine.length.astype(np.float64)
    path, jobs_of = np.empty(machine.horizon + 1), Jobs.of(machine.rise, machine.base, machine.length, machine.release)

    def value(shift: int) -> float:
        u = multipliers + shift * length
        cheapest_paths(jobs_of, u, alive, True, path)
        return float(u.sum() + path[-1])

    low, high = 0, int(machine.cost(n, machine.horizon).max()) + 1
    while low < high:
        middle = (low + high) // 2
        if value(middle) < value(middle + 1):
            low = middle + 1
        else:
            high = middle
    value(low)
    amount = np.maximum(np.round((path[:-1] - path[1:]) * QUANTUM), 0.0)
    quantum = step / int(QUANTUM)
    # steps of decimal times, such as 0.1 in float64, have numerators whose products do not fit 64 bits
    price = integers([int(units) * quantum.numerator for units in amount.tolist()])
    row = PriceRow(np.ones(length.size, dtype=np.int64), price)
    return Prices("time-indexed", Fraction(jobs.origin), jobs.unit, quantum.denominator, (row,))


add_method(NAME, _applies, _run)
