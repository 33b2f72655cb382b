"""What start-time models share once their rows stand: the objective, reading a schedule, putting one in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression, MonomialTermExpression

from optsched.errors import InputError
from optsched.models.fast_building import terms
from optsched.models.start_columns import StartColumns
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective

Ints = npt.NDArray[np.int64]


def minimise(
    model: Any, columns: StartColumns, instance: Instance, objective: str, *, start: Sequence[Any], least: int
) -> None:
    """Add the objective; for the makespan also its variable (in slots, at least ``least``) and its rows ``finish``.

    Sum over jobs: ``sum cost(j, t) start[j, t] + constant``. Makespan: ``sum (t + p_j) start[j, t] <= makespan``.
    """
    if not get_objective(objective).maximum:
        cost, constant = columns.costs(instance, objective)
        body = LinearExpression(constant=constant, linear_coefs=cost.tolist(), linear_vars=start)
        model.objective = pyo.Objective(expr=body)
        return
    model.makespan = pyo.Var(bounds=(least, None))
    ends, late = terms(columns.end, start), {}
    for j in np.flatnonzero(_latest_end(columns) > least).tolist():
        late[j] = LinearExpression([*columns.of_job(ends, j), MonomialTermExpression((-1, model.makespan))]) <= 0
    model.finish = pyo.Constraint(list(late), expr=late)
    model.objective = pyo.Objective(expr=columns.grid.origin + float(columns.grid.unit) * model.makespan)


def _latest_end(columns: StartColumns) -> Ints:
    end = np.zeros_like(columns.grid.release)
    np.maximum.at(end, columns.job, columns.last + columns.duration)
    return end


def chosen(model: Any, columns: StartColumns) -> Ints:
    """The column of every job in the values loaded in ``model.start``, i64[n]."""
    value = np.fromiter((v.value or 0.0 for v in model.start.values()), dtype=np.float64, count=columns.slot.size)
    column = np.flatnonzero(value > 0.5)
    job = columns.job[columns.block[column]]
    if not np.array_equal(job, np.arange(columns.grid.release.size)):
        raise InputError("the model holds no integer solution: solve it (not relaxed) first", value=model.name)
    return column


def choose(model: Any, columns: StartColumns, block: Ints, slot: Ints) -> None:
    """Put the schedule that starts job j in ``block[j]`` at ``slot[j]`` on all variables of the model."""
    column = columns.column_of(block, slot)
    if np.any(column < 0):
        job = int(np.flatnonzero(column < 0)[0])
        raise InputError(f"job {job} (0-based) completes after the horizon that the model was built with")
    value = np.zeros(columns.slot.size)
    value[column] = 1.0
    for variable, x in zip(model.start.values(), value.tolist(), strict=True):
        variable.set_value(x, skip_validation=True)
    if model.component("makespan") is not None:
        model.makespan.set_value(int(columns.end[column].max()))
