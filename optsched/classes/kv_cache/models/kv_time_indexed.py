"""Time-indexed formulation of requests under a limit of cells, in Pyomo: the integer program of Jaillet et al.

Sets: requests i = 1..n; rounds t of length 1; starts k = a_i..l_i, boundaries between rounds.
Data: a_i arrival, s_i prompt tokens, o_i output tokens; w_i weight; M cells of the cache.
Variables: start[i, k] = 1 if request i starts at boundary k: it makes a token in each of the rounds k + 1 to k + o_i, and
holds s_i + (t - k) cells in round t of these.

    min  sum_{i,k} w_i (k + o_i - a_i) start[i, k]                                               (0)
    s.t. sum_k start[i, k] = 1                                            every request i        (1)  once
         sum_i sum_{t - o_i <= k < t} (s_i + t - k) start[i, k] <= M      every round t          (2)  capacity

Optimum: exact for ``kv-cache`` in rounds of length 1: the best schedule without restarts, which only cost time. Latest
starts l_i: an optimal schedule has no idle round after the last arrival, so it ends by max a + sum o. The linear relaxation
is weak (some 65 % of the optimum at 50 requests), since fractions of staggered requests fill the cache. Its dual is
max sum_i mu_i - M sum_t pi_t, mu_i <= cost(i, k) + sum_j (s_i + j) pi_{k+j}.
Size, H = latest completion: columns about n H, rows n + H, nonzeros about sum_i H (o_i + 1).
Reference: Jaillet, Jiang, Mellou, Molinaro, Podimata and Zhou, arXiv 2502.07115 (2025), eq. 1-4.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from optsched.classes.kv_cache import is_served
from optsched.classes.kv_cache.problem.request_schedule import request_schedule
from optsched.classes.kv_cache.problem.requests import requests_of
from optsched.errors import InfeasibleError, InputError
from optsched.models.fast_building import collector_paused
from optsched.models.formulation import WEIGHTED_COMPLETION, add_formulation, inapplicable, objective_reason, require
from optsched.models.latest_starts import starts_of
from optsched.models.start_model import StartColumns, choose, chosen, end
from optsched.models.time_grid import TimeGrid
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule

NAME = "kv-time-indexed"


def applies(instance: Instance, objective: str) -> str | None:
    """Return why the formulation does not apply, or None: no requests, rounds of affine length, too large.

    Parameters
    ----------
    instance
        Requests and one worker.
    objective
        Name of the objective.
    """
    reason = objective_reason(instance, objective, WEIGHTED_COMPLETION)
    if reason is None and not is_served(instance):
        return "the jobs are no requests"
    if reason is None and requests_of(instance).affine:
        return "rounds are not of length 1"
    return reason or inapplicable(instance, objective, WEIGHTED_COMPLETION, size)


def size(instance: Instance, objective: str) -> int:
    """Estimate the nonzeros: every start is in (1) and in o_i rows of (2).

    Parameters
    ----------
    instance
        Requests and one worker.
    objective
        Name of the objective.
    """
    output = requests_of(instance).output
    return int(((output + 1.0) * (output.sum() + np.ptp(instance.arrival))).sum())


@collector_paused
def build(
    instance: Instance, objective: str, *, horizon: float | Floats | None = None, relax: bool = False, cut: bool = True
) -> pyo.ConcreteModel:
    """Build the Pyomo model; ``model.columns`` describes the columns ``model.start[i, k]``.

    Parameters
    ----------
    instance
        Requests and one worker.
    objective
        Name of the objective.
    horizon
        Latest completion allowed: one number, or f64[n] with one for each request. None: max a + sum o.
    relax
        Drop integrality.
    cut
        Not used: no start that ends by the horizon is left out.

    Raises
    ------
    InputError
        If the formulation does not apply.
    InfeasibleError
        If a request cannot complete by the horizon.
    """
    require(applies(instance, objective), NAME)
    requests, first = requests_of(instance), float(instance.arrival.min())
    grid = TimeGrid(first, Fraction(1), (requests.arrival - first).astype(np.int64), requests.output)
    allowed = np.broadcast_to(np.inf if horizon is None else np.asarray(horizon, dtype=np.float64), instance.n)
    latest = grid.slots(np.where(np.isfinite(allowed), allowed, first + grid.end - 1))
    if cut:
        latest = np.minimum(latest, grid.end - 1)
    last = latest - grid.duration
    for i in np.flatnonzero(last < grid.release).tolist():
        raise InfeasibleError(f"job {instance.ids[i]!r} cannot complete by the horizon")
    columns = StartColumns(grid, np.arange(instance.n), grid.release, last)

    model = pyo.ConcreteModel(NAME)
    model.columns, model.grid = columns, grid
    keys = list(zip(columns.block.tolist(), columns.slot.tolist(), strict=True))
    model.start = pyo.Var(keys, domain=pyo.NonNegativeReals if relax else pyo.Binary)
    start, jobs = list(model.start.values()), range(instance.n)
    # (0)
    cost, constant = columns.costs(instance, objective)
    model.objective = pyo.Objective(
        expr=LinearExpression(constant=constant, linear_coefs=cost.tolist(), linear_vars=start)
    )
    # (1)
    model.once = pyo.Constraint(jobs, expr={j: LinearExpression(columns.of_job(start, j)) == 1 for j in jobs})
    # (2), indexed by the boundary at which the round begins; a round in which all peaks fit together needs no row
    held, rows = (requests.prompt[columns.block] + 1 - columns.slot).tolist(), {}
    for t in columns.crowded(requests.prompt + requests.output, requests.cells):
        running = columns.in_process(range(len(start)), t)
        cells = [held[column] + t for column in running]
        body = LinearExpression(linear_coefs=cells, linear_vars=[start[column] for column in running])
        rows[t] = body <= requests.cells
    model.capacity = pyo.Constraint(list(rows), expr=rows)
    return model


def schedule(model: Any, instance: Instance) -> Schedule:
    """Return the schedule of an integer solution.

    Parameters
    ----------
    model
        The model, with values loaded.
    instance
        Requests and one worker.
    """
    return request_schedule(instance, chosen(model)[1], NAME)


def warm_start(model: Any, given: Schedule) -> None:
    """Put a schedule on all variables.

    Parameters
    ----------
    model
        The model.
    given
        A schedule in which every request is started once.

    Raises
    ------
    InputError
        If a request is started more than once, or completes after the horizon of the model.
    """
    if given.job.size != given.instance.n:
        raise InputError("a request is thrown out and starts again", field="schedule", legal="one start a request")
    choose(model, np.arange(given.instance.n), model.grid.slots(starts_of(given)))


add_formulation(
    name=NAME,
    graham="one cache of M cells | size_j(t) = s_j + t, r_j | sum w_j C_j",
    objectives=WEIGHTED_COMPLETION,
    applies=applies,
    build=build,
    size=size,
    schedule_class="kv-cache",
    schedule=schedule,
    warm_start=warm_start,
    sets={"start": "jt", "once": "j", "capacity": "t"},
    end=end,
)
