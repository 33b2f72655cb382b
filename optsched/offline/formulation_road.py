"""Formulations as roads: build the model, compile it, give HiGHS the incumbent, read the schedule back.

Models with seconds in their rows meet HiGHS's absolute tolerances (and coefficients below 1e-9 are nothing to it), so
jobs much shorter or longer than seconds are solved on a clock that counts by another power of two: nothing is rounded.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from optsched.errors import InfeasibleError
from optsched.instance import Instance
from optsched.job_table import LONGEST, SHORTEST
from optsched.models import FORMULATIONS, Formulation
from optsched.models.latest_starts import latest_completions
from optsched.offline.linear_program import LinearProgram, compile
from optsched.offline.session import Conflict, Outcome, Progress, Session
from optsched.offline.solution import Size
from optsched.offline.task import Report, Road, Task
from optsched.schedule import Schedule

__all__ = ["TOLERANCES", "formulation_road"]

PLAIN = (0.125, 2.0**20)  # longest durations, in seconds, that a model takes as they are
TOLERANCES = "the solver's tolerances ended the proof at this gap, not the time limit"
ROUNDED_AWAY = "rounding made the program infeasible, which proves nothing"
_JOB_ROW = re.compile(r"^(once|done)\[(\d+)\]$")


def formulation_road(name: str) -> Road:
    """The road through the formulation of that name; `InputError` when there is none."""
    formulation = FORMULATIONS.get(name)
    return Road(name, lambda task: _reason(formulation, task), lambda task: _run(formulation, task))


def _reason(formulation: Formulation, task: Task) -> str | None:
    return formulation.applies(task.instance, task.goal.name)


@dataclass(frozen=True)
class _Clock:
    """The task's instance with times multiplied by ``rate``, a power of two, and what the model says about it."""

    task: Task
    instance: Instance
    rate: float

    @classmethod
    def of(cls, formulation: Formulation, task: Task) -> _Clock:
        """The clock on which to solve; the task's own where its times suit, and for duals and horizons in seconds."""
        instance = task.instance
        longest = float(instance.duration.max())  # nan where a profile decides
        own = cls(task, instance, 1.0)
        if not formulation.exact or task.horizon is not None or not math.isfinite(longest):
            return own
        if PLAIN[0] <= longest <= PLAIN[1]:
            return own
        rate = math.ldexp(1.0, 7 - math.frexp(longest)[1])
        due = np.abs(instance.due[np.isfinite(instance.due)])
        if float(instance.duration.min()) * rate < SHORTEST or max(instance.arrival.max(), *due, 0.0) * rate > LONGEST:
            return own
        times = [pl.col(name) * rate for name in ("arrival", "duration", "due")]
        return cls(task, instance.replace(jobs=instance.table.with_columns(times), optimum=None), rate)

    def schedule_to_model(self, schedule: Schedule) -> Schedule:
        """A schedule of the task on this clock."""
        return self._moved(schedule, self.instance, self.rate)

    def schedule_to_task(self, schedule: Schedule) -> Schedule:
        """A schedule on this clock in the task's seconds."""
        return self._moved(schedule, self.task.instance, 1 / self.rate)

    def _moved(self, schedule: Schedule, instance: Instance, rate: float) -> Schedule:
        if self.rate == 1:
            return schedule
        times = {name: getattr(schedule, name) * rate for name in ("start", "end", "work")}
        return replace(schedule, instance=instance, **times)

    def listen(self, event: Progress) -> None:
        """Progress on this clock, for the task."""
        self.task.listen(replace(event, incumbent=event.incumbent / self.rate, bound=event.bound / self.rate))


def _run(formulation: Formulation, task: Task) -> Report:
    clock = _Clock.of(formulation, task)
    try:
        model = formulation.build(clock.instance, task.goal.name, horizon=_horizon(formulation, clock))
    except InfeasibleError as error:
        if task.horizon is None:
            return Report(Session.solver, note=ROUNDED_AWAY)
        return Report(Session.solver, status="infeasible", note=str(error))
    program = compile(model)
    session = Session(program)
    if formulation.warm_start is not None and task.schedule is not None:
        formulation.warm_start(model, clock.schedule_to_model(task.schedule))
        session.mip_start(*program.values())
    step = task.step * Fraction(clock.rate) if formulation.exact and task.step is not None else None
    outcome = session.solve(time_limit=task.left, objective_step=step, progress=clock.listen)
    size = Size(program.row_count, program.column_count, program.nonzeros)
    if outcome.status.endswith("infeasible") and task.horizon is None:  # there is the incumbent: no proof of anything
        return Report(Session.solver, size, outcome.nodes, note=ROUNDED_AWAY)
    if outcome.status.endswith("infeasible"):
        note = _in_words(session.iis(), task)
        return Report(Session.solver, size, outcome.nodes, note=note, status="infeasible")
    _read(formulation, clock, model, program, outcome)
    if outcome.status == "limit":
        return Report(Session.solver, size, outcome.nodes, note=f"the time limit came after {outcome.nodes} nodes")
    duals = {} if program.is_mip else _duals(program, session)
    if formulation.exact:
        return Report(Session.solver, size, outcome.nodes, duals, note="" if task.closed else TOLERANCES)
    note = f"{formulation.name} is a relaxation: it gives a bound, the schedule is a list schedule"
    return Report(Session.solver, size, outcome.nodes, duals, note, status="feasible")


def _horizon(formulation: Formulation, clock: _Clock) -> Any:
    """Latest completions: the horizon asked for, and what a schedule better than the incumbent needs."""
    task = clock.task
    if not formulation.exact or task.value is None:
        return task.horizon
    latest = latest_completions(clock.instance, task.goal.name, float(task.value) * clock.rate)
    return latest if task.horizon is None else np.minimum(latest, task.horizon)


def _read(formulation: Formulation, clock: _Clock, model: Any, program: LinearProgram, outcome: Outcome) -> None:
    task = clock.task
    if outcome.x is not None:
        program.load(outcome.x)
        if formulation.schedule is not None:
            task.offer(clock.schedule_to_task(formulation.schedule(model, clock.instance)))
    if outcome.bound is not None:
        task.raise_bound(outcome.bound / clock.rate, "solver")


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
