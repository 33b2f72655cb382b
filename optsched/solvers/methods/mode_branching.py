"""The method ``mode-branching``: branch and bound over (order, mode) for gangs whose speed depends on their placement.

**Problem** P | r_j, size_j, alpha_j(placement) | f, f regular, for a handful of jobs; times may be any real numbers.

Serial generation extended by modes: put the jobs one after the other, each in some mode (`optsched.models.mapped_modes`) at
its earliest feasible start beside those before it. Fix the modes of an optimal schedule with the smallest sum of completions
and list its jobs by (start, position): no job can move to the left, so every one is where generation in this order puts
it. Hence it is enough to look at

* sequences whose (start, position) increase: each start is then the first moment, not before the previous start, at
  which the jobs that still run leave enough GPUs for the mode;
* starts before some other open job could have come and gone (it would have, and nobody would be later);
* of modes that differ only by alike nodes on which the same GPUs become free at the same times, one.

A node is left when what is paid already and the least that every open job can still pay, in its best mode beside what
runs now, comes to no less than the best known value. Exponential: about n! B^n without the pruning. A formulation
shares nothing with this but the modes. Reference: Sprecher and Drexl, Eur. J. Oper. Res. 107 (1998),
431-450.
"""

from __future__ import annotations

from fractions import Fraction

from optsched.bounds.regular import regular_cost
from optsched.models.mapped_modes import MappedModes
from optsched.solvers.method import MethodReport, add_method, there
from optsched.solvers.mode_search import Problem, branch, empty_stack
from optsched.solvers.size import Size
from optsched.solvers.solve_state import SolveState

NAME = "mode-branching"
JOBS = 12
NODES = 200_000  # between two looks at the clock
ROUNDING = 1e-11  # of what is at stake: sums of times that lie on no grid are taken in some order


def problem_of(state: SolveState, modes: MappedModes) -> Problem:
    """The arrays of a state."""
    instance, cost = state.instance, regular_cost(state.goal, state.instance)
    return Problem(
        release=instance.arrival.copy(),
        offset=modes.offset,
        held=modes.held,
        seconds=modes.seconds,
        capacity=instance.cluster.node_gpus.copy(),
        alike=instance.cluster.node_group.copy(),
        slope=cost.slope,
        kink=cost.kink,
        base=cost.base,
        maximum=cost.maximum,
    )


def _applies(state: SolveState) -> str | None:
    if not state.placed:
        return "the speed of no job depends on its placement: other models know more"
    if state.instance.n > JOBS:
        return f"it is for at most {JOBS} jobs, not for {state.instance.n}"
    if state.modes is None:
        return "a gang has too many placements"
    if state.horizon is not None:
        return "it knows no horizon"
    return None


def _run(state: SolveState) -> MethodReport:
    modes, known = there(state.modes), there(state.value)
    problem, seen, done = problem_of(state, modes), 0, False
    # where two values differ, then by a step, which rounding is far below; else what is nearer than this is no better
    margin = 0.0 if state.step is not None else float(state.at_stake) * ROUNDING + float(state.rounding_of_times) / 8
    stack = empty_stack(state.instance.n, modes.job.size, float(known))
    while not done and not state.late:
        found = stack.best[0]
        done, nodes = branch(problem, stack, modes.job, margin, NODES)
        seen += nodes
        if stack.best[0] < found:
            state.offer(modes.schedule(state.instance, stack.best_mode.copy(), stack.best_start.copy(), NAME))
        state.report(seen)
    size = Size(columns=modes.job.size)
    if not done:
        return MethodReport("branch and bound", size, seen, note=f"the time limit came after {seen} nodes")
    if state.value is not None:
        state.raise_bound(state.value - 2 * Fraction(margin), "solver")
    return MethodReport("branch and bound", size, seen)


add_method(NAME, _applies, _run)
