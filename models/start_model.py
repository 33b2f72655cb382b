"""The start-time model behind every time-indexed formulation; reading its schedule, and putting one in.

Sets: blocks b, each a way to run a job (`StartBlocks`): one a job where GPUs are counted, one a mode where they are placed;
starts t of a block; pools v of c_v GPUs: the whole cluster, or the nodes.
Variables: start[b, t] = 1 if the job of block b starts at slot t in that way, for p_b slots on u_bv GPUs of every pool.

    min  sum_{b,t} cost(j, t + p_b) start[b, t]                                                  (0)
    s.t. sum_{b of j, t} start[b, t] = 1                             every job j                 (1)  once
         sum_b sum_{t - p_b < s <= t} u_bv start[b, s] <= c_v        every pool v, crowded t     (2)  capacity

cost(j, t) is what j pays when it completes at t: w_j C_j, w_j (C_j - r_j) or w_j max(C_j - d_j, 0); what it pays when it
runs its fastest way from its release is taken out as a constant, which changes nothing because of (1). For the makespan:
min M with sum (t + p_b) start[b, t] <= M (``finish``), for the largest flow time t + p_b - r_j in place of t + p_b, and M at
least what first come, first served gives with all GPUs as one machine. A slot is crowded if the jobs that can be in process
hold more than c_v GPUs together; rows of the others are redundant and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression, MonomialTermExpression

from optsched.errors import InputError
from optsched.models.fast_building import collector_paused, terms
from optsched.models.start_columns import StartBlocks, StartColumns, largest, least_maximum
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import Objective, get_objective


@collector_paused
def start_model(
    name: str,
    instance: Instance,
    objective: str,
    blocks: StartBlocks,
    *,
    horizon: float | Floats | None = None,
    relax: bool = False,
    cut: bool = True,
) -> tuple[pyo.ConcreteModel, Ints]:
    """(the model with ``model.start[b, t]`` and ``model.columns``, the blocks that it has, numbered anew).

    Rows of ``capacity`` are those of (slot) where GPUs are counted, else of (node, slot).
    """
    columns, kept = blocks.columns(instance, objective, horizon, cut)
    held = blocks.held[kept]

    model = pyo.ConcreteModel(name)
    model.columns, model.grid = columns, columns.grid
    keys = list(zip(columns.block.tolist(), columns.slot.tolist(), strict=True))
    model.start = pyo.Var(keys, domain=pyo.NonNegativeReals if relax else pyo.Binary)
    start, jobs = list(model.start.values()), range(instance.n)

    # (0)
    _minimise(model, columns, instance, objective, start)
    # (1)
    model.once = pyo.Constraint(jobs, expr={j: LinearExpression(columns.of_job(start, j)) == 1 for j in jobs})
    # (2)
    rows = {}
    for v, capacity in enumerate(blocks.capacity.tolist()):
        users = np.flatnonzero(held[:, v])
        used = start if (held[users, v] == 1).all() else terms(held[columns.block, v], start)
        for t in columns.crowded(held[:, v], capacity):
            rows[t if blocks.counted else (v, t)] = LinearExpression(columns.in_process(used, t, users)) <= capacity
    model.capacity = pyo.Constraint(list(rows), expr=rows)
    return model, kept


def _minimise(model: Any, columns: StartColumns, instance: Instance, objective: str, start: Sequence[Any]) -> None:
    """Add the objective; for a maximum also its variable (in slots) and its rows ``finish``."""
    goal, grid = get_objective(objective), columns.grid
    if not goal.maximum:
        cost, constant = columns.costs(instance, objective)
        body = LinearExpression(constant=constant, linear_coefs=cost.tolist(), linear_vars=start)
        model.objective = pyo.Objective(expr=body)
        return
    least = least_maximum(goal, grid, instance.gpus, instance.cluster.gpus)
    model.largest = pyo.Var(bounds=(least, None))
    paid, late, end = terms(_paid(columns, goal), start), {}, np.zeros_like(grid.release)
    np.maximum.at(end, columns.job, columns.last + columns.duration)
    for j in np.flatnonzero(largest(goal, end, grid.release) > least).tolist():
        late[j] = LinearExpression([*columns.of_job(paid, j), MonomialTermExpression((-1, model.largest))]) <= 0
    model.finish = pyo.Constraint(list(late), expr=late)
    model.goal = goal
    origin = goal.term(grid.origin, grid.origin, 1, np.inf)
    model.objective = pyo.Objective(expr=origin + float(grid.unit) * model.largest)


def _paid(columns: StartColumns, goal: Objective) -> Ints:
    """What the job of every column pays by it, in slots, of a maximum."""
    return largest(goal, columns.end, columns.grid.release[columns.job[columns.block]])


def end(model: Any, j: int) -> Any:
    """C_j in seconds, an expression in ``model.start``; (1) makes it the end of the start that is taken."""
    columns: StartColumns = model.columns
    own = slice(columns.job_offset[j], columns.job_offset[j + 1])
    if not isinstance(model.start, pyo.Var):
        return columns.grid.seconds(columns.end[own]) @ model.start[own]
    return LinearExpression(terms(columns.grid.seconds(columns.end[own]), list(model.start.values())[own]))


def chosen(model: Any) -> tuple[Ints, Floats]:
    """(the block of every job i64[n], its start in seconds f64[n]) in the values loaded in ``model.start``."""
    columns: StartColumns = model.columns
    if isinstance(model.start, pyo.Var):
        value = np.array([v.value or 0.0 for v in model.start.values()])
    else:  # CVXPY's vector
        value = np.zeros(columns.slot.size) if model.start.value is None else model.start.value
    column = np.flatnonzero(value > 0.5)
    block = columns.block[column]
    if not np.array_equal(columns.job[block], np.arange(columns.grid.release.size)):
        raise InputError("no integer solution is in the model that starts every job once: solve it, not relaxed, first")
    return block, columns.grid.seconds(columns.slot[column])


def choose(model: Any, block: Ints, slot: Ints) -> None:
    """Put the schedule that starts job j in ``block[j]`` at ``slot[j]`` on all variables of the model."""
    columns: StartColumns = model.columns
    column = columns.column_of(block, slot)
    if np.any(column < 0):
        job = int(np.flatnonzero(column < 0)[0])
        raise InputError(f"job {job} (0-based) completes after the horizon that the model was built with")
    value = np.zeros(columns.slot.size)
    value[column] = 1.0
    if isinstance(model.start, pyo.Var):
        for variable, x in zip(model.start.values(), value.tolist(), strict=True):
            variable.set_value(x, skip_validation=True)
    else:
        model.start.value = value
    if getattr(model, "largest", None) is not None:
        model.largest.value = int(_paid(columns, model.goal)[column].max())
