"""Formulations as roads: build the model, compile it, give HiGHS the incumbent, read the schedule back.

Models with times in their rows are built in units that fit (`optsched.solvers.working_clock`).
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.errors import InfeasibleError, InputError, OptschedError
from optsched.models import FORMULATIONS, Formulation
from optsched.models.latest_starts import latest_completions
from optsched.solvers.compile_model import compile
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import Conflict, Outcome, Progress, Session
from optsched.solvers.solution import Size
from optsched.solvers.task import Report, Road, Task
from optsched.solvers.working_clock import WorkingClock

__all__ = ["TOLERANCES", "formulation_road"]

TOLERANCES = "the solver's tolerances ended the proof at this gap, not the time limit"
ROUNDED_AWAY = "rounding made the program infeasible, which proves nothing"
ULPS = 4  # so much later than a float says, that it less the duration is not before the release
_JOB_ROW = re.compile(r"^(once|done)\[(\d+)\]$")


def formulation_road(name: str) -> Road:
    """The road through the formulation of that name; `InputError` when there is none."""
    formulation = FORMULATIONS.get(name)
    return Road(name, lambda task: _reason(formulation, task), lambda task: _run(formulation, task))


def _reason(formulation: Formulation, task: Task) -> str | None:
    return formulation.applies(task.instance, task.goal.name)


def _run(formulation: Formulation, task: Task) -> Report:
    clock = WorkingClock(task.instance, Fraction(1))
    if formulation.in_seconds:
        clock = WorkingClock.of(task.instance, task.goal.name)
    try:
        model = formulation.build(clock.instance, task.goal.name, horizon=_horizon(formulation, task, clock))
        program = compile(model)
    except InfeasibleError as error:
        if task.horizon is None:  # there is the incumbent: no proof of anything
            raise OptschedError(ROUNDED_AWAY) from None
        return Report(Session.solver, status="infeasible", note=f"{error} of {task.horizon_shown} s")
    session = Session(program)
    _warm_start(formulation, task, model, session)
    unit = float(clock.unit)

    def listen(event: Progress) -> None:
        task.listen(replace(event, incumbent=event.incumbent * unit, bound=event.bound * unit))

    step = task.step / clock.unit if formulation.exact and task.step is not None else None
    outcome = session.solve(time_limit=task.left, objective_step=step, progress=listen)
    size = Size(program.row_count, program.column_count, program.nonzeros)
    if outcome.status.endswith("infeasible") and task.horizon is None:
        raise OptschedError(ROUNDED_AWAY)
    if outcome.status.endswith("infeasible"):
        note = _in_words(session.iis(), task)
        return Report(Session.solver, size, outcome.nodes, note=note, status="infeasible")
    _read(formulation, task, model, program, outcome, unit)
    if outcome.status == "limit":
        return Report(Session.solver, size, outcome.nodes, note=f"the time limit came after {outcome.nodes} nodes")
    duals = {} if program.is_mip else _duals(program, session)
    if formulation.exact:
        return Report(Session.solver, size, outcome.nodes, duals, note="" if task.closed else TOLERANCES)
    note = f"{formulation.name} is a relaxation: it gives a bound, the schedule is a list schedule"
    return Report(Session.solver, size, outcome.nodes, duals, note, status="feasible")


def _warm_start(formulation: Formulation, task: Task, model: Any, session: Session) -> None:
    """Give the solver the incumbent, where it fits into the windows that rounding left: it is no more than a hint."""
    if formulation.warm_start is None or task.schedule is None:
        return
    with contextlib.suppress(InputError):
        formulation.warm_start(model, task.schedule)
        session.mip_start(*session.program.values())


def _horizon(formulation: Formulation, task: Task, clock: WorkingClock) -> Any:
    """Latest completions in units: the horizon asked for, and what a schedule better than the incumbent needs."""
    asked = None if task.horizon is None else clock.units(task.horizon)
    if not formulation.exact or task.value is None:
        return asked
    latest = latest_completions(clock.instance, task.goal.name, float(task.value / clock.unit))
    limited = np.isfinite(latest)
    latest[limited] += ULPS * np.spacing(np.abs(latest[limited]))
    return latest if asked is None else np.minimum(latest, asked)


def _read(
    formulation: Formulation, task: Task, model: Any, program: LinearProgram, outcome: Outcome, unit: float
) -> None:
    if outcome.x is not None:
        program.load(outcome.x)
        if formulation.schedule is not None:
            task.offer(formulation.schedule(model, task.instance))
    if outcome.bound is not None:
        task.raise_bound(outcome.bound * unit, "solver")


def _duals(program: LinearProgram, session: Session) -> dict[str, float]:
    return {program.binding.row_name(i): value for i, value in enumerate(session.duals().tolist())}


def _in_words(conflict: Conflict, task: Task) -> str:
    """The rows of a conflict, with the jobs that they stand for."""
    parts = []
    for name in conflict.row_names:
        match = _JOB_ROW.match(name)
        parts.append(f"job {task.instance.ids[int(match[2])]!r} must run ({name})" if match else name)
    parts += [f"the bounds of {name}" for name in conflict.column_names]
    until = "" if task.horizon is None else f" by {task.horizon_shown} s"
    if not parts:
        return f"no schedule completes{until}; no single conflict was found"
    return f"no schedule completes{until}: these cannot all hold: {'; '.join(parts)}"
