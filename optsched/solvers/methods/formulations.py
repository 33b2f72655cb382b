"""Formulations as methods: build the model, compile it, give HiGHS the incumbent, read the schedule back.

Models with times in their rows are built in units that fit (`optsched.solvers.working_clock`).
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from optsched.errors import InfeasibleError, InputError, OptschedError
from optsched.models import FORMULATIONS, Formulation
from optsched.models.latest_starts import latest_completions
from optsched.solvers.compile_model import compile
from optsched.solvers.formulated import conflict_in_words, part_name
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.method import Method, MethodReport
from optsched.solvers.session import Outcome, Progress, Session
from optsched.solvers.solve_state import SolveState
from optsched.solvers.working_clock import WorkingClock

TOLERANCES = "the solver's tolerances ended the proof at this gap, not the time limit"
ROUNDED_AWAY = "rounding made the program infeasible, which proves nothing"
ULPS = 4  # so much later than a float says, that it less the duration is not before the release


def formulation_method(name: str) -> Method:
    """The method through the formulation of that name; `InputError` when there is none."""
    formulation = FORMULATIONS.get(name)
    return Method(name, lambda state: _reason(formulation, state), lambda state: _run(formulation, state))


def _reason(formulation: Formulation, state: SolveState) -> str | None:
    return formulation.applies(state.instance, state.goal.name)


def _run(formulation: Formulation, state: SolveState) -> MethodReport:
    clock = WorkingClock(state.instance, Fraction(1))
    if formulation.in_seconds:
        clock = WorkingClock.of(state.instance, state.goal.name)
    try:
        model = formulation.build(clock.instance, state.goal.name, horizon=_horizon(formulation, state, clock))
        program = compile(model)
    except InfeasibleError as error:
        if state.horizon is None:  # there is the incumbent: no proof of anything
            raise OptschedError(ROUNDED_AWAY) from None
        return MethodReport(Session.solver, status="infeasible", note=f"{error} of {state.horizon_shown} s")
    session = Session(program)
    _warm_start(formulation, state, model, session)
    unit = float(clock.unit)

    def listen(event: Progress) -> None:
        state.listen(replace(event, incumbent=event.incumbent * unit, bound=event.bound * unit))

    step = state.step / clock.unit if formulation.exact and state.step is not None else None
    outcome = session.solve(time_limit=state.left, objective_step=step, progress=listen)
    size, grid = program.size, getattr(model, "grid", None)
    names = partial(part_name, sets=formulation.sets, instance=state.instance, grid=grid, epoch=state.epoch)
    if outcome.status.endswith("infeasible") and state.horizon is None:
        raise OptschedError(ROUNDED_AWAY)
    if outcome.status.endswith("infeasible"):
        note = f"no schedule completes by {state.horizon_shown} s: {conflict_in_words(session, names)}"
        return MethodReport(Session.solver, size, outcome.nodes, note=note, status="infeasible")
    _read(formulation, state, model, program, outcome, unit)
    if outcome.status == "limit":
        return MethodReport(
            Session.solver, size, outcome.nodes, note=f"the time limit came after {outcome.nodes} nodes"
        )
    duals = {} if program.is_mip else dict(zip(map(names, program.rows), session.duals().tolist(), strict=True))
    if formulation.exact:
        return MethodReport(Session.solver, size, outcome.nodes, duals, note="" if state.closed else TOLERANCES)
    note = f"{formulation.name} is a relaxation: it gives a bound, the schedule is a list schedule"
    return MethodReport(Session.solver, size, outcome.nodes, duals, note, status="feasible")


def _warm_start(formulation: Formulation, state: SolveState, model: Any, session: Session) -> None:
    """Give the solver the incumbent, where it fits into the windows that rounding left: it is no more than a hint."""
    if formulation.warm_start is None or state.schedule is None:
        return
    with contextlib.suppress(InputError):
        formulation.warm_start(model, state.schedule)
        session.mip_start(*session.program.values())


def _horizon(formulation: Formulation, state: SolveState, clock: WorkingClock) -> Any:
    """Latest completions in units: the horizon asked for, and what a schedule better than the incumbent needs."""
    asked = None if state.horizon is None else clock.units(state.horizon)
    if not formulation.exact or state.value is None:
        return asked
    latest = latest_completions(clock.instance, state.goal.name, float(state.value / clock.unit))
    limited = np.isfinite(latest)
    latest[limited] += ULPS * np.spacing(np.abs(latest[limited]))
    return latest if asked is None else np.minimum(latest, asked)


def _read(
    formulation: Formulation, state: SolveState, model: Any, program: LinearProgram, outcome: Outcome, unit: float
) -> None:
    if outcome.x is not None:
        program.load(outcome.x)
        if formulation.schedule is not None:
            state.offer(formulation.schedule(model, state.instance))
    if outcome.bound is not None:
        state.raise_bound(outcome.bound * unit, "solver")
