"""Solutions of a model that was changed: check of the schedule, and of the solver's bound.

A solver's solution is correct up to its tolerances, in float64. The integers here are whole, and all other variables have
been solved again for them (`FittedProgram.settled`). This module reads the schedule, has the referee check it, puts it back
on the model, and checks every row (the model's and the caller's) in fractions. It weakens the solver's bound by what the
tolerances may hide (`FittedProgram.doubt`). If a check fails, the answer is an interval and the note gives the reason: a
solver's tolerance must not look like an error in the caller's rows.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds import bound
from optsched.check.referee import check_schedule
from optsched.errors import InputError, OptschedError
from optsched.models.formulation import Formulation
from optsched.models.one_machine_orders import TOLERANCE
from optsched.problem.arrays import Floats
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.solvers.fitted_program import FittedProgram
from optsched.solvers.formulated import OBJECTIVE, Formulated
from optsched.solvers.linear_program import Size
from optsched.solvers.outcome import there
from optsched.solvers.session import AGREES
from optsched.solvers.solution import Solution

APART = "times or weights are too far apart for the solver's tolerances"
# relative to the value and the latest end: rounding moves a solver's bound and its schedule's value by less
CLOSE = 1e-9
DOUBT = 1e-7  # relative to the same: a bound that may be off by more than this proves no optimum


@dataclass
class Optimum:
    """Result of a solver; the values of the variables, if any, are in the model.

    ``doubt``: how far ``bound`` may be on the wrong side of the optimum; None: it proves nothing. For a model with a
    schedule ``fitted`` is the program that was solved, and ``x`` f64[columns of the model's program] its solution with
    whole integers.
    """

    status: str
    solver: str
    value: float | None = None
    bound: float | None = None
    size: Size = field(default_factory=Size)
    nodes: int = 0
    duals: dict[str, float] = field(default_factory=dict)
    note: str = ""
    doubt: Fraction | None = Fraction(0)
    fitted: FittedProgram | None = None
    x: Floats | None = None

    @property
    def sense(self) -> int:
        """1 for a minimisation, -1 for a maximisation."""
        return 1 if self.fitted is None else self.fitted.given.sense

    @property
    def proved(self) -> Fraction | None:
        """Bound weakened by the doubt, or None.

        It is the bound itself where objective values lie so far apart that the bound has been rounded to one of them.
        """
        if self.bound is None or self.doubt is None:
            return None
        step = None if self.fitted is None else self.fitted.given.objective_step
        certain = step is not None and 2 * self.doubt < step
        return Fraction(self.bound) - (0 if certain else self.sense * self.doubt)


def with_schedule(
    made: Formulated, of: Formulation, model: Any, found: Optimum, solution: Solution
) -> tuple[Solution, list[str]]:
    """Return the solution with its schedule and the schedule's value, and notes.

    The status is one that the schedule, its value and the bound confirm.

    Parameters
    ----------
    made
        The model as it was made.
    of
        Its formulation.
    model
        The model as it is now.
    found
        Result of the solver.
    solution
        The solution to complete.

    Returns
    -------
    solution
        The completed solution.
    notes
        Sentences for its note.

    Raises
    ------
    InputError
        If a change removed what makes a solution a schedule, or what makes its value that of the schedule.
    """
    instance, part, claimed = made.instance, solution.clock_part, Fraction(there(found.value))
    schedule = _schedule(made, of, solution.changed)
    own = get_objective(made.objective).exact_of(instance.relative, schedule.completion.tolist()) + part
    tightened, other = made.tightened(model), OBJECTIVE in solution.changed
    scale = abs(own - part) + Fraction(float(schedule.completion.max(initial=0.0)))
    if not tightened and not other and abs(own - claimed) > Fraction(AGREES) * scale:
        # a model without one of its rows may have a value that no schedule has
        raise InputError(
            f"the model ({', '.join(solution.changed)}) says {made.objective} {float(claimed):.12g}, "
            f"and its schedule has {float(own):.12g}: the model lacks a row that ties them"
        )
    if (broken := _broken(made, of, found, schedule)) is not None:
        note = f"HiGHS's solution violates {broken} in exact arithmetic: {APART}"
        return _certified(made, of, tightened, replace(solution, status="limit", value_exact=None, note=note)), []
    value = claimed if other else own
    notes = [f"the {made.objective} of its schedule is {float(own):.12g}"] if other else []
    solution = replace(solution, value_exact=value, schedule=schedule.on_clock(instance))
    if found.doubt is not None and found.bound is not None:
        near = max(Fraction(CLOSE) * scale, min(found.doubt, Fraction(DOUBT) * scale))
        gap = found.sense * (value - Fraction(found.bound))
        if gap < -near:
            said = f"HiGHS's bound {found.bound:.15g} is beyond the value of its own schedule, so it proves nothing"
            solution = replace(solution, status="feasible", bound_exact=None, note=said)
        elif gap <= near and found.status == "optimal" and found.doubt <= Fraction(DOUBT) * scale:
            return replace(solution, bound_exact=value), notes
    solution = _certified(made, of, tightened, solution)
    if solution.bound_exact == value:
        return replace(solution, status="optimal"), notes
    if solution.status == "optimal":
        solution = replace(solution, status="feasible", note=APART)
    return solution, notes


def _schedule(made: Formulated, formulation: Formulation, changed: tuple[str, ...]) -> Schedule:
    """Return the schedule in the values of the model, accepted by the referee; times count from the first arrival."""
    words, relative = f"the model ({', '.join(changed) or 'unchanged'})", made.instance.relative
    kept = {"kept": True} if changed and formulation.in_seconds else {}
    try:
        schedule = there(formulation.schedule)(made.model, relative, **kept)
    except InputError as error:
        raise InputError(f"{words} does not give a schedule: {error}") from None
    broken = check_schedule(relative, schedule, preemptive=False)
    if broken:
        raise InputError(f"{words} does not give a schedule; the referee: {broken[0]}")
    return schedule


def _broken(made: Formulated, of: Formulation, found: Optimum, schedule: Schedule) -> str | None:
    """Return the name of a row of the model or the caller that the schedule violates; None: all hold in fractions."""
    fitted, x = there(found.fitted), there(found.x)
    linear = fitted.given
    if of.in_seconds:
        try:
            there(of.warm_start)(made.model, schedule, kept=True)
        except InputError as error:
            return str(error)
        # the times of the schedule; a time that a row of the caller makes larger than necessary stays larger
        near = TOLERANCE * max(
            float(schedule.completion.max(initial=0.0)), float(np.abs(x[fitted.times]).max(initial=0.0))
        )
        placed, known = linear.values()
        x = np.where(fitted.times & known & (x <= placed + near), placed, x)
        linear.load(x)
    rows = fitted.broken(x)
    return made.name(linear.rows[rows[0]]) if rows else None


def _certified(made: Formulated, of: Formulation, tightened: bool, solution: Solution) -> Solution:
    """Return the solution with the best certificate of the instance, if it is above the bound.

    The certificate is valid because every solution of the model is a schedule.
    """
    if not tightened:
        return solution
    with contextlib.suppress(OptschedError):
        certificate = bound(made.instance.relative, made.objective, of.schedule_class)
        certificate.verify(made.instance.relative)
        proved = certificate.value + solution.clock_part
        if solution.value_exact is not None:
            proved = min(proved, solution.value_exact)
        if solution.bound_exact is None or proved > solution.bound_exact:
            return replace(
                solution,
                bound_exact=proved,
                bound_by="certificate",
                certificate=certificate.on_clock(made.instance),
            )
    return solution
