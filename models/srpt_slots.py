"""Unit-slot MILP of A-SRPT's single machine with completion indicators: 1 | r_j, pmtn | sum w_j C_j.

Sets: jobs j; slots t of ``unit`` seconds, r_j <= t < e_j (`srpt_relaxation`).
Data: p_j = g_j d_j / G in slots; w_j weight (1 in unweighted objectives).
Variables: work[j, t] in [0, 1], the part of slot t given to j; late[j, t] = 1 if j is not complete at the boundary t,
for r_j + p_j <= t < e_j.

    min  sum_j w_j C_j,   C_j = r_j + p_j + sum_t late[j, t]                                     (0)
    s.t. sum_t work[j, t] = p_j                                   every job j                    (1)  done
         sum_j work[j, t] <= 1                                    every slot t                   (2)  share
         sum_{s >= t} work[j, s] <= min(p_j, e_j - t) late[j, t]  every j, r_j + p_j <= t < e_j  (3)  unfinished

Optimum: exact for 1 | r_j, pmtn | sum w_j C_j (with integer r_j and p_j some optimal schedule preempts only at integers:
the moments of preemption are releases or completions). Unweighted it is therefore SRPT's total completion time. For
gangs it is a relaxation, a bound for the class ``gang``. Use it for small instances: weighted, it is strongly NP-hard.
Size, L = mean length of a busy period in slots: columns at most 2 n L, rows n + slots + n L, nonzeros about n L^2 / 2.
Reference: Schrage, A proof of the optimality of the shortest remaining processing time discipline, Operations Research
16 (1968), 687-690; the formulation is the obvious one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression, MonomialTermExpression

from optsched.models.fast_building import collector_paused, terms
from optsched.models.formulation import WEIGHTED_COMPLETION, add_formulation, inapplicable, require
from optsched.models.srpt_relaxation import SETS, UnitMachine, slot_model
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance

NAME = "srpt-slots"


def applies(instance: Instance, objective: str) -> str | None:
    """Return why the formulation does not apply, or None: no completion times in the objective, no common unit, too large.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    return inapplicable(instance, objective, WEIGHTED_COMPLETION, size)


def size(instance: Instance, objective: str) -> int:
    """Estimate the nonzeros: every slot of work is in (1) and (2), and in a row of (3) for each boundary up to it.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    machine = UnitMachine.of(instance, objective)
    length = (machine.end - machine.grid.release).astype(np.float64)
    slack = length - machine.grid.duration
    return int(np.sum(2 * length + slack * (machine.grid.duration + 1) + slack * (slack + 1) / 2))


@collector_paused
def build(
    instance: Instance, objective: str, *, horizon: float | Floats | None = None, relax: bool = False, cut: bool = True
) -> pyo.ConcreteModel:
    """Build the model with ``model.work[j, t]`` and ``model.late[j, t]``; slots count from the first arrival.

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
    machine = UnitMachine.of(instance, objective, horizon, cut)
    release, duration = machine.grid.release.tolist(), machine.grid.duration.tolist()
    end, offset, jobs = machine.end.tolist(), machine.offset.tolist(), range(instance.n)

    # (1), (2)
    model, work = slot_model(NAME, machine, 1.0)
    boundaries = [(j, t) for j in jobs for t in range(release[j] + duration[j], end[j])]
    model.late = pyo.Var(boundaries, domain=pyo.UnitInterval if relax else pyo.Binary)
    # (0)
    unit = float(machine.grid.unit)
    earliest = float(machine.weight @ (machine.grid.release + machine.grid.duration)) * unit
    weight = (machine.weight * unit).tolist()
    model.objective = pyo.Objective(
        expr=LinearExpression(
            constant=machine.constant + earliest,
            linear_coefs=[weight[j] for j, _ in boundaries],
            linear_vars=list(model.late.values()),
        )
    )
    # (3)
    rows = {}
    for (j, t), late in zip(boundaries, model.late.values(), strict=True):
        after = work[offset[j] + t - release[j] : offset[j + 1]]
        rows[j, t] = LinearExpression([*after, MonomialTermExpression((-min(duration[j], end[j] - t), late))]) <= 0
    model.unfinished = pyo.Constraint(boundaries, expr=rows)
    return model


def end(model: Any, j: int) -> Any:
    """Return C_j in seconds, an expression in ``model.late``.

    Parameters
    ----------
    model
        The model.
    j
        Number of the job.
    """
    grid = model.machine.grid
    first = int(grid.release[j] + grid.duration[j])
    late = [model.late[j, t] for t in range(first, int(model.machine.end[j]))]
    return LinearExpression(
        [grid.origin + first * float(grid.unit), *terms(np.full(len(late), float(grid.unit)), late)]
    )


add_formulation(
    name=NAME,
    graham="1 | r_j, pmtn | sum w_j C_j",
    objectives=WEIGHTED_COMPLETION,
    schedule_class="gang",
    exact=False,
    applies=applies,
    build=build,
    size=size,
    sets=SETS,
    end=end,
)
