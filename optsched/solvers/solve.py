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
from optsched.solvers.method import EXCLUSIVE, METHODS, PREFERRED, Method, MethodReport
from optsched.solvers.methods.formulations import formulation_method
from optsched.solvers.session import Progress
from optsched.solvers.solution import Solution
from optsched.solvers.solve_state import SolveState
from optsched.solvers.utility import UtilitySolve
from optsched.speeds.duration import communicating, seconds_alone

__all__ = ["Solution", "model_names", "solve"]

FIRST_BUDGET = 3_000_000  # local search before anything else: some hundredths of a second
FIRST_BUDGET_CUBED = 100  # and no more than this times n^3: ten jobs have no more orders worth a look
LIST_BUDGET = 60_000_000  # where no exact method fits, the schedule is all there is
ENDLESS = 10**15  # until the time is up
EARLY = "the time limit came before any method could begin"
NONE_FITS = "no exact method fits the size of this instance: the best list schedule and the best certificate"
ALONE = "the optimum of schedules in which jobs hold their GPUs alone; sharing-branching lets them share"
CONTENTION = "jobs contend for the network, of which no method knows"
_LOG = logging.getLogger(__name__)  # why a method failed, in its own words: for developers
NONZEROS, BUILT = 5_000_000, 300_000  # of a formulation that is chosen without being named; built in a second


def model_names() -> list[str]:
    """Every name that ``solve(model=...)`` knows: formulations and the methods that need none."""
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
    """Minimise an objective over non-preemptive schedules (``gang-nonpreemptive``), or say how near one came.

    ``total_utility`` is maximised, over preemptive schedules (``gang``): an interval, by `optsched.solvers.utility`.

    The models ``gpu-sharing``, ``sharing-orders`` and ``sharing-branching`` minimise over schedules in which jobs may share
    GPUs (``gpu-sharing``).

    Parameters
    ----------
    instance : jobs and a cluster, or a SOURCE that `optsched.load` reads.
    objective : its name; None: the instance's own, else ``total_flow_time``.
    model : a name of `model_names`; None: what suits the instance (one machine: sequences, by sublimation; gangs of one
        size, all there at first: branching over machines' schedules; gangs: partial schedules, bounded by prices of slots;
        types or memory: placements; speed that depends on the placement: branching over orders and modes, beyond a dozen
        jobs the program with modes).
    time_limit : seconds, in which a list schedule comes first; one step may overrun it. None: until it is proved, or memory
        ends it.
    horizon : latest completion allowed, in seconds (None: any). Only formulations know it, and only with it can an
        instance be infeasible.
    progress : called with the interval as it shrinks, from within.

    Returns a `Solution`. It is ``optimal`` only if the bound was proved with all gaps at zero, the referee accepts the
    schedule and the value recomputed from the schedule in fractions equals the bound: exactly where float64 holds the times
    of all left-shifted schedules; else up to max(16, n) units in the last place of every completion time (that is what
    rounding of times does, and the proof is one of the rounded problem), and where times have no common unit up to 1e-9 of
    the flow (of what jobs pay beyond their arrival: `SolveState.at_stake`). Times count from the first arrival, so that
    neither the epoch of a log nor its unit has a part in this. A method whose numbers fail gives way to the next one that
    applies, and at last to the interval between the best certificate and the best schedule; ``note`` says so.
    No method knows of contention between whole jobs, which only slows: a schedule in which nobody is slowed is optimal all
    the same; the referee refuses the others, and a bound may be all that is left.

    Raises
    ------
    InputError
        For an unknown objective or model, a model that does not apply (with the reason), jobs without durations.

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
    """One solve: `run` it; meanwhile any thread may ask what it has come to `so_far`."""

    instance: Instance
    state: SolveState
    named: Method | None

    def run(self) -> Solution:
        """To the end or the deadline."""
        return self._noted(_run(self.state, self.named))

    def so_far(self, why: str) -> Solution:
        """The best schedule, at least a list schedule, and the best bound by now; ``why`` no more is known."""
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
    """As `solve`, which may already be under way when the clock of its ``deadline`` is running; raises the same."""
    instance = instance_of(instance)
    goal = objective_of(instance, objective)
    require_whole_jobs(instance, "solve")
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
        schedule_class=EXCLUSIVE if named is None else named.schedule_class,
        epoch=instance.epoch,
    )
    return Solve(instance, state, named)


def _run(state: SolveState, named: Method | None) -> Solution:
    """Solve an instance whose time counts from its first arrival."""
    # a list schedule, the best certificate of theorems, a little local search; where numbers fail, without it
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
        why = CONTENTION if contend else "no schedule came out of numbers this far apart"
        return _solution(state, "list", MethodReport("list schedule", note=why))
    if state.late and state.schedule is not None:
        return _solution(state, "list", MethodReport("list schedule", note=EARLY))
    method = named or _choose(state, PREFERRED.of(state.schedule_class))
    if method is None:
        # no exact method fits: a longer search from below and above
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
    """The method's own end or, where its numbers fail, that of the next one that applies; at last the interval so far.

    They fail where it gives up, where a schedule refutes its bound, and where tolerances leave its proof open. Schedules and
    bounds that are in the state by then stay: each has been judged.
    """
    failed = [method.name]
    following = PREFERRED.of(state.schedule_class)
    left = [name for name in following if name != method.name]
    open_: tuple[str, MethodReport] | None = None  # the first that tolerances have left open
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
        found = None if state.closed or state.late else _choose(state, left)
        if found is None:
            break
        method = found
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
    """The first of the named methods that applies and is not too large."""
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
    if status == "optimal":  # one of a class; where jobs may share, the usual one is not the largest
        note = ALONE if state.kind.alone and not usual_class(state.instance).alone else ""
    if failed:
        why = "".join(f" ({each})" for name, each in state.refuted.items() if name in failed)
        names = " and ".join(failed)
        note = f"{names} did not get through these numbers{why}; {note or 'this is what other methods prove'}"
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
