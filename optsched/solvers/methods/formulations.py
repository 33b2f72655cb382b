"""Formulations as methods: build the model, compile it, give HiGHS the incumbent, read the schedule back.

Models with times in their rows are built in units that fit (`optsched.solvers.methods.formulations`).
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from optsched.errors import InfeasibleError, InputError, OptschedError
from optsched.models import FORMULATIONS, Formulation
from optsched.models.formulation import REGULAR
from optsched.models.latest_starts import latest_completions
from optsched.models.time_grid import time_grid
from optsched.problem.instance import Instance
from optsched.problem.job_table import LONGEST, SHORTEST
from optsched.solvers.compile_model import compile
from optsched.solvers.formulated import conflict_in_words, part_name
from optsched.solvers.method import Method, MethodReport
from optsched.solvers.session import Progress, Session
from optsched.solvers.solve_state import SolveState

TOLERANCES = "the solver's tolerances ended the proof at this gap, not the time limit"
ROUNDED_AWAY = "rounding made the program infeasible, which proves nothing"
ULPS = 4  # so much later than a float says, that it less the duration is not before the release


def formulation_method(name: str) -> Method:
    """The method through the formulation of that name; `InputError` when there is none."""
    formulation = FORMULATIONS.get(name)
    return Method(
        name, lambda state: formulation.applies(state.instance, state.goal.name), lambda state: _run(formulation, state)
    )


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
    if outcome.x is not None:
        program.load(outcome.x)
        if formulation.schedule is not None:
            state.offer(formulation.schedule(model, state.instance))
    if outcome.bound is not None:
        state.raise_bound(outcome.bound * unit, "solver")
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


# `WorkingClock`: an instance in units of time that fit a solver whose tolerances are absolute numbers.
#
# HiGHS takes 1e-9 of anything for nothing. A model whose rows hold times (`Formulation.in_seconds`) is therefore built in
#
# * the exact common unit of all times, where they have one and it makes them integers that are not large, else
# * seconds times a power of two, with which the longest job lasts about a hundred, where it is far from that in seconds.
#
# Either way every time in units is a float without rounding. Values of regular objectives count in the same units, since
# costs are ``base + slope max(C - kink, 0)`` with base and kink times, or 0.

PLAIN = (0.125, 2.0**20)  # longest times, in seconds, that a model takes as they are
FEW = 2**20  # units of the common unit in the longest time; a unit finer than that is no better than a power of two


@dataclass(frozen=True)
class WorkingClock:
    """``instance`` has the times of another one in units of ``unit`` seconds."""

    instance: Instance
    unit: Fraction

    @classmethod
    def of(cls, instance: Instance, objective: str) -> WorkingClock:
        """The clock for an instance whose time counts from its first arrival; O(n)."""
        own = cls(instance, Fraction(1))
        if objective not in REGULAR or not np.isfinite(instance.duration).all():
            return own
        unit = _common_unit(instance) or _power_of_two(instance)
        return own if unit == 1 else cls(_in_units(instance, unit), unit)

    def units(self, seconds: float) -> float:
        """A time in units, rounded up."""
        exact = Fraction(seconds) / self.unit
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _times(instance: Instance) -> list[float]:
    due = instance.due[np.isfinite(instance.due)]
    return [*instance.arrival.tolist(), *instance.duration.tolist(), *due.tolist()]


def _common_unit(instance: Instance) -> Fraction | None:
    try:
        unit = time_grid(instance).unit
    except InputError:
        return None
    in_units = [Fraction(time) / unit for time in _times(instance)]
    fits = all(time.denominator == 1 and abs(time) <= FEW for time in in_units)
    return unit if fits else None


def _power_of_two(instance: Instance) -> Fraction:
    longest = float(instance.duration.max())
    if PLAIN[0] <= longest <= PLAIN[1]:
        return Fraction(1)
    unit = Fraction(2) ** (math.frexp(longest)[1] - 7)
    times = [abs(Fraction(time)) / unit for time in _times(instance) if time]
    return unit if times and min(times) >= SHORTEST and max(times) <= LONGEST else Fraction(1)


def _in_units(instance: Instance, unit: Fraction) -> Instance:
    def units(name: str) -> pl.Series:
        times = [None if time is None else float(Fraction(time) / unit) for time in instance.table[name].to_list()]
        return pl.Series(name, times, dtype=pl.Float64)

    table = instance.table.with_columns(units(name) for name in ("arrival", "duration", "due"))
    return instance.replace(jobs=table, optimum=None)
