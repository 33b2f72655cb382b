"""Multi-mode time-indexed formulation of gangs whose speed depends on where they run: the offline problem of A-SRPT.

Problem: P | r_j, size_j, alpha_j(placement) | f. A job of n_j iterations on a placement with iteration time alpha holds its
gang for n_j alpha seconds, without preemption or migration.

Sets: jobs j = 1..n; modes q of a job (`mapped_modes`: GPU counts a node with the fastest mapping of the replicas to them);
nodes v; slots t of ``unit`` seconds (the gcd of all releases and all durations of modes); starts t = r_j..l_q.
Data: u_qv GPUs of mode q on node v; c_v GPUs of node v; r_j release, p_q duration in mode q (slots); w_j, d_j.
Variables: start[b, t] = 1 if block b = (j, q) starts at slot t: job j in mode q. ``model.modes`` says what the blocks are.

    min  sum_{b,t} cost(j, t + p_q) start[b, t]                                                  (0)
    s.t. sum_{b of j, t} start[b, t] = 1                             every job j                 (1)  once
         sum_b sum_{t - p_q < s <= t} u_bv start[b, s] <= c_v        every node v, crowded t     (2)  capacity

(0) as in `time_indexed`, less what j pays in its fastest mode from its release. Latest starts: fix the modes of an optimal
schedule; what `latest_starts` proves then holds for it, and the bound grows with the durations and falls with the GPUs
that block a job, so the longest duration and the least blocked of all modes serve for every choice of modes.

Optimum: exact for ``gang-nonpreemptive`` and any regular objective: a schedule uses some mode of every job, the best mapping
of its vector is no slower, and its times can be moved to the grid (`time_grid`, with the durations of its modes).
Size, H = latest completion, Q modes a job: columns about n Q H, rows n + N H, nonzeros about sum_{j,q} H (p_q |q| + 1).
Reference: Talbot, Resource-constrained project scheduling with time-resource tradeoffs, Management Sci. 28 (1982),
1197-1210; 4.2 of the A-SRPT sheet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from optsched.errors import InfeasibleError, InputError
from optsched.models.fast_building import collector_paused, terms
from optsched.models.formulation import FORMULATIONS, REGULAR, Formulation, objective_reason, require, size_reason
from optsched.models.latest_starts import latest_starts
from optsched.models.left_shift import in_sequence, left_shift, starts_of
from optsched.models.mapped_modes import MappedModes
from optsched.models.start_columns import StartColumns, least_makespan
from optsched.models.start_model import choose, chosen, minimise
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule

NAME = "gang-modes"
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def applies(instance: Instance, objective: str) -> str | None:
    """None, or why not: too many modes, durations without a common unit, too large."""
    reason = objective_reason(instance, objective, REGULAR)
    if reason is not None:
        return reason
    try:
        return size_reason(size(instance, objective))
    except InputError as error:
        return str(error)


def size(instance: Instance, objective: str) -> int:
    """Nonzeros: every start of a mode stands in (1), in p_q rows of (2) a node it uses, and for the makespan in one more."""
    modes = MappedModes.of(instance)
    grid, slots = modes.grid(instance)
    starts = (_latest(instance, modes, slots, grid.release) - grid.release + 1).astype(np.float64)[modes.job]
    rows = slots * np.count_nonzero(modes.held, axis=1) + (2 if objective == "makespan" else 1)
    return int(np.sum(starts * rows))


def _latest(instance: Instance, modes: MappedModes, slots: Ints, release: Ints) -> Ints:
    longest = np.maximum.reduceat(slots, modes.offset[:-1])
    return latest_starts(release, longest, instance.gpus, modes.least_blocked(instance.cluster.node_gpus))


def mode_columns(
    instance: Instance, objective: str, horizon: float | Floats | None
) -> tuple[StartColumns, MappedModes]:
    """The columns, a block a mode, and the modes; those that end too late in any case are left out.

    Raises `InfeasibleError` when a job cannot complete by the horizon in any mode.
    """
    modes = MappedModes.of(instance)
    grid, slots = modes.grid(instance)
    latest_end = _latest(instance, modes, slots, grid.release)[modes.job] + slots
    if get_objective(objective).maximum:
        # no optimal schedule is longer than a list schedule in any choice of modes: every job in its fastest
        fast = np.array([b + int(np.argmin(slots[b:e])) for b, e in zip(modes.offset, modes.offset[1:], strict=False)])
        order = np.lexsort((-slots[fast], grid.release))
        start = in_sequence(order, grid.release, slots[fast], modes.held[fast], instance.cluster.node_gpus)
        latest_end = np.minimum(latest_end, int((start + slots[fast]).max()))
    if horizon is not None:
        allowed = np.broadcast_to(np.asarray(horizon, dtype=np.float64), instance.n)[modes.job]
        limited = np.isfinite(allowed)
        latest_end = np.where(limited, np.minimum(latest_end, grid.slots(np.where(limited, allowed, 0.0))), latest_end)
    last = latest_end - slots
    kept = np.flatnonzero(last >= grid.release[modes.job])
    lost = np.setdiff1d(np.arange(instance.n), modes.job[kept])
    if lost.size:
        raise InfeasibleError(f"job {instance.ids[lost[0]]!r} cannot complete by the horizon")
    left = modes.only(kept)
    return StartColumns(grid, left.job, grid.release[left.job], last[kept], slots[kept]), left


@collector_paused
def build(
    instance: Instance, objective: str, *, horizon: float | Floats | None = None, relax: bool = False
) -> pyo.ConcreteModel:
    """The model; ``model.start[b, t]``, ``model.columns`` and ``model.modes`` say what the columns mean."""
    require(applies(instance, objective), NAME)
    columns, modes = mode_columns(instance, objective, horizon)
    nodes = instance.cluster.node_gpus

    model = pyo.ConcreteModel(NAME)
    model.columns, model.modes = columns, modes
    model.start = pyo.Var(columns.keys(), domain=pyo.NonNegativeReals if relax else pyo.Binary)
    start = list(model.start.values())
    jobs = range(instance.n)

    # (0)
    least = least_makespan(columns.grid, instance.gpus, instance.cluster.gpus)
    minimise(model, columns, instance, objective, start=start, least=least)
    # (1)
    model.once = pyo.Constraint(jobs, expr={j: LinearExpression(columns.of_job(start, j)) == 1 for j in jobs})
    # (2)
    rows = {}
    for v, capacity in enumerate(nodes.tolist()):
        users, held = np.flatnonzero(modes.held[:, v]), terms(modes.held[columns.block, v], start)
        for t in columns.crowded(modes.held[:, v], capacity):
            rows[v, t] = LinearExpression(columns.in_process(held, t, users)) <= capacity
    model.capacity = pyo.Constraint(list(rows), expr=rows)
    return model


def schedule(model: Any, instance: Instance) -> Schedule:
    """The schedule of an integer solution, its GPUs in the order of the replicas."""
    columns: StartColumns = model.columns
    column = chosen(model, columns)
    return model.modes.schedule(instance, columns.block[column], columns.grid.seconds(columns.slot[column]), NAME)


def warm_start(model: Any, given: Schedule) -> None:
    """Put a non-preemptive schedule, moved to the left on its own nodes, on all variables."""
    columns: StartColumns = model.columns
    modes: MappedModes = model.modes
    grid, starts, nodes = columns.grid, starts_of(given), given.instance.cluster.node_gpus
    block = np.empty(starts.size, dtype=np.int64)
    for s, j in enumerate(given.job.tolist()):
        used = given.gpu_node[given.gpu_offset[s] : given.gpu_offset[s + 1]]
        block[j] = modes.find(j, np.bincount(used, minlength=nodes.size))
        if block[j] < 0:
            raise InputError(
                f"job {given.instance.ids[j]!r} is placed in a way that the model does not have", value=used.tolist()
            )
    slot = left_shift(grid.slots(starts), grid.release, columns.duration[block], modes.held[block], nodes)
    choose(model, columns, block, slot)


FORMULATIONS.register(NAME)(
    Formulation(
        name=NAME,
        graham="P | r_j, size_j, alpha_j(placement) | f, f regular",
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
