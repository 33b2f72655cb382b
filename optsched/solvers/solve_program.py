"""`solve_program` formulates and solves a model by its name. If a program has a dual, it solves both and reports the gap.

The programs of Hadar's packing, `hadar-primal`, `hadar-dual` and `hadar-packing`, are solved by column generation where
they have more schedules than can be listed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from optsched.deadline import Deadline
from optsched.models.program import PROGRAMS, Program, RoundSchedules, data_of, packing_names
from optsched.problem.instance import Instance, Source, instance_of
from optsched.solvers.formulate import built, formulate
from optsched.solvers.formulated import formulated
from optsched.solvers.linear_program import Size
from optsched.solvers.round_packing import FINE, pack_rounds
from optsched.solvers.session import Progress, Session
from optsched.solvers.solution import Solution
from optsched.solvers.solve_model import solve_model

LISTED = 100_000  # most schedules of a program that is solved whole; with more of them columns are faster
SMALL = 4_000  # jobs times rounds up to which the LP is solved to its end
CLOSED = 1e-9  # relative width of an LP's interval that counts as a point


def solve_program(
    instance: Source,
    model: str,
    time_limit: float | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Formulate and solve the program ``NAME[:key=value,...]`` on an instance, and its dual if it has one.

    The solution of the dual is ``opposite``. All else is as for `formulate` and `solve_model`. If Hadar's packing has
    too many schedules to list, `solve_by_columns` solves it.

    Parameters
    ----------
    instance
        Jobs and a cluster, or a SOURCE that `optsched.load` reads.
    model
        Name of a formulation, with parameters.
    time_limit
        Seconds for each of the two solves; None: until the end.
    progress
        Function that `solve_by_columns` calls with its interval as it shrinks.

    Returns
    -------
    Solution
        The solution.

    Examples
    --------
    >>> import optsched as osd
    >>> solution = osd.solve_program(osd.generate("hetero-small", seed=1), "hadar-primal:rounds=3")
    >>> solution.status, round(solution.value, 3), round(solution.opposite.value, 3)
    ('optimal', 6.216, 6.216)
    """
    if model.partition(":")[0].strip() in PROGRAMS:
        given, began = instance_of(instance), time.perf_counter()
        program, data = data_of(given.relative, model)
        if isinstance(data, RoundSchedules) and data.at_most > LISTED:
            return solve_by_columns(given, program, data, time_limit, progress)
        made = built(given, program, data, began)
    else:
        made = formulated(formulate(instance, model))
    found = solve_model(made.instance, made.model, time_limit)
    if not isinstance(made.of, Program) or made.of.dual is None:
        return found
    other = built(made.instance, PROGRAMS.get(made.of.dual), made.data, time.perf_counter())
    return replace(found, opposite=solve_model(made.instance, other.model, time_limit))


def solve_by_columns(
    instance: Instance,
    program: Program,
    data: RoundSchedules,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Return the program's interval by column generation (`optsched.solvers.round_packing`), and its dual's.

    The status is ``optimal`` if the interval is a point, else ``feasible`` (the LP up to its tolerance, or ``hadar-packing``
    with schedules that price-and-branch chose), or ``limit`` if the time was up. The bound is exact, and its prices are the
    duals.

    Parameters
    ----------
    instance
        Jobs and cluster.
    program
        The program: ``hadar-primal``, ``hadar-dual`` or ``hadar-packing``.
    data
        The problem in rounds.
    time_limit
        Seconds; None: until the end.
    progress
        Function called with the interval as it shrinks.
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
            model=of.name,
            solver=f"columns, {Session.solver}",
            seconds=time.perf_counter() - began,
            size=Size(found.price[0].size * found.problem.rounds + found.problem.n, found.columns),
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
