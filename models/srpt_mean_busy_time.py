"""Mean-busy-time LP of A-SRPT's single machine, in Pyomo and in CVXPY: 1 | r_j, pmtn | sum w_j (M_j + p_j / 2).

Sets: jobs j; slots t of ``unit`` seconds, r_j <= t < e_j (`srpt_relaxation`).
Data: p_j = g_j d_j / G in slots; w_j weight (1 in unweighted objectives).
Variables: work[j, t] >= 0, slots of work done on j in slot t.

    min  sum_j w_j (M_j + p_j / 2),   M_j = sum_t (t + 1/2) work[j, t] / p_j                     (0)
    s.t. sum_t work[j, t] = p_j                                   every job j                    (1)  done
         sum_j work[j, t] <= 1                                    every slot t                   (2)  share

Optimum: M_j is the mean moment at which the machine works on j, and C_j >= M_j + p_j / 2 because it works on j at
speed at most 1. The optimum is the value of sum w_j (M_j + p_j / 2) in the preemptive schedule that serves the released
job with the largest w_j / p_j (smallest p_j when unweighted), where p_j is the whole job and not its remaining work. Hence
it is never above the optimum of 1 | r_j, pmtn | sum w_j C_j, which SRPT attains when unweighted; on (r, p) = (0, 3), (1, 1)
it is 17/3 < 6.
A relaxation: only a bound, for the class ``gang`` and so for every smaller one. It is an LP: ``relax`` changes nothing.
Whole slots are enough because the preemptive schedule changes jobs only at slot boundaries.
Size, L = mean length of a busy period in slots: columns at most n L, rows n + slots, nonzeros 2 a column.
Reference: Goemans, Queyranne, Schulz, Skutella and Wang, Single machine scheduling with release dates, SIAM J. Discrete
Math. 15 (2002), 165-192.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.core.expr import LinearExpression

from optsched.models.fast_building import collector_paused
from optsched.models.formulation import WEIGHTED_COMPLETION, add_formulation, require
from optsched.models.srpt_relaxation import SETS, UnitMachine, applies, size, slot_model
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance

PYOMO, CVXPY = "srpt-mean-busy-time", "srpt-mean-busy-time-cvxpy"


@collector_paused
def build(
    instance: Instance, objective: str, *, horizon: float | Floats | None = None, relax: bool = False, cut: bool = True
) -> pyo.ConcreteModel:
    """Build the Pyomo model with ``model.work[j, t]``; slots count from the first arrival.

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
        Unused: the model is an LP.
    cut
        Leave out starts that are provably needless; without it every start that ends by the horizon is kept.

    Raises
    ------
    InputError
        If the formulation does not apply.
    InfeasibleError
        If a job cannot complete by the horizon.
    """
    require(applies(instance, objective), PYOMO)
    machine = UnitMachine.of(instance, objective, horizon, cut)
    # (1), (2)
    model, work = slot_model(PYOMO, machine)
    # (0)
    model.objective = pyo.Objective(
        expr=LinearExpression(constant=machine.half, linear_coefs=machine.cost.tolist(), linear_vars=work)
    )
    return model


def build_cvxpy(
    instance: Instance, objective: str, *, horizon: float | Floats | None = None, relax: bool = False, cut: bool = True
) -> cp.Problem:
    """Build the same LP in CVXPY, with one entry of ``work`` for each column (j, t) and sparse matrices of ones.

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
        Unused: the model is an LP.
    cut
        Leave out starts that are provably needless; without it every start that ends by the horizon is kept.

    Raises
    ------
    InputError
        If the formulation does not apply.
    InfeasibleError
        If a job cannot complete by the horizon.
    """
    require(applies(instance, objective), CVXPY)
    machine = UnitMachine.of(instance, objective, horizon, cut)
    columns = np.arange(machine.job.size)
    ones = np.ones(columns.size)
    of_job = sp.csr_array((ones, (machine.job, columns)), shape=(instance.n, columns.size))
    in_slot = sp.csr_array((ones, (machine.slot, columns)), shape=(int(machine.slot.max()) + 1, columns.size))

    work = cp.Variable(columns.size, nonneg=True, name="work")
    problem = cp.Problem(
        cp.Minimize(machine.cost @ work + machine.half),  # (0)
        [
            (of_job @ work == machine.grid.duration).set_label("done"),  # (1)
            (in_slot @ work <= 1).set_label("share"),  # (2)
        ],
    )
    problem.machine, problem.grid = machine, machine.grid
    return problem


for _name, _build in ((PYOMO, build), (CVXPY, build_cvxpy)):
    add_formulation(
        name=_name,
        graham="1 | r_j, pmtn | sum w_j (M_j + p_j / 2)",
        objectives=WEIGHTED_COMPLETION,
        schedule_class="gang",
        exact=False,
        applies=applies,
        build=_build,
        size=size,
        sets=SETS,
    )
