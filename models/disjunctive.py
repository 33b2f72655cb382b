"""Disjunctive (order, big-M) formulation of 1 | r_j | f: real-valued times, any regular objective.

Sets: jobs j = 1..n; pairs i < j whose order is open; ordered pairs (i, j) in which i must come first.
Data: r_j release, p_j duration, d_j due date (seconds after the first release; any real numbers); w_j weight;
l_j latest start (below).
Variables: r_j <= start[j] <= l_j; before[i, j] = 1 if i precedes j; tardy[j] >= 0 (finite due dates); largest.

    min  sum_j w_j (start[j] + p_j)  or  sum_j w_j tardy[j]  or  largest                                   (0)
    s.t. start[i] + p_i <= start[j] + (l_i + p_i - r_j) (1 - before[i, j])      every open pair            (1)  first
         start[j] + p_j <= start[i] + (l_j + p_j - r_i) before[i, j]            every open pair            (2)  second
         start[i] + p_i <= start[j]                                             every ordered pair         (3)  fixed
         tardy[j] >= start[j] + p_j - d_j                                       every finite due date      (4)  due
         largest >= start[j] + p_j, minus r_j for the largest flow time         every job                  (5)  finish

Latest starts: run the jobs of an optimal schedule in its order, each as early as it can. After the last release R
the machine is never idle while work is left. Hence all jobs are done by R + sum p, and l_j = R + sum_{i != j} p_i. A
horizon given by the caller may lower l_j. The big M of a row is the smallest number that makes the row redundant when it
is switched off: start[i] + p_i <= l_i + p_i and start[j] >= r_j. A pair is ordered if the windows [r, l] leave one order
only (r_j + p_j > l_i: i first). Its row is left out if the windows imply it (l_i + p_i <= r_j).

Optimum: exact for ``gang-nonpreemptive``. The LP relaxation is weak because it may put all jobs at their releases. Use
this model for small instances whose times are long or real-valued, where a time grid has too many slots.
Size: columns n + n (n - 1) / 2, rows n (n - 1), nonzeros 3 n (n - 1), plus 2 n for (4) or (5).
Reference: Manne, On the job-shop scheduling problem, Operations Research 8 (1960), 219-223.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression, MonomialTermExpression

from optsched.errors import InfeasibleError, InputError
from optsched.models.fast_building import collector_paused
from optsched.models.formulation import REGULAR, add_formulation, require
from optsched.models.latest_starts import starts_of
from optsched.models.one_machine_orders import one_machine_reason, order_of, schedule_in_order, starts_in_order
from optsched.problem.arrays import Bools, Floats
from optsched.problem.instance import Instance
from optsched.problem.objectives import Objective, get_objective
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import fixed_durations

NAME = "disjunctive"
ROUNDING = 1e-12  # relative


def applies(instance: Instance, objective: str) -> str | None:
    """Return why the formulation does not apply, or None.

    Reasons are several machines, a model that is too large, and an objective for which no job pays.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    if objective in REGULAR and get_objective(objective).weighted:
        pays = instance.weight > 0
        if objective == "total_weighted_tardiness":
            pays &= np.isfinite(instance.due)
        if instance.n and not pays.any():
            return f"every schedule has a {objective} of 0: no job has a weight (and a due date, for tardiness)"
    return one_machine_reason(instance, objective, REGULAR, size(instance, objective))


