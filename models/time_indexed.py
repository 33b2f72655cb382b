"""Time-indexed formulation of P | r_j | f: jobs of one GPU on m identical machines.

Sets: jobs j = 1..n; slots t of ``unit`` seconds (the gcd of all times, `time_grid`); starts t = r_j..l_j (`latest_starts`).
Data: r_j release, p_j duration (slots); w_j weight; d_j due date (seconds); m machines.
Variables: start[j, t] = 1 if j starts at slot t, for r_j <= t <= l_j; largest, of a maximum.

    min  sum_{j,t} cost(j, t) start[j, t]                                                        (0)
    s.t. sum_t start[j, t] = 1                                    every job j                     (1)  once
         sum_j sum_{t - p_j < s <= t} start[j, s] <= m            every crowded slot t            (2)  capacity
         sum_t (t + p_j) start[j, t] <= largest                   every job j, of a maximum       (3)  finish

`start_model` builds these rows. It also defines (0), for a maximum too, and crowded slots.

Optimum: exact for ``gang-nonpreemptive`` and any regular objective. The LP relaxation (0 <= start) bounds the same class
from below, and is nearly tight for unit-size jobs; it is **not** a bound for preemptive schedules.
(2) is enough because an interval graph with at most m intervals at any time can be coloured with m machines.
Size, H = latest completion: columns about n H, rows n + H, nonzeros about sum_j H (p_j + 1).
Reference: Dyer and Wolsey, Formulating the single machine sequencing problem with release dates as a mixed integer
program, Discrete Appl. Math. 26 (1990), 255-270; Sousa and Wolsey, Math. Program. 54 (1992), 353-367.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo

from optsched.models import rigid_time_indexed as counted
from optsched.models.formulation import FORMULATIONS, require
from optsched.models.start_model import start_model
from optsched.problem.instance import Instance

NAME = "time-indexed"


def applies(instance: Instance, objective: str) -> str | None:
    """Return why the formulation does not apply, or None: gangs, GPU types or memory, no common unit of times, too large.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    if instance.n and instance.gpus.max() > 1:
        wide = int(np.argmax(instance.gpus))
        return f"job {instance.ids[wide]!r} needs {instance.gpus[wide]} GPUs instead of one: use rigid-time-indexed"
    return counted.applies(instance, objective)


def build(instance: Instance, objective: str, **limits: Any) -> pyo.ConcreteModel:
    """Build the model; ``model.columns`` describes the columns ``model.start[j, t]``.

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
    return start_model(NAME, instance, objective, counted.blocks(instance), **limits)[0]


FORMULATIONS.register(NAME)(
    replace(counted.FORMULATION, name=NAME, graham="P | r_j | f, f regular", applies=applies, build=build)
)
