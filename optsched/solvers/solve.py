"""`solve`: the best schedule that can be found and the best bound that can be proved, in the time allowed."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from optsched.bounds.regular import exact_costs
from optsched.classes import require_whole_jobs, usual_class
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError, NotInstalledError, OptschedError, check_legal
from optsched.models import FORMULATIONS
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.objectives import objective_of
from optsched.registry import near_matches
from optsched.solvers.lp_bound import lp_bound
from optsched.solvers.method import METHODS, PREFERRED, Method, MethodReport, has_own_methods
from optsched.solvers.methods.formulations import formulation_method
from optsched.solvers.session import Progress
from optsched.solvers.solution import Solution
from optsched.solvers.solve_state import EXCLUSIVE, SolveState
from optsched.solvers.utility import UtilitySolve
from optsched.speeds.duration import communicating, seconds_alone

__all__ = ["Solution", "model_names", "solve"]

FIRST_BUDGET = 3_000_000  # local search before all methods: some hundredths of a second
FIRST_BUDGET_CUBED = 100  # at most this times n^3: ten jobs have few orders
LIST_BUDGET = 60_000_000  # if no exact method fits, all the effort goes into the schedule
ENDLESS = 10**15  # until the time is up
EARLY = "the time limit came before any method could begin"
NONE_FITS = "no exact method fits the size of this instance: this is the best list schedule with the best certificate"
ALONE = (
    "the optimum over schedules in which jobs hold their GPUs alone; the model sharing-branching lets jobs share GPUs"
)
CONTENTION = "jobs contend for the network, which no method models"
_LOG = logging.getLogger(__name__)  # the message of a failed method, for developers
# largest formulation that is chosen without being named; nonzeros built in a second
NONZEROS, BUILT = 5_000_000, 300_000


def model_names() -> list[str]:
    """Return every name that ``solve(model=...)`` accepts: formulations, and methods without a formulation."""
    return sorted({*FORMULATIONS.names(), *METHODS.names()})


def solve(
    instance: Source,
    objective: str | None = None,
    *,
    model: str | None = None,
    time_limit: float | None = None,
    horizon: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Minimise an objective over non-preemptive schedules (``gang-nonpreemptive``), or bound its optimum.

    ``total_utility`` is maximised, over preemptive schedules (``gang``): an interval, by `optsched.solvers.utility`.

    The models ``gpu-sharing``, ``sharing-orders`` and ``sharing-branching`` minimise over schedules in which jobs may share
    GPUs (``gpu-sharing``).

    Parameters
    ----------
    instance
        Jobs and a cluster, or a SOURCE that `optsched.load` reads.
    objective
        Name of the objective; None: the instance's own, else ``total_flow_time``.
    model
        Name of `model_names`; None: a method that suits the instance. One machine: sequences, by sublimation. Gangs
        of one size that all arrive first: branching over machines' schedules. Gangs: partial schedules, bounded by
        prices of slots. Types or memory: placements. Speed that depends on the placement: branching over orders and
        modes, beyond a dozen jobs the program with modes.
    time_limit
        Seconds, in which a list schedule comes first; one step may overrun it. None: until the optimum is proved,
        or memory ends it.
    horizon
        Latest completion allowed, in seconds (None: any). Only formulations support it, and only with it can an
        instance be infeasible.
    progress
        Function called with the interval as it shrinks, from within.

    Returns
    -------
    Solution
        The solution.

    Raises
    ------
    InputError
        If the objective or the model is unknown, if the model does not apply (with the reason), or if jobs have no
        durations.

    Notes
    -----
    The solution is ``optimal`` only if the bound was proved with all gaps at zero, the referee accepts the schedule, and the
    value, recomputed from the schedule in fractions, equals the bound. They are equal exactly if float64 represents the
    times of all left-shifted schedules. Else they may differ by up to max(16, n) units in the last place of every
    completion time: this is the effect of rounding times, and the proof is one of the rounded problem. If times have no
    common unit, they may differ by up to 1e-9 of the flow (the cost of jobs after their arrival:
    `SolveState.at_stake`). Times count from the first arrival, so neither the epoch of a log nor its unit matters.

    A method whose numbers fail gives way to the next one that applies, and at last to the interval between the best
    certificate and the best schedule; ``note`` says so. No method models contention between whole jobs, which only
    slows jobs: a schedule in which no job is slowed is optimal all the same; the referee rejects the others, and then
    only a bound may be left.

    Examples
    --------
    >>> import optsched as osd
    >>> best = osd.solve("rigid-06-1", "total_completion_time")
    >>> best.status, best.value, best.bound
    ('optimal', 156.0, 156.0)
    >>> osd.solve("rigid-06-1", "makespan", model="rigid-time-indexed").value
    52.0
    """
    fine = time_limit is None or (isinstance(time_limit, int | float | np.integer | np.floating) and time_limit > 0)
    check_legal(fine, "time_limit", time_limit, "seconds > 0")
    deadline = Deadline.after(time_limit)
    return begin(instance, objective, model=model, deadline=deadline, horizon=horizon, progress=progress).run()


