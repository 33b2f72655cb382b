"""Hadar's dual: prices of devices and payoffs of jobs.

Sets: jobs j; schedules s in S_j; resources q (a device type of a machine in a round).
Data: u_js >= 0 utility; w_q^js devices of q that s holds; c_q devices of q there are (`Packing`).
Variables: price[q] = k_q >= 0 of one device of q; payoff[j] = mu_j >= 0, what is left of j's best utility after paying.

    min  sum_j payoff[j] + sum_q c_q price[q]                                                     (0)
    s.t. payoff[j] + sum_q w_q^js price[q] >= u_js                every schedule s of every job j (1)  gain

Optimum: equal to that of the LP `hadar_primal` (strong duality), so an upper bound on the utility of every choice of
schedules; **any** feasible solution is one, which is how the online algorithm's prices prove its ratio.
Size, S schedules: columns Q + n, rows S, nonzeros those of the demands and S.
Reference: Sultana et al., Hadar, IPDPS 2024, arXiv 2503.10918; Bao, Peng, Wu and Li (OASiS), INFOCOM 2018, arXiv 1801.00936.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression, MonomialTermExpression

from optsched.models.fast_building import collector_paused
from optsched.models.hadar_rounds import Packing
from optsched.models.program import add_program, packing_names, packing_of
from optsched.problem.arrays import Floats

NAME = "hadar-dual"


@collector_paused
def build(packing: Packing) -> pyo.ConcreteModel:
    """Return the Pyomo model: ``model.price[q]``, ``model.payoff[j]``, ``model.gain[j, s]``.

    Parameters
    ----------
    packing
        Capacities and schedules.

    Raises
    ------
    InputError
        If no job has a schedule.
    """
    packing.require_schedules()
    model = pyo.ConcreteModel(NAME)
    model.price = pyo.Var(range(packing.resources), domain=pyo.NonNegativeReals)
    model.payoff = pyo.Var(range(packing.jobs), domain=pyo.NonNegativeReals)
    price, payoff = list(model.price.values()), list(model.payoff.values())

    # (0)
    paid = [1.0] * packing.jobs + [float(c) for c in packing.capacity]
    model.objective = pyo.Objective(
        expr=LinearExpression(constant=0.0, linear_coefs=paid, linear_vars=[*payoff, *price])
    )
    # (1)
    rows = {}
    for j, of_job in enumerate(packing.schedules):
        for s, one in enumerate(of_job):
            bill = [MonomialTermExpression((float(w), price[q])) for q, w in one.demand]
            rows[j, s] = LinearExpression([payoff[j], *bill]) >= one.utility
    model.gain = pyo.Constraint(list(rows), expr=rows)
    return model


def prices(model: pyo.ConcreteModel) -> Floats:
    """Return the prices k of a solved model, f64[Q]; a price that is in no row of (1) costs and is 0.

    Parameters
    ----------
    model
        A solved model of `build`.
    """
    return _values(model.price)


def _values(variables: pyo.Var) -> Floats:
    return np.array([variable.value or 0.0 for variable in variables.values()], dtype=np.float64)


add_program(
    NAME,
    "min sum_q c_q k_q + sum_j mu_j: prices of devices and payoffs of jobs",
    "what all devices and jobs are worth: the optimum of hadar-primal",
    "gang, in rounds",
    packing_of,
    lambda data: build(data.packing),
    lambda model, data, instance: packing_names(data, instance, prices(model), _values(model.payoff)),
    "hadar-primal",
)
