"""Formulations as roads: build the model, compile it, give HiGHS the incumbent, read the schedule back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from optsched.errors import InfeasibleError
from optsched.models import FORMULATIONS, Formulation
from optsched.models.latest_starts import latest_completions
from optsched.offline.linear_program import LinearProgram, compile
from optsched.offline.session import Conflict, Outcome, Session
from optsched.offline.solution import Size
from optsched.offline.task import Report, Road, Task

__all__ = ["formulation_road"]

_JOB_ROW = re.compile(r"^(once|done)\[(\d+)\]$")


def formulation_road(name: str) -> Road:
    """The road through the formulation of that name; `InputError` when there is none."""
    formulation = FORMULATIONS.get(name)
    return Road(name, lambda task: _reason(formulation, task), lambda task: _run(formulation, task))


def _reason(formulation: Formulation, task: Task) -> str | None:
    return formulation.applies(task.instance, task.goal.name)


def _run(formulation: Formulation, task: Task) -> Report:
    try:
        model = formulation.build(task.instance, task.goal.name, horizon=_horizon(formulation, task))
    except InfeasibleError as error:
        return Report(Session.solver, status="infeasible", note=str(error))
    program = compile(model)
    session = Session(program)
    if formulation.warm_start is not None and task.schedule is not None:
        formulation.warm_start(model, task.schedule)
        session.mip_start(*program.values())
    step = task.step if formulation.exact else None
    outcome = session.solve(time_limit=task.left, objective_step=step, progress=task.listen)
    size = Size(program.row_count, program.column_count, program.nonzeros)
    if outcome.status.endswith("infeasible"):
        note = _in_words(session.iis(), task)
        return Report(Session.solver, size, outcome.nodes, note=note, status="infeasible")
    _read(formulation, task, model, program, outcome)
    if outcome.status == "limit":
        return Report(Session.solver, size, outcome.nodes, note=f"the time limit came after {outcome.nodes} nodes")
    duals = {} if program.is_mip else _duals(program, session)
    if formulation.exact:
        return Report(Session.solver, size, outcome.nodes, duals)
    note = f"{formulation.name} is a relaxation: it gives a bound, the schedule is a list schedule"
    return Report(Session.solver, size, outcome.nodes, duals, note, status="feasible")


def _horizon(formulation: Formulation, task: Task) -> Any:
    """Latest completions: the horizon asked for, and what a schedule better than the incumbent needs."""
    if not formulation.exact or task.value is None:
        return task.horizon
    latest = latest_completions(task.instance, task.goal.name, float(task.value))
    return latest if task.horizon is None else np.minimum(latest, task.horizon)


def _read(formulation: Formulation, task: Task, model: Any, program: LinearProgram, outcome: Outcome) -> None:
    if outcome.x is not None:
        program.load(outcome.x)
        if formulation.schedule is not None:
            task.offer(formulation.schedule(model, task.instance))
    if outcome.bound is not None:
        task.raise_bound(outcome.bound, "solver")


def _duals(program: LinearProgram, session: Session) -> dict[str, float]:
    return {program.binding.row_name(i): value for i, value in enumerate(session.duals().tolist())}


def _in_words(conflict: Conflict, task: Task) -> str:
    """The rows of a conflict, with the jobs that they stand for."""
    parts = []
    for name in conflict.row_names:
        match = _JOB_ROW.match(name)
        parts.append(f"job {task.instance.ids[int(match[2])]!r} must run ({name})" if match else name)
    parts += [f"the bounds of {name}" for name in conflict.column_names]
    until = "" if task.horizon is None else f" by {task.horizon:g} s"
    if not parts:
        return f"no schedule completes{until}; no single conflict was found"
    return f"no schedule completes{until}: these cannot all hold: {'; '.join(parts)}"
