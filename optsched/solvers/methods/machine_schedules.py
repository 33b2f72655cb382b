"""The method ``machine-schedules``: gangs of one size that are all there at 0, by branch and price over machines' schedules.

**Problem** P || sum w_j C_j: of G GPUs, floor(G / g) gangs of g run together, so that they are identical machines.
Every cost must rise from the moment at which the job could be done: completion and flow times do, tardiness does not.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.problem.arrays import Ints
from optsched.problem.schedule import Schedule
from optsched.solvers.machine_branching import MachineBranching, ParallelJobs
from optsched.solvers.method import MethodReport, add_method, there
from optsched.solvers.session import Session
from optsched.solvers.size import Size
from optsched.solvers.solve_state import SolveState, common_step
from optsched.speeds.duration import fixed_durations

NAME = "machine-schedules"
STATES = 4_000_000  # jobs x slots: 70 MB


def _applies(state: SolveState) -> str | None:
    instance, grid = state.instance, state.grid
    if reason := state.misfit():
        return reason
    if np.unique(instance.gpus).size > 1:
        return "jobs hold different numbers of GPUs"
    if np.ptp(instance.arrival) > 0:
        return "jobs arrive at different times"
    if grid is None:
        return "the times are multiples of no useful unit"
    if any(
        cost.kink > Fraction(grid.origin) + int(p) * grid.unit
        for cost, p in zip(state.costs, grid.duration, strict=True)
    ):
        return "a job costs nothing up to some time"
    jobs, _, _ = _jobs(state)
    if jobs is None or jobs.scale == 0:
        return "times and weights are too large for exact arithmetic"
    if jobs.n * jobs.horizon > STATES:
        return f"{jobs.n} jobs x {jobs.horizon} slots are too many"
    return None


def _jobs(state: SolveState) -> tuple[ParallelJobs | None, Ints, Fraction]:
    """(the jobs in Smith's order, their positions, what a unit of their integer costs is worth)."""
    grid, instance = there(state.grid), state.instance
    rise = [cost.slope * grid.unit for cost in state.costs]
    step = common_step(rise) or Fraction(1)
    weight = [int(each / step) for each in rise]
    length = grid.duration.tolist()
    if sum(weight) * sum(length) >= 1 << 60:
        return None, np.zeros(0, dtype=np.int64), step
    never = Fraction(1 << 62)
    key = [Fraction(p, w) if w else never for p, w in zip(length, weight, strict=True)]
    order = np.array(sorted(range(instance.n), key=lambda j: (key[j], length[j], j)), dtype=np.int64)
    machines = instance.cluster.gpus // int(instance.gpus[0])
    return ParallelJobs(grid.duration[order], np.array(weight, dtype=np.int64)[order], machines), order, step


def _run(state: SolveState) -> MethodReport:
    found, order, step = _jobs(state)
    jobs, grid, duration = there(found), there(state.grid), fixed_durations(state.instance)
    origin = Fraction(grid.origin)
    unavoidable = sum((cost.base + cost.slope * (origin - cost.kink) for cost in state.costs), Fraction(0))

    def better() -> None:
        start = np.zeros(state.instance.n, dtype=np.int64)
        start[order] = jobs.starts(search.machine)
        state.offer(Schedule.from_starts(state.instance, grid.seconds(start), duration=duration, policy=NAME))
        state.raise_bound(unavoidable + step * search.lower, "solver")

    search = MachineBranching(jobs, state.deadline, better)
    search.run()
    better()
    ended = "" if state.closed else f"the time limit came after {search.nodes} nodes"
    return MethodReport(
        Session.solver, Size(jobs.n + 1, len(search.paths), int(search.paths.sum())), search.nodes, note=ended
    )


add_method(NAME, _applies, _run)