def size(instance: Instance, objective: str) -> int:
    """Estimate the nonzeros: three in each row of (1) and (2), two in each row of (4) or (5).

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    return 3 * instance.n * (instance.n - 1) + 2 * instance.n


@dataclass(frozen=True)
class Windows:
    """Times f64[n] in seconds after ``origin``: release, duration, latest start, due date (inf: none)."""

    origin: float
    release: Floats
    duration: Floats
    latest: Floats
    due: Floats

    @classmethod
    def of(cls, instance: Instance, horizon: float | Floats | None, cut: bool = True) -> Windows:
        """Return the windows of an instance.

        Parameters
        ----------
        instance
            Jobs and cluster.
        horizon
            Latest completion in seconds, one number or f64[n] with one for each job; None: no limit.
        cut
            Intersect the horizon with the proved latest starts; without it the horizon replaces them.

        Raises
        ------
        InfeasibleError
            If a job cannot complete by the horizon.
        """
        origin, duration = float(instance.arrival.min()), fixed_durations(instance)
        release = instance.arrival - origin
        latest = release.max() + duration.sum() - duration
        latest += ROUNDING * (latest + duration)  # rounding of sums in float64 never makes them too early
        if horizon is not None:
            by_horizon = np.asarray(horizon) - origin - duration
            latest = np.minimum(latest, by_horizon) if cut else by_horizon
        late = np.flatnonzero(latest < release)
        if late.size:
            raise InfeasibleError(f"job {instance.ids[late[0]]!r} cannot complete by the horizon")
        return cls(origin, release, duration, latest, instance.due - origin)

    @property
    def must_precede(self) -> Bools:
        """Matrix bool[n, n]: at [i, j] whether i must precede j, because i would start too late after j."""
        precedes = (self.release + self.duration)[None, :] > self.latest[:, None]
        np.fill_diagonal(precedes, False)
        return precedes

    @property
    def big(self) -> Floats:
        """Matrix f64[n, n]: the big M of "i before j", l_i + p_i - r_j; at most 0 where the windows imply the order."""
        return (self.latest + self.duration)[:, None] - self.release[None, :]


@collector_paused
def build(
    instance: Instance, objective: str, *, horizon: float | Floats | None = None, relax: bool = False, cut: bool = True
) -> pyo.ConcreteModel:
    """Build the model with ``model.start[j]`` in seconds after ``model.windows.origin``.

    ``model.before[i, j]`` exists for the open pairs.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    horizon
        Latest completion allowed, in seconds: one number, or f64[n] with one for each job. None: a horizon that
        provably keeps an optimal schedule.
    relax
        Drop integrality.
    cut
        Leave out starts that are provably needless; without it every start that ends by the horizon is kept.

    Raises
    ------
    InputError
        If the formulation does not apply.
    InfeasibleError
        If a job cannot complete by the horizon.
    """
    require(applies(instance, objective), NAME)
    windows = Windows.of(instance, horizon, cut)
    model = pyo.ConcreteModel(NAME)
    model.windows = windows
    bounds = zip(windows.release.tolist(), windows.latest.tolist(), strict=True)
    model.start = pyo.Var(range(instance.n), bounds=dict(enumerate(bounds)))
    _order(model, windows, relax)
    goal = get_objective(objective)
    if goal.maximum:
        _maximum(model, windows, goal)
        return model
    weight, constant, paid = instance.weight if goal.weighted else np.ones(instance.n), 0.0, model.start
    if objective == "total_weighted_tardiness":
        due = np.flatnonzero(np.isfinite(windows.due)).tolist()
        model.tardy = pyo.Var(due, domain=pyo.NonNegativeReals)
        slack = (windows.due - windows.duration).tolist()
        # (4)
        model.due = pyo.Constraint(due, expr={j: model.start[j] - model.tardy[j] <= slack[j] for j in due})
        weight, paid = weight[due], model.tardy
    else:
        counted_from = instance.arrival if goal.completion_form else np.zeros(instance.n)
        constant = float(weight @ (windows.origin + windows.duration - counted_from))
    model.objective = pyo.Objective(
        expr=LinearExpression(constant=constant, linear_coefs=weight.tolist(), linear_vars=list(paid.values()))
    )
    return model


def _order(model: Any, windows: Windows, relax: bool) -> None:
    # (1), (2), (3)
    first = windows.must_precede
    upper = np.triu_indices(windows.release.size, 1)
    is_open = ~(first | first.T)
    pairs = [(i, j) for i, j in zip(*(index.tolist() for index in upper), strict=True) if is_open[i, j]]
    model.before = pyo.Var(pairs, domain=pyo.UnitInterval if relax else pyo.Binary)
    start = list(model.start.values())
    minus = [MonomialTermExpression((-1, variable)) for variable in start]
    big, p = windows.big.tolist(), windows.duration.tolist()
    forward, back = {}, {}
    for (i, j), before in zip(pairs, model.before.values(), strict=True):
        switch = MonomialTermExpression((big[i][j], before))
        forward[i, j] = LinearExpression([start[i], minus[j], switch]) <= big[i][j] - p[i]
        switch = MonomialTermExpression((-big[j][i], before))
        back[i, j] = LinearExpression([start[j], minus[i], switch]) <= -p[j]
    model.first = pyo.Constraint(pairs, expr=forward)
    model.second = pyo.Constraint(pairs, expr=back)
    ordered = np.argwhere(first & (windows.big > 0)).tolist()
    fixed = {(i, j): LinearExpression([start[i], minus[j]]) <= -p[i] for i, j in ordered}
    model.fixed = pyo.Constraint(list(fixed), expr=fixed)


def _maximum(model: Any, windows: Windows, goal: Objective) -> None:
    # no order is better than that of the releases, for the makespan and the largest flow time
    order = np.argsort(windows.release, kind="stable")
    release, p = windows.release[order], windows.duration[order]
    end = starts_in_order(np.arange(order.size), release, p) + p
    model.largest = pyo.Var(bounds=(float(np.max(goal.term(end, release, 1, np.inf))), None))
    model.goal, jobs = goal, range(windows.release.size)
    paid = goal.term(windows.duration, windows.release, 1, np.inf).tolist()
    # (5)
    model.finish = pyo.Constraint(jobs, expr={j: model.start[j] - model.largest <= -paid[j] for j in jobs})
    model.objective = pyo.Objective(expr=goal.term(windows.origin, windows.origin, 1, np.inf) + model.largest)


def end(model: Any, j: int) -> Any:
    """Return C_j in seconds, an expression in ``model.start``.

    Parameters
    ----------
    model
        The model.
    j
        Number of the job.
    """
    return model.start[j] + float(model.windows.origin + model.windows.duration[j])


def schedule(model: Any, instance: Instance, *, kept: bool = False) -> Schedule:
    """Return the schedule of an integer solution: jobs in the order that ``before`` gives, each as early as it can.

    Parameters
    ----------
    model
        The model, with values loaded.
    instance
        Jobs and cluster.
    kept
        Start no job before its ``start`` in the model.

    Raises
    ------
    InputError
        If the values in the model do not order all jobs.
    """
    n, windows = instance.n, model.windows
    before = windows.must_precede.copy()
    for (i, j), variable in model.before.items():
        value = math.nan if variable.value is None else variable.value
        before[i, j], before[j, i] = value > 0.5, value < 0.5
    # the position of a job in a total order is the number of jobs before it
    position = before.sum(axis=0)
    if not np.array_equal(np.sort(position), np.arange(n)):
        raise InputError(
            "the model has no integer solution that starts every job once: solve it first, without relaxation",
            value=model.name,
        )
    begin = np.array([variable.value for variable in model.start.values()]) if kept else None
    return schedule_in_order(instance, np.argsort(position), NAME, begin)


def warm_start(model: Any, given: Schedule, *, kept: bool = False) -> None:
    """Put the order of a non-preemptive schedule on all variables, with each job as early as it can.

    Parameters
    ----------
    model
        The model.
    given
        The schedule.
    kept
        Start no job before its start in the schedule.

    Raises
    ------
    InputError
        If the schedule ends after the horizon of the model.
    """
    windows: Windows = model.windows
    order, begin = order_of(given), starts_of(given) - windows.origin if kept else None
    start = starts_in_order(order, windows.release, windows.duration, begin)
    if np.any(start > windows.latest + 1e-9 * (1 + windows.latest)):
        raise InputError("the schedule ends after the horizon that the model was built with", field="schedule")
    rank = np.argsort(order)
    for j, variable in model.start.items():
        variable.set_value(float(start[j]), skip_validation=True)
    for (i, j), variable in model.before.items():
        variable.set_value(float(rank[i] < rank[j]), skip_validation=True)
    end = start + windows.duration
    if model.component("tardy") is not None:
        for j, variable in model.tardy.items():
            variable.set_value(max(0.0, float(end[j] - windows.due[j])), skip_validation=True)
    if model.component("largest") is not None:
        paid = model.goal.term(end, windows.release, 1, np.inf)
        model.largest.set_value(float(paid.max()), skip_validation=True)


add_formulation(
    name=NAME,
    graham="1 | r_j | f, f regular",
    objectives=REGULAR,
    applies=applies,
    build=build,
    size=size,
    schedule=schedule,
    warm_start=warm_start,
    in_seconds=True,
    sets={"start": "j", "before": "jj", "first": "jj", "second": "jj", "fixed": "jj", "due": "j", "finish": "j"},
    end=end,
)
