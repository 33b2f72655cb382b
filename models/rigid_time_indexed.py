"""Time-indexed formulation of P | r_j, size_j | f, in Pyomo and in CVXPY: rigid gangs on G GPUs, counted but not placed.

Sets: jobs j = 1..n; slots t of ``unit`` seconds (the gcd of all times, `time_grid`); starts t = r_j..l_j (`latest_starts`).
Data: g_j GPUs of the gang, held from start to end; r_j release, p_j duration (slots); w_j weight; d_j due date (seconds);
G GPUs of the whole cluster (a gang may span nodes).
Variables: start[j, t] = 1 if j starts at slot t, for r_j <= t <= l_j; largest, of a maximum.

    min  sum_{j,t} cost(j, t) start[j, t]                                                        (0)
    s.t. sum_t start[j, t] = 1                                    every job j                     (1)  once
         sum_j sum_{t - p_j < s <= t} g_j start[j, s] <= G        every crowded slot t            (2)  capacity
         sum_t (t + p_j) start[j, t] <= largest                   every job j, of a maximum       (3)  finish

`start_model` builds these rows. It also defines (0), for a maximum too, and crowded slots.

Optimum: exact for ``gang-nonpreemptive`` and any regular objective if every job may use every node: a gang may then
take any free GPUs, so counts are enough. The LP relaxation bounds the same class from below; it is not a bound
for preemptive schedules. Its dual is max sum_j mu_j - G sum_t pi_t subject to
mu_j <= cost(j, t) + g_j sum_{t <= q < t + p_j} pi_q.
Size, H = latest completion: columns about n H, rows n + H, nonzeros about sum_j H (p_j + 1).
Reference: Pritsker, Watters and Wolfe, Multiproject scheduling with limited resources, Management Sci. 16 (1969), 93-108.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from optsched.models.formulation import FORMULATIONS, REGULAR, add_formulation, inapplicable, objective_reason, require
from optsched.models.latest_starts import left_shift, starts_of
from optsched.models.start_model import (
    StartBlocks,
    choose,
    chosen,
    end,
    largest,
    least_maximum,
    start_model,
)
from optsched.models.time_grid import time_grid
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import fixed_durations

NAME, CVXPY = "rigid-time-indexed", "rigid-time-indexed-cvxpy"


def applies(instance: Instance, objective: str) -> str | None:
    """Return why the formulation does not apply, or None: GPU types or memory, no common unit of times, too large.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    reason = objective_reason(instance, objective, REGULAR)
    if reason is None and not instance.unrestricted:
        return "not every job may use every node: use rigid-placed"
    return reason or inapplicable(instance, objective, REGULAR, size)


def size(instance: Instance, objective: str) -> int:
    """Estimate the nonzeros: every start is in (1), in p_j rows of (2), and for a maximum in its row of (3).

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    return blocks(instance).size(instance, objective)


def blocks(instance: Instance) -> StartBlocks:
    """Return one block for each job, on one pool of all GPUs.

    Parameters
    ----------
    instance
        Jobs and cluster.
    """
    grid, total = time_grid(instance), np.array([instance.cluster.gpus])
    return StartBlocks(grid, np.arange(instance.n), grid.duration, instance.gpus[:, None], total, counted=True)


def build(instance: Instance, objective: str, **limits: Any) -> pyo.ConcreteModel:
    """Build the Pyomo model; ``model.columns`` describes the columns ``model.start[j, t]``.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    **limits
        ``horizon``, ``relax`` and ``cut`` as in `optsched.models.start_model.start_model`.

    Raises
    ------
    InputError
        If the formulation does not apply.
    """
    require(applies(instance, objective), NAME)
    return start_model(NAME, instance, objective, blocks(instance), **limits)[0]


def build_cvxpy(
    instance: Instance, objective: str, *, horizon: float | Floats | None = None, relax: bool = False, cut: bool = True
) -> Any:
    """Build the same model in CVXPY, with a vector of variables and sparse matrices.

    ``problem.start`` has one entry for each of ``problem.columns``.

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
    """
    import cvxpy as cp

    require(applies(instance, objective), CVXPY)
    columns, _ = blocks(instance).columns(instance, objective, horizon, cut)
    goal, grid, count = get_objective(objective), columns.grid, columns.slot.size
    job, every = columns.job[columns.block], np.arange(count)
    start = cp.Variable(count, name="start", nonneg=relax, boolean=not relax)

    def of_job(value: Floats | Ints) -> sp.csr_array:
        return sp.csr_array((value.astype(np.float64), (job, every)), shape=(instance.n, count))

    rows = [(of_job(np.ones(count)) @ start == 1).set_label("once")]  # (1)
    crowded = columns.crowded(instance.gpus[columns.job], instance.cluster.gpus)
    if crowded:
        numbers = every.tolist()
        used = [columns.in_process(numbers, t) for t in crowded]
        flat, slot = np.concatenate(used), np.repeat(crowded, [len(each) for each in used])
        held = sp.csr_array((instance.gpus[job[flat]].astype(np.float64), (slot, flat)), shape=(crowded[-1] + 1, count))
        rows.append((held @ start <= instance.cluster.gpus).set_label("capacity"))  # (2), a row a slot
    if goal.maximum:
        least = least_maximum(goal, grid, instance.gpus, instance.cluster.gpus)
        most = cp.Variable(name="largest", bounds=[least, None])
        extra = {"largest": most, "goal": goal}
        rows.append((of_job(largest(goal, columns.end, grid.release[job])) @ start <= most).set_label("finish"))  # (3)
        value = float(goal.term(grid.origin, grid.origin, 1, np.inf)) + float(grid.unit) * most
    else:
        cost, constant = columns.costs(instance, objective)
        value, extra = cost @ start + constant, {}
    problem = cp.Problem(cp.Minimize(value), rows)  # (0)
    vars(problem).update(start=start, columns=columns, grid=grid, **extra)
    return problem


def schedule(model: Any, instance: Instance) -> Schedule:
    """Return the schedule of an integer solution.

    Parameters
    ----------
    model
        The model, with values loaded.
    instance
        Jobs and cluster.
    """
    _, starts = chosen(model)
    return Schedule.from_starts(instance, starts, duration=fixed_durations(instance), policy=NAME)


def warm_start(model: Any, given: Schedule) -> None:
    """Put a non-preemptive schedule, moved to the left, on all variables.

    Parameters
    ----------
    model
        The model.
    given
        The schedule.

    Raises
    ------
    InputError
        If a job completes after the horizon of the model.
    """
    grid, gpus = model.columns.grid, given.instance.gpus
    total = np.array([given.instance.cluster.gpus])
    slot = left_shift(grid.slots(starts_of(given)), grid.release, grid.duration, gpus[:, None], total)
    choose(model, np.arange(slot.size), slot)


FORMULATION = add_formulation(
    name=NAME,
    graham="P | r_j, size_j | f, f regular",
    objectives=REGULAR,
    applies=applies,
    build=build,
    size=size,
    schedule=schedule,
    warm_start=warm_start,
    sets={"start": "jt", "once": "j", "capacity": "t", "finish": "j"},
    end=end,
)
FORMULATIONS.register(CVXPY)(replace(FORMULATION, name=CVXPY, build=build_cvxpy))
