"""`solve_model` solves a model that `formulate` made, unchanged or changed.

The solution of a model of schedules is read back to a schedule, which the referee checks; any other model has a value, and
prices by name. HiGHS solves linear models, CVXPY's Clarabel convex ones.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import issparse

from optsched.deadline import Deadline
from optsched.errors import InfeasibleError, InputError, OptschedError
from optsched.models.formulation import Formulation
from optsched.models.latest_starts import latest_completions
from optsched.models.program import PROGRAMS, Program
from optsched.problem.instance import Source, instance_of
from optsched.problem.objectives import get_objective
from optsched.solvers.changed_model import APART, Optimum, with_schedule
from optsched.solvers.compile_model import compile
from optsched.solvers.dual_bound import dual_bound
from optsched.solvers.fitted_program import FittedProgram
from optsched.solvers.formulate import long_enough
from optsched.solvers.formulated import OBJECTIVE, Formulated, conflict_in_words, formulated, is_cvxpy
from optsched.solvers.linear_program import LinearProgram, Size
from optsched.solvers.outcome import there
from optsched.solvers.session import Session
from optsched.solvers.solution import Solution
from optsched.solvers.solve import begin
from optsched.speeds.duration import seconds_alone

UNBOUNDED = "its objective has no limit: a row or a bound is missing"


def solve_model(instance: Source, model: Any, time_limit: float | None = None) -> Solution:
    """Return the optimum of a model that `formulate` made, unchanged or with your constraints, bounds or objective terms.

    An exact formulation **as it was made** is solved as by `solve` with this model: windows of jobs as short as a known
    schedule leaves them, times in units that fit, schedule and value as `solve` documents. If the solver's tolerances
    leave its proof open, another method closes it, and ``note`` says so. The model gets the schedule.

    For a **changed** model status, value and bound are those of the changed model, as ``changed`` and ``note`` say. They are
    neither an optimum nor a bound of the instance. Its integers are rounded, all other variables are solved again for
    them, the referee checks the schedule, and every row is checked in fractions. The value is that of the schedule,
    unless you changed the objective. The status is ``optimal`` if HiGHS proved the optimum. If times or weights are too
    far apart for HiGHS's tolerances, the status is ``feasible`` with a weaker bound, or ``limit`` without a value;
    ``note`` gives the reason.

    A model without schedules (relaxed, or a program) has a value and no schedule; the bound of a relaxed LP is the one
    that its prices prove. ``duals`` of an LP: d value / d right-hand side of every row, by job id and seconds,
    ``"once[job 7]"``, ``"capacity[12 s]"`` (CVXPY stores ``a >= b`` as ``b <= a``); for a program the prices that it
    names, and the duals of added rows. ``infeasible``: ``note`` names rows that cannot all hold.

    A convex program is ``optimal`` up to the tolerances of Clarabel, without a bound, else ``feasible``. ``limit``: the
    time is up; an LP then has a value and no bound. ``unbounded``: the objective has no limit; there is neither value
    nor bound.

    Parameters
    ----------
    instance
        The instance of the model.
    model
        Pyomo: the model itself, changed in place. CVXPY: the problem, or one with its variables and more
        constraints, ``cvxpy.Problem(problem.objective, [*problem.constraints, one_more])``.
    time_limit
        Seconds; None: until the end.

    Returns
    -------
    Solution
        The solution.

    Raises
    ------
    InputError
        If the model belongs to another instance, is neither linear nor convex, has NaN or an infinite coefficient
        (the message names the row), or lost what makes its solutions schedules.
    OptschedError
        If a solver gives up.

    Examples
    --------
    >>> import optsched as osd
    >>> model = osd.formulate("rigid-06-1", "rigid-time-indexed", "total_completion_time")
    >>> osd.solve_model("rigid-06-1", model).value
    156.0
    >>> import pyomo.environ as pyo
    >>> model.early = pyo.Constraint(expr=model.end("2") <= 20)
    >>> osd.solve_model("rigid-06-1", model)
    Solution(optimal total_completion_time 172 of the model with early on 'rigid-06-1')
    """
    made = formulated(model)
    if instance_of(instance) != made.instance:
        raise InputError("the model is one of another instance", value=made.instance.name or "instance")
    began = time.perf_counter()
    if isinstance(made.of, Formulation) and not (made.relaxed or made.changes(model)):
        return replace(_as_made(made, made.of, time_limit), seconds=made.seconds + time.perf_counter() - began)
    try:
        found = _linear(made, model, compile(model), time_limit)
    except InfeasibleError as error:
        found = Optimum("infeasible", Session.solver, note=str(error))
    except InputError:
        if not _convex_only(model):
            raise
        found = _convex(made, model, time_limit)
    changed = made.changes(model)
    return replace(_solution(made, model, changed, found), seconds=made.seconds + time.perf_counter() - began)


def _as_made(made: Formulated, formulation: Formulation, time_limit: float | None) -> Solution:
    """Return the optimum of an unchanged exact formulation: that of the instance, over schedules by its horizon."""
    short = made.horizon < long_enough(made.instance.relative)
    horizon = made.horizon + made.instance.epoch if short else None
    deadline = Deadline.after(time_limit)
    found = begin(made.instance, made.objective, model=formulation.name, deadline=deadline, horizon=horizon).run()
    if found.schedule is None or found.value_exact is None:
        return found
    with contextlib.suppress(InputError):  # moved to the left, it fits the windows of the model
        there(formulation.warm_start)(made.model, found.schedule.relative)
        if is_cvxpy(made.model):  # CVXPY computes its value once all variables have values
            program = compile(made.model)
            program.load(program.values()[0])
    latest = latest_completions(made.instance.relative, made.objective, float(found.value_exact - found.clock_part))
    if short and bool(np.any(latest > made.horizon)):
        return replace(found, note="; ".join(filter(None, [found.note, f"the optimum{_by_horizon(made)}"])))
    return found


def _by_horizon(made: Formulated) -> str:
    return f" over schedules that end by {made.horizon + made.instance.epoch:.12g} s"


def _linear(made: Formulated, model: Any, linear: LinearProgram, time_limit: float | None) -> Optimum:
    of, instance = made.of, made.instance.relative
    times = np.zeros(len(linear.c), dtype=bool)
    if isinstance(of, Formulation) and of.in_seconds:
        times = ~linear.integrality & made.own(linear.columns)
    fitted = FittedProgram.of(linear, times)
    session = Session(fitted.program)
    outcome = session.solve_finely(time_limit)
    found = Optimum(outcome.status, session.solver, outcome.value, outcome.bound, linear.size, outcome.nodes)
    if isinstance(of, Formulation):
        shortest = float(np.nanmin(seconds_alone(instance)))
        found.fitted, found.doubt = fitted, fitted.doubt(outcome, linear.objective_step, shortest)
    if outcome.status == "unbounded":
        found.note = UNBOUNDED
    if outcome.status == "infeasible":
        if found.doubt is None:
            return replace(found, status="limit", note=f"HiGHS finds no solution, but {APART}")
        found.note = conflict_in_words(session, made.name)
        if isinstance(of, Formulation):
            found.note = f"no schedule that ends by {made.horizon + made.instance.epoch:.12g} s: {found.note}"
    if outcome.x is not None:
        x = outcome.x * fitted.unit
        if isinstance(of, Formulation) and not made.relaxed:
            settled = fitted.settled(outcome.x)
            if settled is None:
                return replace(
                    found, status="limit", value=None, note=f"HiGHS's solution has no whole numbers: {APART}"
                )
            found.x, found.value = settled, linear.value(settled)
            x = settled
        row_dual = session.duals() if outcome.status == "optimal" and not linear.is_mip else None
        linear.load(x, row_dual)
        if row_dual is not None:
            found.duals = {made.name(row): value for row, value in zip(linear.rows, row_dual.tolist(), strict=True)}
            if isinstance(of, Program):
                found.duals = _prices(made, model) | {
                    name: found.duals[name] for name in map(made.name, made.added(linear.rows))
                }
            elif linear.sense == 1 and outcome.value is not None:
                found.bound = dual_bound(linear, row_dual, outcome.value)
    return found


def _prices(made: Formulated, model: Any) -> dict[str, float]:
    """Return the duals for which a program has names; rows that the caller removed have none."""
    with contextlib.suppress(AttributeError, KeyError, ValueError):
        if isinstance(made.of, Program) and made.of.duals is not None:
            return dict(made.of.duals(model, made.data, made.instance.relative))
    return {}


def _convex_only(model: Any) -> bool:
    """Return whether the model is a convex program that is not linear."""
    if not is_cvxpy(model) or not model.is_dcp():
        return False
    from optsched.solvers.compile_cvxpy import is_linear

    return not is_linear(model)


def _convex(made: Formulated, model: Any, time_limit: float | None) -> Optimum:
    import cvxpy as cp

    for part in (*model.constraints, model.objective):
        for number in (*part.constants(), *part.parameters()):
            values = number.value.data if issparse(number.value) else number.value
            if values is not None and np.isnan(values).any():
                where = "the objective" if part is model.objective else f"row {made.name((part, 0))}"
                raise InputError("invalid", field=f"{where}, a constant", value=math.nan, legal="a finite number")
    try:
        model.solve(solver=cp.CLARABEL, **({} if time_limit is None else {"time_limit": time_limit}))
    except (cp.error.SolverError, ValueError) as error:  # ValueError: for an infinite coefficient
        raise OptschedError(f"Clarabel: {made.of.name}: {str(error).splitlines()[0]}") from None
    # optimal up to the solver's tolerances; if it did not reach them, the result is only a solution
    known = {cp.OPTIMAL: "optimal", cp.OPTIMAL_INACCURATE: "feasible", cp.USER_LIMIT: "limit"}
    known |= {cp.INFEASIBLE: "infeasible", cp.UNBOUNDED: "unbounded"}
    status = known.get(model.status)
    if status is None:
        raise OptschedError(f"Clarabel: {made.of.name} ended {model.status}")
    size = Size(sum(row.size for row in model.constraints), sum(variable.size for variable in model.variables()))
    notes = {"infeasible": "no values obey all rows", "unbounded": UNBOUNDED}
    found = Optimum(status, "Clarabel", size=size, note=notes.get(status, ""))
    if status in ("optimal", "feasible"):
        found.value = float(model.value)
    if status == "optimal":
        found.duals = _prices(made, model)
        sign = (
            1.0 if isinstance(model.objective, cp.Maximize) else -1.0
        )  # CVXPY's duals of a <= are >= 0 in both senses
        for row in made.added(model.constraints):
            values = sign * np.asarray(row.dual_value, dtype=np.float64).reshape(-1, order="F")
            found.duals |= {made.name((row, k)): value for k, value in enumerate(values.tolist())}
    return found


def _solution(made: Formulated, model: Any, changed: list[str], found: Optimum) -> Solution:
    """Return the solution of a solved model: its checked schedule, if any, and notes on what the value means."""
    of, instance = made.of, made.instance
    clocked = "total_completion_time" if isinstance(of, Program) and of.clocked else made.objective
    part = Fraction(0) if clocked in PROGRAMS else get_objective(clocked).clock_part(instance)
    solution = Solution(
        objective=made.objective,
        status=found.status,
        value_exact=None if found.value is None else Fraction(found.value),
        bound_exact=found.proved,
        model=of.name,
        solver=found.solver,
        size=found.size,
        nodes=found.nodes,
        duals=found.duals,
        note=found.note,
        clock_part=part,
        meaning=of.value if isinstance(of, Program) else "",
        changed=tuple(changed),
    )
    notes, within = list[str](), ""
    if isinstance(of, Formulation) and found.value is not None:
        if made.relaxed:
            notes.append(_relaxed(made, of, changed))
        else:
            solution, notes = with_schedule(made, of, model, found, solution)
            within = _horizon_matters(made, changed, solution)
    if changed and solution.value is not None:
        what = "the optimum" if solution.status == "optimal" else "value and bound are those"
        notes.append(f"{what} of the changed model{within}: neither an optimum nor a bound of the instance")
    return replace(solution, note="; ".join(filter(None, [solution.note, *notes]))).named()


def _relaxed(made: Formulated, of: Formulation, changed: list[str]) -> str:
    """Return a sentence on what the optimum of a relaxation means."""
    said = f"{of.name} is a relaxation here: it has no schedule"
    if changed:
        return said
    if made.horizon >= long_enough(made.instance.relative):
        return f"{said}, and its optimum is a bound (class {of.schedule_class})"
    return (
        f"{said}, and its optimum bounds only schedules{_by_horizon(made).removeprefix(' over schedules')} "
        f"(class {of.schedule_class}): a later end may be better"
    )


def _horizon_matters(made: Formulated, changed: list[str], solution: Solution) -> str:
    """Return words on the horizon, or "" if the value shows that no better schedule ends after it."""
    if solution.schedule is None:
        return ""
    relative = made.instance.relative
    own = get_objective(made.objective).exact_of(relative, solution.schedule.relative.completion.tolist())
    late = latest_completions(relative, made.objective, float(own)) > made.horizon
    return _by_horizon(made) if OBJECTIVE in changed or bool(late.any()) else ""
