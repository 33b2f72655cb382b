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
        # latest completions in units: the horizon asked for, and what a schedule better than the incumbent needs
        horizon: Any = None if state.horizon is None else clock.units(state.horizon)
        if formulation.exact and state.value is not None:
            latest = latest_completions(clock.instance, state.goal.name, float(state.value / clock.unit))
            limited = np.isfinite(latest)
            latest[limited] += ULPS * np.spacing(np.abs(latest[limited]))
            horizon = latest if horizon is None else np.minimum(latest, horizon)
        model = formulation.build(clock.instance, state.goal.name, horizon=horizon)
        program = compile(model)
    except InfeasibleError as error:
        if state.horizon is None:  # there is the incumbent: no proof of anything
            raise OptschedError(ROUNDED_AWAY) from None
        return MethodReport(Session.solver, status="infeasible", note=f"{error} of {state.horizon_shown} s")
    session = Session(program)
    if formulation.warm_start is not None and state.schedule is not None:
        with contextlib.suppress(
            InputError
        ):  # it is no more than a hint: it may not fit the windows that rounding left
            formulation.warm_start(model, state.schedule)
            session.mip_start(*program.values())
    unit = float(clock.unit)

    def listen(event: Progress) -> None:
        state.listen(replace(event, incumbent=event.incumbent * unit, bound=event.bound * unit))

    step = state.step / clock.unit if formulation.exact and state.step is not None else None
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
        program.load(outcome.x)
        if formulation.schedule is not None:
            state.offer(formulation.schedule(model, state.instance))
    if outcome.bound is not None:
        state.raise_bound(outcome.bound * unit, "solver")
    if outcome.status == "limit":
        return MethodReport(
            Session.solver, size, outcome.nodes, note=f"the time limit came after {outcome.nodes} nodes"
        )
    duals = dict[str, float]()
    if outcome.status == "optimal" and not program.is_mip:
        duals = dict(zip(map(names, program.rows), session.duals().tolist(), strict=True))
    if formulation.exact:
        return MethodReport(Session.solver, size, outcome.nodes, duals, note="" if state.closed else TOLERANCES)
    note = f"{formulation.name} is a relaxation: it gives a bound, the schedule is a list schedule"
    return MethodReport(Session.solver, size, outcome.nodes, duals, note, status="feasible")


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
        if objective not in REGULAR or not np.isfinite(instance.duration).all():
            return cls(instance, Fraction(1))
        due = instance.due[np.isfinite(instance.due)]
        unit = _unit(instance, [*instance.arrival.tolist(), *instance.duration.tolist(), *due.tolist()])
        if unit == 1:
            return cls(instance, unit)
        table = instance.table
        for name in ("arrival", "duration", "due"):
            times = [None if time is None else float(Fraction(time) / unit) for time in table[name].to_list()]
            table = table.with_columns(pl.Series(name, times, dtype=pl.Float64))
        return cls(instance.replace(jobs=table, optimum=None), unit)

    def units(self, seconds: float) -> float:
        """A time in units, rounded up."""
        exact = Fraction(seconds) / self.unit
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _unit(instance: Instance, times: list[float]) -> Fraction:
    with contextlib.suppress(InputError):
        unit = time_grid(instance).unit
        if all(time.denominator == 1 and abs(time) <= FEW for time in (Fraction(time) / unit for time in times)):
            return unit
    longest = float(instance.duration.max())
    if PLAIN[0] <= longest <= PLAIN[1]:
        return Fraction(1)
    unit = Fraction(2) ** (math.frexp(longest)[1] - 7)
    sizes = [abs(Fraction(time)) / unit for time in times if time]
    return unit if sizes and min(sizes) >= SHORTEST and max(sizes) <= LONGEST else Fraction(1)
