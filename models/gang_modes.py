"""Multi-mode time-indexed formulation of gangs whose speed depends on where they run: the offline problem of A-SRPT.

Problem: P | r_j, size_j, alpha_j(placement) | f. A job of n_j iterations on a placement with iteration time alpha holds its
gang for n_j alpha seconds, without preemption or migration.

Sets: jobs j = 1..n; modes q of a job (`mapped_modes`: GPU counts a node with the fastest mapping of the replicas to them);
nodes v; slots t of ``unit`` seconds (the gcd of all releases and all durations of modes); starts t = r_j..l_q.
Data: u_qv GPUs of mode q on node v; c_v GPUs of node v; r_j release, p_q duration in mode q (slots); w_j, d_j.
Variables: start[b, t] = 1 if block b = (j, q) starts at slot t: job j in mode q. ``model.modes`` describes the blocks.

    min  sum_{b,t} cost(j, t + p_q) start[b, t]                                                  (0)
    s.t. sum_{b of j, t} start[b, t] = 1                             every job j                 (1)  once
         sum_b sum_{t - p_q < s <= t} u_bv start[b, s] <= c_v        every node v, crowded t     (2)  capacity
         sum_{b of j, t} (t + p_q) start[b, t] <= largest            every job j, of a maximum   (3)  finish

`start_model` builds these rows. Latest starts: fix the modes of an optimal schedule; the proof in `latest_starts` then
holds for it. The bound grows with the durations and falls with the number of GPUs that block a job. So the longest
duration and the least blocking number of all modes are valid for every choice of modes.

Optimum: exact for ``gang-nonpreemptive`` and any regular objective: a schedule uses some mode of every job, the best mapping
of its vector is no slower, and its times can be moved to the grid (`time_grid`, with the durations of its modes).
Size, H = latest completion, Q modes a job: columns about n Q H, rows n + N H, nonzeros about sum_{j,q} H (p_q |q| + 1).
Reference: Talbot, Resource-constrained project scheduling with time-resource tradeoffs, Management Sci. 28 (1982),
1197-1210.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from optsched.errors import InputError
from optsched.models.formulation import REGULAR, add_formulation, inapplicable, require
from optsched.models.latest_starts import left_shift, starts_of
from optsched.models.mapped_modes import MappedModes
from optsched.models.start_model import StartBlocks, StartColumns, choose, chosen, end, start_model
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule

NAME = "gang-modes"


def applies(instance: Instance, objective: str) -> str | None:
    """Return why the formulation does not apply, or None: too many modes, no common unit of durations, too large.

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

    Every start of a mode is in (1), in p_q rows of (2) for each node that it uses, and for a maximum in one row of (3).

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    """
    return _blocks(instance, MappedModes.of(instance)).size(instance, objective)


def _blocks(instance: Instance, modes: MappedModes) -> StartBlocks:
    """Return one block for each mode, on the nodes."""
    grid, slots = modes.grid(instance)
    return StartBlocks(grid, modes.job, slots, modes.held, instance.cluster.node_gpus)


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
    modes = MappedModes.of(instance)
    model, kept = start_model(NAME, instance, objective, _blocks(instance, modes), **limits)
    model.modes = modes.only(kept)
    return model


def schedule(model: Any, instance: Instance) -> Schedule:
    """Return the schedule of an integer solution, its GPUs in the order of the replicas.

    Parameters
    ----------
    model
        The model, with values loaded.
    instance
        Jobs and cluster.
    """
    modes: MappedModes = model.modes
    return modes.schedule(instance, *chosen(model), model.name)


def warm_start(model: Any, given: Schedule) -> None:
    """Put a non-preemptive schedule on all variables, moved to the left on its own nodes.

    Parameters
    ----------
    model
        The model.
    given
        The schedule.

    Raises
    ------
    InputError
        If a job has a placement that is not among the modes, or completes after the horizon.
    """
    columns: StartColumns = model.columns
    modes: MappedModes = model.modes
    grid, starts, nodes = columns.grid, starts_of(given), given.instance.cluster.node_gpus
    block = np.empty(starts.size, dtype=np.int64)
    for s, j in enumerate(given.job.tolist()):
        used = given.gpu_node[given.gpu_offset[s] : given.gpu_offset[s + 1]]
        block[j] = modes.find(j, np.bincount(used, minlength=nodes.size))
        if block[j] < 0:
            raise InputError(f"the placement of job {given.instance.ids[j]!r} is not in the model", value=used.tolist())
    slot = left_shift(grid.slots(starts), grid.release, columns.duration[block], modes.held[block], nodes)
    choose(model, block, slot)


FORMULATION = add_formulation(
    name=NAME,
    graham="P | r_j, size_j, alpha_j(placement) | f, f regular",
    objectives=REGULAR,
    applies=applies,
    build=build,
    size=size,
    schedule=schedule,
    warm_start=warm_start,
    sets={"once": "j", "capacity": "vt", "finish": "j"},
    end=end,
)
