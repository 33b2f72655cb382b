"""The roads of jobs that share GPUs: ``gpu-sharing``, ``sharing-orders`` and ``sharing-branching``.

``gpu-sharing`` (`optsched.models.gpu_sharing`) proves an optimum over all starts where the jobs are one gang set.
``sharing-orders`` (`optsched.solvers.sharing_orders`) proves it for very few jobs on any GPUs, in exact arithmetic.
``sharing-branching`` (`optsched.solvers.sharing_search`) finds the best schedule that starts jobs at events, on any number
of GPUs; that is proved optimal for two jobs, and otherwise where a certificate for the class meets it.
"""

from __future__ import annotations

from fractions import Fraction

from optsched.errors import InputError
from optsched.models.formulation import COMPLETION, objective_reason
from optsched.models.gang_set import one_gang_set
from optsched.models.gpu_sharing import NAME as PROGRAM
from optsched.models.gpu_sharing import build, schedule
from optsched.models.shared_jobs import SharedJobs
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session
from optsched.solvers.sharing_orders import MOST as MOST_ORDERS
from optsched.solvers.sharing_orders import NAME as ORDERS
from optsched.solvers.sharing_orders import best_shared_order, choices
from optsched.solvers.sharing_search import MOST, SharingOptimum, sharing_optimum
from optsched.solvers.sharing_search import NAME as BRANCHING
from optsched.solvers.solution import Size
from optsched.solvers.task import ROADS, SHARING, Report, Road, Task

__all__ = ["MOST_EVENTS"]

MOST_EVENTS = 6  # jobs of the program: 4 take a second, 5 a minute
FIRST_NODES = 2_000  # of the search for an incumbent of the program
NODES = 400_000  # of the search itself: about a minute and a half


def _reason(task: Task, most: int) -> str | None:
    if task.horizon is not None:
        return "it knows no horizon"
    reason = objective_reason(task.instance, task.goal.name, COMPLETION)
    if reason is not None:
        return reason
    if task.instance.n > most:
        return f"it is for at most {most} jobs, there are {task.instance.n}"
    try:
        SharedJobs.of(task.instance)
    except InputError as error:
        return str(error)
    return None


def _program_reason(task: Task) -> str | None:
    return _reason(task, MOST_EVENTS) or one_gang_set(SharedJobs.of(task.instance))


def _orders_reason(task: Task) -> str | None:
    reason = _reason(task, MOST_ORDERS)
    if reason is not None:
        return reason
    try:
        choices(SharedJobs.of(task.instance))
    except InputError as error:
        return str(error)
    return None


def _search(task: Task, nodes: int) -> SharingOptimum:
    found = sharing_optimum(task.instance, node_limit=nodes, stop=lambda: task.late)
    task.offer(found.schedule)
    return found


def _solve_program(task: Task) -> Report:
    found = _search(task, FIRST_NODES)
    program = compile(model := build(found.jobs, value=found.value))
    session = Session(program)
    outcome = session.solve(time_limit=task.left)
    if outcome.x is not None:
        program.load(outcome.x)
        task.offer(schedule(model))
    if outcome.bound is not None:
        task.raise_bound(Fraction(outcome.bound) - _before(task), "solver")
    size = Size(program.row_count, program.column_count, program.nonzeros)
    note = f"the time limit came after {outcome.nodes} nodes" if outcome.status == "limit" else ""
    return Report(Session.solver, size, outcome.nodes, note=note)


def _solve_orders(task: Task) -> Report:
    """No time limit: `choices` bounds the work."""
    _search(task, FIRST_NODES)
    found = best_shared_order(task.instance, certify=True)
    task.offer(found.schedule)
    if found.bound is not None:
        task.raise_bound(found.bound - _before(task), "solver")
    return Report(Session.solver, nodes=found.orders)


def _before(task: Task) -> Fraction:
    """sum C_j minus the objective."""
    releases = task.instance.arrival.tolist() if task.goal.name == "total_flow_time" else []
    return sum((Fraction(r) for r in releases), Fraction(0))


def _solve_branching(task: Task) -> Report:
    found = _search(task, NODES)
    if found.optimal and task.value is not None:
        task.raise_bound(task.value, "solver")
    note = f"the search was stopped after {found.nodes} nodes"
    if found.complete:
        note = "the best schedule that starts jobs at releases and completions; a start between them may be better"
    return Report("branch and bound", nodes=found.nodes, note=note, status="feasible" if found.complete else None)


ROADS.register(PROGRAM)(Road(PROGRAM, _program_reason, _solve_program, SHARING))
ROADS.register(ORDERS)(Road(ORDERS, _orders_reason, _solve_orders, SHARING))
ROADS.register(BRANCHING)(Road(BRANCHING, lambda task: _reason(task, MOST), _solve_branching, SHARING))