@dataclass(frozen=True)
class Solve:
    """One solve: `run` it; meanwhile any thread may ask for its result `so_far`."""

    instance: Instance
    state: SolveState
    named: Method | None

    def run(self) -> Solution:
        """Solve to the end or the deadline."""
        return self._noted(_run(self.state, self.named))

    def so_far(self, why: str) -> Solution:
        """Return the best schedule, at least a list schedule, and the best bound by now.

        Parameters
        ----------
        why
            Sentence for the note: why the proof is not complete.
        """
        with contextlib.suppress(OptschedError, ArithmeticError):
            self.state.any_schedule()
        return self._noted(_solution(self.state, self.state.method, MethodReport(self.state.method, note=why)))

    def _noted(self, solution: Solution) -> Solution:
        return solution.on_clock(self.instance).named()


def begin(
    instance: Source,
    objective: str | None = None,
    *,
    model: str | None = None,
    deadline: Deadline = NEVER,
    horizon: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solve | UtilitySolve:
    """Prepare a `solve` whose ``deadline`` may already be running; raises the same errors.

    Parameters
    ----------
    instance
        Jobs and a cluster, or a SOURCE that `optsched.load` reads.
    objective
        Name of the objective; None: the instance's own, else ``total_flow_time``.
    model
        Name of `model_names`; None: a method that suits the instance.
    deadline
        Time at which to stop.
    horizon
        Latest completion allowed, in seconds; None: any.
    progress
        Function called with the interval as it shrinks.
    """
    instance = instance_of(instance)
    goal = objective_of(instance, objective)
    meant = usual_class(instance)
    solved = meant.only and has_own_methods(meant.name)
    if not solved:  # no method is for its class
        require_whole_jobs(instance, "solve")
    usual = meant.name if solved else EXCLUSIVE
    seconds_alone(instance)
    if goal.gain:
        for option, asked in (("model", model), ("horizon", horizon)):
            check_legal(asked is None, option, asked, f"nothing: {goal.name} is maximised, by schedules in rounds")
        return UtilitySolve(instance, goal, deadline, progress)
    exact_costs(goal, instance.relative)
    named = None if model is None else _method_named(model)
    moved = float(goal.clock_part(instance))
    state = SolveState(
        instance.relative,
        goal,
        deadline=deadline,
        horizon=None if horizon is None else horizon - instance.epoch,
        progress=None if progress is None else lambda event: progress(event.on_clock(moved)),
        schedule_class=usual if named is None else named.schedule_class,
        epoch=instance.epoch,
    )
    return Solve(instance, state, named)


def _run(state: SolveState, named: Method | None) -> Solution:
    """Solve an instance whose time counts from its first arrival."""
    # make a list schedule, the best certificate of theorems, and a little local search; continue without one that fails
    budget = min(FIRST_BUDGET, FIRST_BUDGET_CUBED * state.instance.n**3)
    for step in (partial(state.search, 0, part=0.3), state.combinatorial, partial(state.search, budget)):
        try:
            if not state.closed:
                step()
        except (OptschedError, ArithmeticError) as error:
            _LOG.info("before any method: %s", error)
    if state.instance.n == 0:
        return _solution(state, "none", MethodReport("none"))
    if state.schedule is None and state.kind.alone and state.horizon is None:
        contend = bool(communicating(state.instance).any())
        why = CONTENTION if contend else "the numbers of the instance are too far apart to compute a schedule"
        return _solution(state, "list", MethodReport("list schedule", note=why))
    if state.late and state.schedule is not None:
        return _solution(state, "list", MethodReport("list schedule", note=EARLY))
    method = named or _choose(state, PREFERRED.of(state.schedule_class))
    if method is None:
        # no exact method fits: search longer for schedules and bounds
        state.search(LIST_BUDGET)
        if not state.late:
            half = state.deadline.share(0.5)
            state.offer_certificate(lp_bound(state.instance, state.goal.name, schedule=state.schedule, deadline=half))
        if state.left < math.inf and not state.closed:
            state.search(ENDLESS)
        return _solution(state, "list", MethodReport("list schedule", note=NONE_FITS))
    reason = method.applies(state)
    if reason is not None:
        raise InputError(f"the model does not apply: {reason}", field="model", value=method.name)
    if state.closed and named is None:
        return _solution(state, "list", MethodReport("combinatorial bound"))
    return _with_fallbacks(state, method)


def _with_fallbacks(state: SolveState, method: Method) -> Solution:
    """Return the result of the method or, if its numbers fail, of the next one that applies; at last the interval so far.

    They fail if the method gives up, if a schedule refutes its bound, or if tolerances leave its proof open. Schedules and
    bounds that are in the state by then stay: each has been checked.
    """
    failed = [method.name]
    following = PREFERRED.of(state.schedule_class)
    left = [name for name in following if name != method.name]
    open_: tuple[str, MethodReport] | None = None  # the first method that tolerances left open
    while True:
        state.begin(method.name)
        try:
            report = method.run(state)
        except NotInstalledError:
            raise
        except (OptschedError, ArithmeticError) as error:
            _LOG.info("%s: %s", method.name, error)
        else:
            if method.name not in state.refuted and not report.unproved:
                return _solution(state, method.name, report, failed[:-1])
            if method.name not in state.refuted:
                open_ = open_ or (method.name, report)
        following_method = None if state.closed or state.late else _choose(state, left)
        if following_method is None:
            break
        method = following_method
        failed.append(method.name)
        left = left[left.index(method.name) + 1 :]
    if open_ is not None:
        return _solution(state, *open_, [name for name in failed if name != open_[0]])
    state.any_schedule()
    return _solution(state, "list", MethodReport("list schedule"), failed)


def _method_named(name: str) -> Method:
    name = FORMULATIONS.canonical(METHODS.canonical(name))
    if name in METHODS:
        return METHODS.get(name)
    if name in FORMULATIONS:
        return formulation_method(name)
    raise InputError(
        f"there is no model named {name!r}", field="model", legal=near_matches(name, model_names(), kind="model")
    )


def _choose(state: SolveState, names: Sequence[str]) -> Method | None:
    """Return the first of the named methods that applies and is not too large."""
    for name in names:
        method = _method_named(name)
        if method.applies(state) is not None:
            continue
        most = min(NONZEROS, BUILT * state.left)
        if name in FORMULATIONS and FORMULATIONS.get(name).size(state.instance, state.goal.name) > most:
            continue
        return method
    return None


def _solution(state: SolveState, model: str, report: MethodReport, failed: Sequence[str] = ()) -> Solution:
    status = report.status or ("optimal" if state.closed else "limit")
    if state.closed and status != "infeasible":
        status = "optimal"
    bound, note = state.value if status == "optimal" else state.bound, report.note
    if status == "optimal":  # the optimum is one of a class; if jobs may share, the usual class is not the largest
        note = ALONE if state.kind.alone and not usual_class(state.instance).alone else ""
    if failed:
        why = "".join(f" ({each})" for name, each in state.refuted.items() if name in failed)
        names = " and ".join(failed)
        note = f"{names} failed on these numbers{why}; {note or 'other methods proved this result'}"
    return Solution(
        objective=state.goal.name,
        status=status,
        value_exact=None if status == "infeasible" else state.value,
        bound_exact=bound,
        bound_by=state.bound_by,
        schedule=None if status == "infeasible" else state.schedule,
        certificate=state.certificate,
        model=model,
        solver=report.solver,
        seconds=state.seconds,
        size=report.size,
        nodes=report.nodes,
        duals=report.duals,
        note=note,
        trace=tuple(state.trace),
    )
