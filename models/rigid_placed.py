"""Multi-mode time-indexed formulation of rigid gangs on named nodes: P | r_j, size_j, nodes | f.

Sets: jobs j = 1..n; modes q of a job (`mapped_modes`: GPU counts a node, only nodes whose type and memory suit it);
nodes v; slots t of ``unit`` seconds (the gcd of all times); starts t = r_j..l_j (`latest_starts`).
Data: u_qv GPUs of mode q on node v; c_v GPUs of node v; r_j release, p_j duration (slots), the same in every mode; w_j, d_j.
Variables: start[b, t] = 1 if block b = (j, q) starts at slot t: job j in mode q. ``model.modes`` says which.

    min  sum_{b,t} cost(j, t) start[b, t]                                                        (0)
    s.t. sum_{b of j, t} start[b, t] = 1                             every job j                 (1)  once
         sum_b sum_{t - p_j < s <= t} u_bv start[b, s] <= c_v        every node v, crowded t     (2)  capacity
         sum_{b of j, t} (t + p_j) start[b, t] <= largest            every job j, of a maximum   (3)  finish

`start_model` builds these rows.

Optimum: exact for ``gang-nonpreemptive`` and any regular objective. Where every job may use every node it equals that of
`rigid_time_indexed`, which is much smaller.
Size, H = latest completion, Q modes a job: columns about n Q H, rows n + N H, nonzeros about sum_j Q H (p_j |q| + 1).
Reference: Talbot, Resource-constrained project scheduling with time-resource tradeoffs, Management Sci. 28 (1982),
1197-1210.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyomo.environ as pyo

from optsched.models import gang_modes
from optsched.models.formulation import FORMULATIONS, REGULAR, inapplicable, require
from optsched.models.mapped_modes import MappedModes
from optsched.models.start_model import StartBlocks, start_model
from optsched.models.time_grid import time_grid
from optsched.problem.instance import Instance

NAME = "rigid-placed"


def applies(instance: Instance, objective: str) -> str | None:
    """Return why the formulation does not apply, or None: too many placements, no common unit of times, too large.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    return inapplicable(instance, objective, REGULAR, size)


def size(instance: Instance, objective: str) -> int:
    """Estimate the nonzeros.

    Every start of a mode is in (1), in p_j rows of (2) for each node that it uses, and for a maximum in one row of (3).

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    return _blocks(instance, MappedModes.rigid(instance)).size(instance, objective)


def _blocks(instance: Instance, modes: MappedModes) -> StartBlocks:
    """Return one block for each mode, on the nodes; all modes of a job are equally fast."""
    grid = time_grid(instance)
    return StartBlocks(grid, modes.job, grid.duration[modes.job], modes.held, instance.cluster.node_gpus)


def build(instance: Instance, objective: str, **limits: Any) -> pyo.ConcreteModel:
    """Build the model; ``model.columns`` and ``model.modes`` describe the columns ``model.start[b, t]``.

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
    modes = MappedModes.rigid(instance)
    model, kept = start_model(NAME, instance, objective, _blocks(instance, modes), **limits)
    model.modes = modes.only(kept)
    return model


schedule, warm_start = gang_modes.schedule, gang_modes.warm_start

FORMULATIONS.register(NAME)(
    replace(
        gang_modes.FORMULATION,
        name=NAME,
        graham="P | r_j, size_j, nodes | f, f regular",
        applies=applies,
        build=build,
        size=size,
    )
)
