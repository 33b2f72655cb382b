"""Methods for jobs that share GPUs: ``gpu-sharing``, ``sharing-orders`` and ``sharing-branching``.

``gpu-sharing`` (`optsched.models.gpu_sharing`) proves an optimum over all starts if the jobs are one gang set.
``sharing-orders`` (`sharing_orders`) proves it for very few jobs on any GPUs, in exact arithmetic.
``sharing-branching`` (`sharing_search`) finds the best schedule that starts jobs at events, on any number
of GPUs. That schedule is proved optimal for two jobs, and otherwise if a certificate for the class meets it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from optsched.classes.gpu_sharing.solvers.sharing_orders import (
    MOST as MOST_ORDERS,
    NAME as ORDERS,
    best_shared_order,
    choices,
)
from optsched.classes.gpu_sharing.solvers.sharing_search import MOST, NAME as BRANCHING, SharingOptimum, sharing_optimum
from optsched.errors import InputError
from optsched.models.formulation import COMPLETION, objective_reason
from optsched.models.gpu_sharing import NAME as PROGRAM, build, schedule
from optsched.models.shared_jobs import SharedJobs, one_gang_set
from optsched.solvers.compile_model import compile
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.session import Session
from optsched.solvers.solve_state import SolveState

MOST_EVENTS = 6  # jobs of the program: 4 take a second, 5 a minute
FIRST_NODES = 2_000  # nodes of the search for an incumbent of the program
NODES = 400_000  # nodes of the search itself: about a minute and a half


def _reason(state: SolveState, most: int, more: Callable[[SharedJobs], object] = lambda _: None) -> str | None:
    if state.horizon is not None:
        return "it does not support a horizon"
    reason = objective_reason(state.instance, state.goal.name, COMPLETION)
    if reason is not None:
        return reason
    if state.instance.n > most:
        return f"it is for at most {most} jobs, there are {state.instance.n}"
    try:
        more(SharedJobs.of(state.instance))
    except InputError as error:
        return str(error)
    return None


def _search(state: SolveState, nodes: int) -> SharingOptimum:
    optimum = sharing_optimum(state.instance, node_limit=nodes, stop=lambda: state.late)
    state.offer(optimum.schedule)
    return optimum


def _solve_program(state: SolveState) -> MethodReport:
    optimum = _search(state, FIRST_NODES)
    program = compile(model := build(optimum.jobs, value=optimum.value))
    session = Session(program)
    outcome = session.solve(time_limit=state.left)
    if outcome.x is not None:
        program.load(outcome.x)
        state.offer(schedule(model))
    if outcome.bound is not None:
        state.raise_bound(Fraction(outcome.bound) - _before(state), "solver")
    note = f"the time limit came after {outcome.nodes} nodes" if outcome.status == "limit" else ""
    return MethodReport(Session.solver, program.size, outcome.nodes, note=note)


def _solve_orders(state: SolveState) -> MethodReport:
    """Solve without a time limit: `choices` bounds the work."""
    _search(state, FIRST_NODES)
    optimum = best_shared_order(state.instance, certify=True)
    state.offer(optimum.schedule)
    if optimum.bound is not None:
        state.raise_bound(optimum.bound - _before(state), "solver")
    return MethodReport(Session.solver, nodes=optimum.orders)


def _before(state: SolveState) -> Fraction:
    """Return sum C_j minus the objective."""
    releases = state.instance.arrival.tolist() if state.goal.name == "total_flow_time" else []
    return sum((Fraction(r) for r in releases), Fraction(0))


def _solve_branching(state: SolveState) -> MethodReport:
    optimum = _search(state, NODES)
    if optimum.optimal and state.value is not None:
        state.raise_bound(state.value, "solver")
    note = f"the search was stopped after {optimum.nodes} nodes"
    if optimum.complete:
        note = "the best schedule that starts jobs at releases and completions; a start between them may be better"
    return MethodReport(
        "branch and bound", nodes=optimum.nodes, note=note, status="feasible" if optimum.complete else None
    )


add_method(
    PROGRAM,
    lambda state: _reason(state, MOST_EVENTS) or one_gang_set(SharedJobs.of(state.instance)),
    _solve_program,
    "gpu-sharing",
    "two jobs a GPU: one mixed-integer program over events",
)
add_method(
    ORDERS,
    lambda state: _reason(state, MOST_ORDERS, choices),
    _solve_orders,
    "gpu-sharing",
    "two jobs a GPU: a linear program for every order of events",
)
add_method(
    BRANCHING,
    lambda state: _reason(state, MOST),
    _solve_branching,
    "gpu-sharing",
    "two jobs a GPU: branch and bound over starts at events",
)
