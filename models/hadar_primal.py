"""Hadar's primal: the schedule-indexed packing program.

Sets: jobs j; schedules s in S_j; resources q (a device type of a machine in a round).
Data: u_js >= 0 utility; w_q^js devices of q that s holds; c_q devices of q there are (`Packing`).
Variables: x[j, s] >= 0, the share in which j runs by s; with ``integer`` 0 or 1.

    max  sum_{j,s} u_js x[j, s]                                                                   (0)
    s.t. sum_{j,s} w_q^js x[j, s] <= c_q                          every resource q that is used   (1)  capacity
         sum_s x[j, s] <= 1                                       every job j with schedules      (2)  once

Optimum: of the LP, an upper bound on the total utility of any choice of one schedule a job, and what online algorithms
are measured by; with ``integer`` that choice's optimum, exact where S_j has all schedules of j that matter. The dual is
`hadar_dual`: the duals of (1) are prices k_q, those of (2) payoffs mu_j.
Size, S schedules: columns S, rows at most Q + n, nonzeros those of the demands and S.
Reference: Sultana et al., Hadar, IPDPS 2024, arXiv 2503.10918; Bao, Peng, Wu and Li (OASiS), INFOCOM 2018, arXiv 1801.00936.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from optsched.models.fast_building import collector_paused, terms
from optsched.models.hadar_rounds import Packing
from optsched.models.program import add_program, packing_names, packing_of
from optsched.problem.arrays import Floats

NAME = "hadar-primal"


@collector_paused
def build(packing: Packing, *, integer: bool = False) -> pyo.ConcreteModel:
    """Return the Pyomo model: ``model.x[j, s]``, ``model.capacity[q]``, ``model.once[j]``, and a suffix ``dual``.

    Parameters
    ----------
    packing
        Capacities and schedules.
    integer
        If true, x is binary.

    Raises
    ------
    InputError
        If no job has a schedule.
    """
    packing.require_schedules()
    model = pyo.ConcreteModel(NAME)
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    keys = [(j, s) for j, of_job in enumerate(packing.schedules) for s in range(len(of_job))]
    model.x = pyo.Var(keys, domain=pyo.Binary if integer else pyo.NonNegativeReals)
    x = list(model.x.values())
    demand, of_job = packing.demand.tocsr(), packing.of_job

    # (0)
    worth = LinearExpression(constant=0.0, linear_coefs=packing.utility.tolist(), linear_vars=x)
    model.objective = pyo.Objective(expr=worth, sense=pyo.maximize)
    # (1)
    used = np.flatnonzero(np.diff(demand.indptr)).tolist()
    held = {q: slice(demand.indptr[q], demand.indptr[q + 1]) for q in used}
    rows = {q: terms(demand.data[part], [x[i] for i in demand.indices[part]]) for q, part in held.items()}
    model.capacity = pyo.Constraint(used, expr={q: LinearExpression(rows[q]) <= packing.capacity[q] for q in used})
    # (2)
    some = np.flatnonzero(np.diff(of_job.indptr)).tolist()
    own = {j: x[of_job.indptr[j] : of_job.indptr[j + 1]] for j in some}
    model.once = pyo.Constraint(some, expr={j: LinearExpression(own[j]) <= 1 for j in some})
    return model


def row_duals(model: pyo.ConcreteModel, packing: Packing) -> tuple[Floats, Floats]:
    """Return prices k, f64[Q], and payoffs mu, f64[n], of a solved LP; 0 for a resource or job without a row.

    Parameters
    ----------
    model
        A solved model of `build`.
    packing
        Its data.
    """
    price, payoff = np.zeros(packing.resources), np.zeros(packing.jobs)
    for array, rows in ((price, model.capacity), (payoff, model.once)):
        for index, row in rows.items():
            array[index] = model.dual[row]
    return price, payoff


SETS = {"x": "j.", "once": "j"}

add_program(
    NAME,
    "R | r_j, size_j, pmtn, rounds | max sum_j u_j(f_j), a choice of schedules in shares",
    "total utility w_j N_j / (f_j - r_j), an upper bound for all schedules in these rounds",
    "gang, in rounds",
    packing_of,
    lambda data: build(data.packing),
    lambda model, data, instance: packing_names(data, instance, *row_duals(model, data.packing)),
    "hadar-dual",
    sets=SETS,
)
add_program(
    "hadar-packing",
    "R | r_j, size_j, pmtn, rounds | max sum_j u_j(f_j), one schedule a job",
    "total utility w_j N_j / (f_j - r_j), the best in these rounds",
    "gang, in rounds",
    packing_of,
    lambda data: build(data.packing, integer=True),
    sets=SETS,
)
