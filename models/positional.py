"""Positional (assignment) formulation of 1 | r_j | sum C_j.

Sets: jobs j = 1..n; positions k = 1..n of the sequence.
Data: r_j release, p_j duration (seconds after the first release; any real numbers); e_k = completion of the k-th job to be
completed by SRPT with preemption.
Variables: assign[j, k] = 1 if j is the k-th job; completion[k] >= e_k, the time at which the k-th job completes.

    min  sum_k completion[k]                                                                     (0)
    s.t. sum_k assign[j, k] = 1                                          every job j             (1)  once
         sum_j assign[j, k] = 1                                          every position k        (2)  filled
         completion[k] >= sum_j (r_j + p_j) assign[j, k]                 every position k        (3)  released
         completion[k] >= completion[k-1] + sum_j p_j assign[j, k]       every position k > 1    (4)  follows

The bounds e_k are valid because SRPT completes its k-th job at least as early as any schedule does, for every k at once
(Schrage 1968). With them the LP relaxation is never below the SRPT bound.

Optimum: exact for ``gang-nonpreemptive``, unweighted: (0) does not depend on which job has a position. The LP
relaxation bounds the same class.
Size: columns n^2 + n, rows 4 n - 1, nonzeros 4 n^2 + O(n), whatever the times are.
Reference: Lasserre and Queyranne, Generic scheduling polyhedra and a new mixed-integer formulation for single-machine
scheduling, IPCO 1992, 136-149.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from optsched.bounds.fast_machine import srpt_completions
from optsched.bounds.integer_grid import on_grid
from optsched.errors import InfeasibleError, InputError
from optsched.models.fast_building import collector_paused, terms
from optsched.models.formulation import COMPLETION, add_formulation, require
from optsched.models.latest_starts import starts_of
from optsched.models.one_machine_orders import one_machine_reason, order_of, schedule_in_order, starts_in_order
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import fixed_durations

NAME = "positional"


def applies(instance: Instance, objective: str) -> str | None:
    """Return why the formulation does not apply, or None: weights in the objective, several machines, too large.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    return one_machine_reason(instance, objective, COMPLETION, size(instance, objective))


def size(instance: Instance, objective: str) -> int:
    """Estimate the nonzeros: every assignment is in (1), (2), (3) and (4).

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    return 4 * instance.n * instance.n + 2 * instance.n


@collector_paused
def build(
    instance: Instance, objective: str, *, horizon: float | Floats | None = None, relax: bool = False, cut: bool = True
) -> pyo.ConcreteModel:
    """Build the model with ``model.assign[j, k]`` and ``model.completion[k]``, positions from 0.

    ``model.completion`` is in seconds after the first arrival. Positions belong to no job, so of several horizons the latest
    counts.

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
        Unused: the formulation leaves out no start.

    Raises
    ------
    InputError
        If the formulation does not apply.
    InfeasibleError
        If no schedule completes all jobs by the horizon.
    """
    require(applies(instance, objective), NAME)
    n, origin = instance.n, float(instance.arrival.min())
    release, duration = instance.arrival - origin, fixed_durations(instance)
    end = math.inf if horizon is None else float(np.max(horizon)) - origin
    # rounded down if necessary, so that bounds are never too late
    jobs_of_srpt = on_grid(instance.arrival, duration, instance.gpus, 1)
    ticks = srpt_completions(jobs_of_srpt.release, jobs_of_srpt.work).tolist()
    earliest = [float((jobs_of_srpt.origin + tick) * jobs_of_srpt.tick) - origin for tick in ticks]  # e_k
    if earliest[-1] > end:
        raise InfeasibleError("no schedule completes all jobs by the horizon")

    model = pyo.ConcreteModel(NAME)
    model.release, model.duration = release, duration
    keys = [(j, k) for k in range(n) for j in range(n)]
    model.assign = pyo.Var(keys, domain=pyo.NonNegativeReals if relax else pyo.Binary)
    model.completion = pyo.Var(range(n), bounds=dict(enumerate((e, end) for e in earliest)))
    at = np.array(list(model.assign.values()), dtype=object).reshape(n, n)  # [position, job]
    completion = list(model.completion.values())
    minus = terms(np.full(n, -1), completion)
    jobs = range(n)

    # (0)
    goal = get_objective(objective)
    constant = n * origin - (float(np.sum(instance.arrival)) if goal.completion_form else 0.0)
    model.objective = pyo.Objective(expr=LinearExpression([constant, *completion]))
    # (1), (2)
    model.once = pyo.Constraint(jobs, expr={j: LinearExpression(at[:, j].tolist()) == 1 for j in jobs})
    model.filled = pyo.Constraint(jobs, expr={k: LinearExpression(at[k].tolist()) == 1 for k in jobs})
    # (3)
    model.released = pyo.Constraint(
        jobs, expr={k: LinearExpression([*terms(release + duration, at[k]), minus[k]]) <= 0 for k in jobs}
    )
    # (4)
    work = {k: terms(duration, at[k]) for k in jobs[1:]}
    model.follows = pyo.Constraint(
        jobs[1:], expr={k: LinearExpression([*work[k], completion[k - 1], minus[k]]) <= 0 for k in jobs[1:]}
    )
    return model


def _values(n: int, order: Ints) -> Floats:
    value = np.zeros((n, n))
    value[np.arange(n), order] = 1.0
    return value.reshape(-1)


def schedule(model: Any, instance: Instance, *, kept: bool = False) -> Schedule:
    """Return the schedule of an integer solution: the jobs in the order of their positions, each as early as it can.

    Parameters
    ----------
    model
        The model, with values loaded.
    instance
        Jobs and cluster.
    kept
        Start no job before the ``completion`` of its position minus its duration.

    Raises
    ------
    InputError
        If the values in the model do not assign every job once.
    """
    n = instance.n
    value = np.array([v.value or 0.0 for v in model.assign.values()]).reshape(n, n)
    order = value.argmax(axis=1)
    if not np.allclose(value.reshape(-1), _values(n, order), atol=0.5) or np.unique(order).size < n:
        raise InputError(
            "the model has no integer solution that starts every job once: solve it first, without relaxation",
            value=model.name,
        )
    begin = np.empty(n)
    begin[order] = [variable.value for variable in model.completion.values()]
    return schedule_in_order(instance, order, NAME, begin - model.duration if kept else None)


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
    order, begin = order_of(given), starts_of(given) - given.instance.arrival.min() if kept else None
    end = starts_in_order(order, model.release, model.duration, begin) + model.duration
    latest = model.completion[order.size - 1].ub
    if latest is not None and end.max() > latest + 1e-9 * (1 + latest):
        raise InputError("the schedule ends after the horizon that the model was built with", field="schedule")
    for variable, x in zip(model.assign.values(), _values(order.size, order).tolist(), strict=True):
        variable.set_value(x, skip_validation=True)
    for k, j in enumerate(order.tolist()):
        model.completion[k].set_value(float(end[j]), skip_validation=True)


add_formulation(
    name=NAME,
    graham="1 | r_j | sum C_j",
    objectives=COMPLETION,
    applies=applies,
    build=build,
    size=size,
    schedule=schedule,
    warm_start=warm_start,
    in_seconds=True,
    sets={"assign": "jk", "completion": "k", "once": "j", "filled": "k", "released": "k", "follows": "k"},
)
