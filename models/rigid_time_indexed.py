"""Time-indexed formulation of P | r_j, size_j | f: rigid gangs on G GPUs, counted but not placed.

Sets: jobs j = 1..n; slots t of ``unit`` seconds (the gcd of all times, `time_grid`); starts t = r_j..l_j (`latest_starts`).
Data: g_j GPUs of the gang, held from start to end; r_j release, p_j duration (slots); w_j weight; d_j due date (seconds);
G GPUs of the whole cluster (a gang may span nodes).
Variables: start[j, t] = 1 if j starts at slot t, for r_j <= t <= l_j.

    min  sum_{j,t} cost(j, t) start[j, t]                                                        (0)
    s.t. sum_t start[j, t] = 1                                    every job j                     (1)  once
         sum_j sum_{t - p_j < s <= t} g_j start[j, s] <= G        every crowded slot t            (2)  capacity

(0) as in `time_indexed`: what j pays when it completes at t + p_j, less what it pays in any case (a constant); for the
makespan min M with sum_t (t + p_j) start[j, t] <= M (``finish``) and M at least the volume bound. A slot is crowded
if the jobs that can be in process hold more than G GPUs together; rows of the others are redundant and left out.

Optimum: exact for ``gang-nonpreemptive`` and any regular objective where every job may use every node: a gang may
take any free GPUs, so counts are all there is. The LP relaxation bounds the same class from below; it is not a bound
for preemptive schedules. Its dual (4.1 of the A-SRPT sheet) is max sum_j mu_j - G sum_t pi_t subject to
mu_j <= cost(j, t) + g_j sum_{t <= q < t + p_j} pi_q.
Size, H = latest completion: columns about n H, rows n + H, nonzeros about sum_j H (p_j + 1).
Reference: Pritsker, Watters and Wolfe, Multiproject scheduling with limited resources, Management Sci. 16 (1969), 93-108.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from optsched.errors import InputError
from optsched.models.fast_building import collector_paused, terms
from optsched.models.formulation import FORMULATIONS, REGULAR, Formulation, objective_reason, require, size_reason
from optsched.models.latest_starts import latest_starts
from optsched.models.left_shift import left_shift, starts_of
from optsched.models.start_columns import StartColumns, least_makespan, start_windows
from optsched.models.start_model import choose, chosen, minimise
from optsched.models.time_grid import time_grid
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import fixed_durations

NAME = "rigid-time-indexed"
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def applies(instance: Instance, objective: str) -> str | None:
    """None, or why not: GPU types or memory, times without a common unit, too large."""
    reason = objective_reason(instance, objective, REGULAR)
    if reason is not None:
        return reason
    if not instance.unrestricted:
        return "not every job may use every node: take rigid-placed"
    try:
        return size_reason(size(instance, objective))
    except InputError as error:
        return str(error)


def size(instance: Instance, objective: str) -> int:
    """Nonzeros: every start stands in (1) and in p_j rows of (2), and for the makespan in its row."""
    grid = time_grid(instance)
    last = latest_starts(grid.release, grid.duration, instance.gpus, count_blocked(instance))
    rows = grid.duration + (2 if objective == "makespan" else 1)
    return int(np.sum((last - grid.release + 1).astype(np.float64) * rows))


def count_blocked(instance: Instance) -> Ints:
    """Least number of busy GPUs beside which a job does not fit, i64[n]: G - g_j + 1."""
    return instance.cluster.gpus - instance.gpus + 1


def count_columns(instance: Instance, objective: str, horizon: float | Floats | None) -> StartColumns:
    """One block of starts a job: r_j to the latest start that is provably needed."""
    grid, gpus, total = time_grid(instance), instance.gpus, np.array([instance.cluster.gpus])
    last = start_windows(instance, objective, grid, gpus[:, None], total, count_blocked(instance), horizon)
    return StartColumns(grid, np.arange(instance.n), grid.release, last)


@collector_paused
def build(
    instance: Instance, objective: str, *, horizon: float | Floats | None = None, relax: bool = False
) -> pyo.ConcreteModel:
    """The model; ``model.start[j, t]``, and ``model.columns`` says what the columns mean."""
    require(applies(instance, objective), NAME)
    columns = count_columns(instance, objective, horizon)
    gpus, total = instance.gpus, instance.cluster.gpus

    model = pyo.ConcreteModel(NAME)
    model.columns = columns
    model.start = pyo.Var(columns.keys(), domain=pyo.NonNegativeReals if relax else pyo.Binary)
    start = list(model.start.values())
    held = terms(gpus[columns.block], start)  # g_j start[j, t]
    jobs, slots = range(instance.n), columns.crowded(gpus, total)

    # (0)
    minimise(model, columns, instance, objective, start=start, least=least_makespan(columns.grid, gpus, total))
    # (1)
    model.once = pyo.Constraint(jobs, expr={j: LinearExpression(columns.of_job(start, j)) == 1 for j in jobs})
    # (2)
    model.capacity = pyo.Constraint(
        slots, expr={t: LinearExpression(columns.in_process(held, t)) <= total for t in slots}
    )
    return model


def schedule(model: Any, instance: Instance) -> Schedule:
    """The schedule of an integer solution."""
    columns: StartColumns = model.columns
    slot = columns.slot[chosen(model, columns)]
    return Schedule.from_starts(
        instance, columns.grid.seconds(slot), duration=fixed_durations(instance), policy=model.name
    )


def warm_start(model: Any, given: Schedule) -> None:
    """Put a non-preemptive schedule, moved to the left, on all variables."""
    grid, gpus = model.columns.grid, given.instance.gpus
    total = np.array([given.instance.cluster.gpus])
    slot = left_shift(grid.slots(starts_of(given)), grid.release, grid.duration, gpus[:, None], total)
    choose(model, model.columns, np.arange(slot.size), slot)


FORMULATIONS.register(NAME)(
    Formulation(
        name=NAME,
        graham="P | r_j, size_j | f, f regular",
        objectives=REGULAR,
        schedule_class="gang-nonpreemptive",
        exact=True,
        applies=applies,
        build=build,
        size=size,
        schedule=schedule,
        warm_start=warm_start,
    )
)
