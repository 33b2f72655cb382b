"""The road ``thinned-time-indexed``: rigid gangs on a grid of time, `thinning` first, HiGHS on what is left."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from optsched.models.latest_starts import latest_completions
from optsched.models.rigid_time_indexed import count_columns
from optsched.models.start_columns import StartColumns
from optsched.problem.schedule import Schedule
from optsched.solvers.formulation_road import TOLERANCES
from optsched.solvers.session import Session
from optsched.solvers.solution import Size
from optsched.solvers.start_program import SlotJobs, StartProgram
from optsched.solvers.task import PLACED, ROADS, Report, Road, Task
from optsched.solvers.thinning import Thinned, polish, thin
from optsched.speeds.duration import fixed_durations

Ints = npt.NDArray[np.int64]

__all__ = ["NAME"]

NAME = "thinned-time-indexed"
COLUMNS = 300_000
NONZEROS = 3_000_000
# columns left after thinning below which HiGHS is quicker than a longer search for a better incumbent
FEW = 800
BUDGET = 60_000_000
LATE = "the time limit came in an LP, or before it"


def _columns(task: Task) -> StartColumns:
    value = None if task.value is None else latest_completions(task.instance, task.goal.name, float(task.value))
    return count_columns(task.instance, task.goal.name, value)


def _applies(task: Task) -> str | None:
    if task.goal.maximum:
        return "it adds up costs over jobs"
    if task.placed:
        return PLACED
    if not task.instance.unrestricted:
        return "not every job may use every node"
    if task.horizon is not None:
        return "it knows no horizon"
    if task.grid is None:
        return "the times are multiples of no useful unit"
    columns = _columns(task)
    count = int(columns.offset[-1])
    nonzeros = float(np.sum(np.diff(columns.offset).astype(np.float64) * (columns.duration + 1)))
    if count > COLUMNS or nonzeros > NONZEROS:
        return f"about {count:.2g} columns with {nonzeros:.2g} nonzeros are too many"
    return None


def _thin(task: Task) -> Thinned:
    columns = _columns(task)
    grid = columns.grid
    jobs = SlotJobs(task.instance, task.goal.name, grid.origin, grid.unit, grid.release, grid.duration)
    job, start = columns.job[columns.block], columns.slot
    thinned = thin(
        jobs,
        job,
        start,
        upper=_known(task.value),
        step=task.step,
        keep=_slots(task),
        deadline=task.deadline,
        on_bound=lambda bound: task.raise_bound(bound, "solver"),
    )
    task.offer_certificate(thinned.certificate)
    task.raise_bound(thinned.bound, "solver")
    if task.certificate is None or task.bound is None or task.certificate.value < task.bound:
        task.offer_certificate(polish(thinned, jobs, job, start, task.deadline))
    return thinned


def _run(task: Task) -> Report:
    thinned = _thin(task)
    hard = thinned.program is not None and thinned.finished and thinned.program.job.size > FEW
    if hard and task.search(BUDGET, [thinned.order]) and not task.closed:
        thinned = _thin(task)
    if thinned.program is None or task.closed:  # no column of a better schedule is left, or there was no time for an LP
        return Report(Session.solver, note="" if thinned.finished else LATE)
    if not thinned.finished:
        return Report(Session.solver, _size(thinned.program), note=LATE)
    return _branch(task, thinned.program)


def _branch(task: Task, program: StartProgram) -> Report:
    session = Session(program.program)
    session.mip_start((program.start == _slots(task)[program.job]).astype(np.float64))
    outcome = session.solve(time_limit=task.left, objective_step=task.step, progress=task.listen)
    if outcome.x is not None:
        duration = fixed_durations(task.instance)
        task.offer(Schedule.from_starts(task.instance, program.starts(outcome.x), duration=duration, policy=NAME))
    if (
        outcome.bound is not None
    ):  # of the columns that are left; schedules without them are no better than the incumbent
        task.raise_bound(outcome.bound, "solver")
    ended = f"the time limit came after {outcome.nodes} nodes" if outcome.status == "limit" else TOLERANCES
    note = "" if task.closed else ended
    return Report(Session.solver, _size(program), outcome.nodes, note=note)


def _known(value: Fraction | None) -> Fraction:
    if value is None:
        raise AssertionError("a road is taken with an incumbent")
    return value


def _slots(task: Task) -> Ints:
    """Start slot of every job in the incumbent."""
    if task.schedule is None or task.grid is None:
        raise AssertionError("a road is taken with an incumbent")
    slot = np.empty(task.instance.n, dtype=np.int64)
    slot[task.schedule.job] = task.grid.slots(task.schedule.start)
    return slot


def _size(program: StartProgram) -> Size:
    compiled = program.program
    return Size(compiled.row_count, compiled.column_count, compiled.nonzeros)


ROADS.register(NAME)(Road(NAME, _applies, _run))
