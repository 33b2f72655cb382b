"""Formulations as methods: build the model, compile it, give HiGHS the incumbent, read the schedule back.

HiGHS gets models with times in their rows in units that fit (`optsched.solvers.fitted_program`).
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import numpy as np

from optsched.errors import InfeasibleError, InputError, OptschedError
from optsched.models import FORMULATIONS, Formulation
from optsched.models.latest_starts import latest_completions
from optsched.solvers.compile_model import compile
from optsched.solvers.fitted_program import FittedProgram
from optsched.solvers.formulated import conflict_in_words, part_name
from optsched.solvers.method import Method, MethodReport
from optsched.solvers.session import Progress, Session
from optsched.solvers.solve_state import EXCLUSIVE, SolveState
from optsched.speeds.duration import seconds_alone

TOLERANCES = "the solver's tolerances, not the time limit, ended the proof at this gap"
ROUNDED_AWAY = "rounding made the program infeasible, which proves nothing"
ULPS = 4  # horizons are later by so many ulps, so that a horizon minus a duration is not before the release


def formulation_method(name: str) -> Method:
    """Return the method that uses a formulation.

    Parameters
    ----------
    name
        Name of the formulation.

    Raises
    ------
    InputError
        If there is no such formulation.
    """
    formulation = FORMULATIONS.get(name)
    return Method(
        name,
        lambda state: formulation.applies(state.instance, state.goal.name),
        lambda state: _run(formulation, state),
        formulation.schedule_class if formulation.exact else EXCLUSIVE,
    )


def _run(formulation: Formulation, state: SolveState) -> MethodReport:
    try:
        model = formulation.build(state.instance, state.goal.name, horizon=_latest(formulation, state))
        fitted = FittedProgram.of(program := compile(model))
    except InfeasibleError as error:
        if state.horizon is None:  # the incumbent is feasible, so this proves nothing
            raise OptschedError(ROUNDED_AWAY) from None
        return MethodReport(Session.solver, status="infeasible", note=f"{error} of {state.horizon_shown} s")
    session = Session(fitted.program)
    if formulation.warm_start is not None and state.schedule is not None:
        with contextlib.suppress(InputError):  # only a hint: it may not fit the windows after rounding
            formulation.warm_start(model, state.schedule)
            start, known = program.values()
            session.mip_start(start / fitted.unit, known)

    def incumbents(event: Progress) -> None:  # if rows hold times, the doubt of a bound is known only at the end
        state.report(event.nodes, event.incumbent)

    listen = incumbents if program.magnitude else state.listen
    step = state.step if formulation.exact else None
    if program.is_mip:
        outcome = session.solve(time_limit=state.left, objective_step=step, progress=listen)
    else:
        outcome = session.solve_finely(state.left)
    size, grid = program.size, getattr(model, "grid", None)
    names = partial(part_name, sets=formulation.sets, instance=state.instance, grid=grid, epoch=state.epoch)
    if outcome.status == "unbounded":
        raise OptschedError("the program is unbounded, which proves nothing")
    if outcome.status == "infeasible" and state.horizon is None:
        raise OptschedError(ROUNDED_AWAY)
    if outcome.status == "infeasible":
        note = f"no schedule completes by {state.horizon_shown} s: {conflict_in_words(session, names)}"
        return MethodReport(Session.solver, size, outcome.nodes, note=note, status="infeasible")
    if outcome.x is not None:
        program.load(outcome.x * fitted.unit)
        if formulation.schedule is not None:
            state.offer(formulation.schedule(model, state.instance))
    doubt = fitted.doubt(outcome, step, float(np.nanmin(seconds_alone(state.instance))))
    if outcome.bound is not None and doubt is not None:
        state.raise_bound(outcome.bound, "solver", doubt=doubt)
    if outcome.status == "limit":
        return MethodReport(
            Session.solver, size, outcome.nodes, note=f"the time limit came after {outcome.nodes} nodes"
        )
    duals = dict[str, float]()
    if outcome.status == "optimal" and not program.is_mip:
        duals = dict(zip(map(names, program.rows), session.duals().tolist(), strict=True))
    if formulation.exact:
        open_, note = not state.closed, "" if state.closed else TOLERANCES
        return MethodReport(Session.solver, size, outcome.nodes, duals, note, unproved=open_)
    note = f"{formulation.name} is a relaxation: it gives a bound, the schedule is a list schedule"
    return MethodReport(Session.solver, size, outcome.nodes, duals, note, status="feasible")


def _latest(formulation: Formulation, state: SolveState) -> Any:
    """Return latest completions: the requested horizon, and what a schedule better than the incumbent needs."""
    if not formulation.exact or state.value is None:
        return state.horizon
    latest = latest_completions(state.instance, state.goal.name, float(state.value))
    limited = np.isfinite(latest)
    latest[limited] += ULPS * np.spacing(np.abs(latest[limited]))
    return latest if state.horizon is None else np.minimum(latest, state.horizon)
