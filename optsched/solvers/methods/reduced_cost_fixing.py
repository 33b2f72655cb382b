"""The method ``reduced-cost-fixing``: rigid gangs on a grid of time: columns fixed by reduced costs, then HiGHS."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from optsched.models.latest_starts import latest_completions, starts_of
from optsched.models.rigid_time_indexed import blocks
from optsched.models.start_model import StartColumns
from optsched.problem.arrays import Ints
from optsched.solvers.fitted_program import FittedProgram
from optsched.solvers.list_schedule import FEW
from optsched.solvers.lp_bound import SlotJobs, polish, thin
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.methods.formulations import TOLERANCES
from optsched.solvers.outcome import there
from optsched.solvers.session import Progress, Session
from optsched.solvers.solve_state import SolveState

NAME = "reduced-cost-fixing"
COLUMNS = 300_000
NONZEROS = 3_000_000
BUDGET, PART = 100_000, 0.2  # budget of the local search, times n^2, and its largest part of the time
LATE = "the time limit came in an LP, or before it"


def _columns(state: SolveState) -> StartColumns:
    value = None if state.value is None else latest_completions(state.instance, state.goal.name, float(state.value))
    return blocks(state.instance).columns(state.instance, state.goal.name, value)[0]


def _applies(state: SolveState) -> str | None:
    if reason := state.misfit():
        return reason
    if state.grid is None:
        return "the times have no useful common unit"
    columns = _columns(state)
    count = int(columns.offset[-1])
    nonzeros = float(np.sum(np.diff(columns.offset).astype(np.float64) * (columns.duration + 1)))
    if count > COLUMNS or nonzeros > NONZEROS:
        return f"about {count:.2g} columns with {nonzeros:.2g} nonzeros are too many"
    return None


def _run(state: SolveState) -> MethodReport:
    if state.instance.n > FEW:
        state.search(BUDGET * state.instance.n**2, part=PART)
    columns = _columns(state)
    grid = columns.grid
    jobs = SlotJobs(state.instance, state.goal.name, grid.origin, grid.unit, grid.release, grid.duration)
    job, start = columns.job[columns.block], columns.slot
    reduced = thin(
        jobs,
        job,
        start,
        upper=there(state.value),
        step=state.step,
        keep=_slots(state),
        deadline=state.deadline,
        on_bound=lambda bound: state.raise_bound(bound, "solver", up_to_value=True),
    )
    state.offer_certificate(reduced.certificate)
    state.raise_bound(reduced.bound, "solver", up_to_value=True)
    if state.certificate is None or state.bound is None or state.certificate.value < state.bound:
        state.offer_certificate(polish(reduced, jobs, job, start, state.deadline))
    if reduced.program is None or state.closed:  # no column of a better schedule is left, or no time for an LP
        return MethodReport(Session.solver, note="" if reduced.finished else LATE)
    if not reduced.finished:
        return MethodReport(Session.solver, reduced.program.program.size, note=LATE)
    program = reduced.program
    # presolve takes seconds even for a thinned program, and the bound is higher without it
    session = Session(program.program, options={"presolve": "off"})
    session.mip_start((program.start == _slots(state)[program.job]).astype(np.float64))
    value = float(there(state.value))

    def listen(event: Progress) -> None:
        state.listen(replace(event, bound=min(event.bound, value)))

    outcome = session.solve(time_limit=state.left, objective_step=state.step, progress=listen)
    if outcome.x is not None:
        state.offer_starts(program.starts(outcome.x), NAME)
    # a bound over the remaining columns; schedules with others are no better than the incumbent
    if outcome.bound is not None:
        doubt = FittedProgram.of(program.program).doubt(outcome, state.step, 0.0)
        state.raise_bound(outcome.bound, "solver", doubt=doubt or Fraction(0), up_to_value=True)
    ended = f"the time limit came after {outcome.nodes} nodes" if outcome.status == "limit" else TOLERANCES
    note = "" if state.closed else ended
    return MethodReport(Session.solver, program.program.size, outcome.nodes, note=note)


def _slots(state: SolveState) -> Ints:
    return there(state.grid).slots(starts_of(there(state.schedule)))


add_method(NAME, _applies, _run)
