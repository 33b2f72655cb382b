"""`solve_by_columns`: the programs of Hadar's packing, `hadar-primal`, `hadar-dual` and `hadar-packing`, without a list of
schedules."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

from optsched.deadline import Deadline
from optsched.models.program import PROGRAMS, Program, RoundSchedules, packing_names
from optsched.problem.instance import Instance
from optsched.solvers.round_packing import FINE, RoundPacking, pack_rounds
from optsched.solvers.session import Progress, Session
from optsched.solvers.size import Size
from optsched.solvers.solution import Solution

LISTED = 100_000  # schedules at most: with more, columns are faster than the whole program
SMALL = 4_000  # jobs times rounds: the LP to its end
CLOSED = 1e-9  # relative: an LP's interval that is a point


def by_columns(program: Program, data: object) -> bool:
    """Is this program one whose schedules are too many to list?"""
    return isinstance(data, RoundSchedules) and data.at_most > LISTED


def solve_by_columns(
    instance: Instance,
    program: Program,
    data: RoundSchedules,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """The program's interval by column generation (`optsched.solvers.round_packing`), and its dual's.

    ``optimal`` where the interval is a point, else ``feasible``: the LP to its tolerance, ``hadar-packing`` with schedules
    that price-and-branch has chosen; ``limit`` when time was up. The bound is exact, and its prices are the duals.
    """
    began, integer = time.perf_counter(), program.name == "hadar-packing"
    deadline = Deadline.after(time_limit)
    small = data.problem.n * data.problem.rounds <= SMALL
    tolerance = CLOSED if small else FINE
    found = pack_rounds(data.problem, integer=integer, tolerance=tolerance, deadline=deadline, progress=progress)
    named = packing_names(data, instance.relative, found.price.ravel(), found.payoff)
    lower, upper = Fraction(found.chosen_value if integer else found.value), found.bound
    status = "optimal" if upper - lower <= CLOSED * upper else "limit" if deadline.passed else "feasible"

    def solution(of: Program, value: Fraction, bound: Fraction, opposite: Solution | None = None) -> Solution:
        return Solution(
            objective=of.name,
            status=status,
            value_exact=value,
            bound_exact=bound,
            bound_by="certificate",
            schedule=None,
            certificate=None,
            model=of.name,
            solver=f"columns, {Session.solver}",
            seconds=time.perf_counter() - began,
            size=_size(found),
            nodes=found.rounds,
            duals={} if integer else named,
            note=f"{found.columns:,} columns of {data.problem.n} jobs in {data.problem.rounds} rounds",
            meaning=of.value,
            opposite=opposite,
        )

    if program.dual is None:
        return solution(program, lower, upper)
    other = PROGRAMS.get(program.dual)
    if program.name == "hadar-dual":
        return solution(program, upper, lower, solution(other, lower, upper))
    return solution(program, lower, upper, solution(other, upper, lower))


def _size(found: RoundPacking) -> Size:
    return Size(found.price[0].size * found.problem.rounds + found.problem.n, found.columns)
