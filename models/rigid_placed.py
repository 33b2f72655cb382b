"""Multi-mode time-indexed formulation of rigid gangs on named nodes: P | r_j, size_j, nodes | f.

Sets: jobs j = 1..n; modes q of a job (`placement_modes`: GPU counts a node, only nodes whose type and memory suit it);
nodes v; slots t of ``unit`` seconds (the gcd of all times); starts t = r_j..l_j (`latest_starts`).
Data: u_qv GPUs of mode q on node v; c_v GPUs of node v; r_j release, p_j duration (slots), the same in every mode; w_j, d_j.
Variables: start[b, t] = 1 if block b = (j, q) starts at slot t: job j in mode q. ``model.mode[b]`` is its mode.

    min  sum_{b,t} cost(j, t) start[b, t]                                                        (0)
    s.t. sum_{b of j, t} start[b, t] = 1                             every job j                 (1)  once
         sum_b sum_{t - p_j < s <= t} u_bv start[b, s] <= c_v        every node v, crowded t     (2)  capacity

(0) as in `time_indexed`. Placement ``any`` allows every split, ``consolidated`` one node, or whole nodes and a remainder.

Optimum: exact for any regular objective. With ``any`` it holds for ``gang-nonpreemptive``, and where every job may
use every node it equals that of `rigid_time_indexed`, which is much smaller. With ``consolidated`` it holds only for
schedules placed that way, a smaller class: such an optimum is **not** a bound for other schedules.
Size, H = latest completion, Q modes a job: columns about n Q H, rows n + N H, nonzeros about sum_j Q H (p_j |q| + 1).
Reference: Talbot, Resource-constrained project scheduling with time-resource tradeoffs, Management Sci. 28 (1982),
1197-1210; 4.2 of the A-SRPT sheet.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
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
from optsched.models.placement_modes import Mode, modes_of_classes
from optsched.models.start_columns import StartColumns, least_makespan, start_windows
from optsched.models.start_model import choose, chosen, minimise
from optsched.models.time_grid import time_grid
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import fixed_durations

NAME = "rigid-placed"
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NodeBlocks:
    """(job, mode) pairs: job i64[B], the mode itself, GPUs held of every node i64[B, N], first block of a job i64[n + 1]."""

    job: Ints
    mode: list[Mode]
    held: Ints
    offset: Ints

    @classmethod
    def of(cls, instance: Instance, placement: str) -> NodeBlocks:
        """The blocks of an instance; `InputError` when the modes explode."""
        modes = modes_of_classes(instance, placement)
        own = [modes[k] for k in instance.job_class.tolist()]
        count = [len(modes_of_job) for modes_of_job in own]
        mode = [q for modes_of_job in own for q in modes_of_job]
        held = np.zeros((len(mode), instance.cluster.node_count), dtype=np.int64)
        for b, q in enumerate(mode):
            for node, gpus in q:
                held[b, node] = gpus
        return cls(np.repeat(np.arange(instance.n), count), mode, held, np.cumsum([0, *count]))

    def least_blocked(self, capacity: Ints) -> Ints:
        """Least number of busy GPUs beside which some mode of a job does not fit, i64[n]."""
        free = np.where(self.held > 0, capacity - self.held + 1, np.iinfo(np.int64).max)
        return np.minimum.reduceat(free.min(axis=1), self.offset[:-1])


def applies(instance: Instance, objective: str) -> str | None:
    """None, or why not: too many placements, times without a common unit, too large."""
    reason = objective_reason(instance, objective, REGULAR)
    if reason is not None:
        return reason
    try:
        return size_reason(size(instance, objective))
    except InputError as error:
        return str(error)


def size(instance: Instance, objective: str, *, placement: str = "any") -> int:
    """Nonzeros: every start of a mode stands in (1), in p_j rows of (2) a node it uses, and for the makespan in one more."""
    grid, blocks = time_grid(instance), NodeBlocks.of(instance, placement)
    blocked = blocks.least_blocked(instance.cluster.node_gpus)
    last = latest_starts(grid.release, grid.duration, instance.gpus, blocked)
    starts = (last - grid.release + 1).astype(np.float64)[blocks.job]
    rows = grid.duration[blocks.job] * np.count_nonzero(blocks.held, axis=1) + (2 if objective == "makespan" else 1)
    return int(np.sum(starts * rows))


@collector_paused
def build(
    instance: Instance,
    objective: str,
    *,
    horizon: float | Floats | None = None,
    relax: bool = False,
    placement: str = "any",
) -> pyo.ConcreteModel:
    """The model; ``model.start[b, t]``, ``model.columns`` and ``model.mode`` say what the columns mean."""
    require(objective_reason(instance, objective, REGULAR), NAME)
    require(size_reason(size(instance, objective, placement=placement)), NAME)
    grid, blocks, nodes = time_grid(instance), NodeBlocks.of(instance, placement), instance.cluster.node_gpus
    # any feasible choice of modes serves for the list schedule behind the horizon: take turns
    turn = blocks.offset[:-1] + np.arange(instance.n) % np.diff(blocks.offset)
    last = start_windows(instance, objective, grid, blocks.held[turn], nodes, blocks.least_blocked(nodes), horizon)
    columns = StartColumns(grid, blocks.job, grid.release[blocks.job], last[blocks.job])

    model = pyo.ConcreteModel(NAME)
    model.columns, model.mode, model.blocks = columns, blocks.mode, blocks
    model.start = pyo.Var(columns.keys(), domain=pyo.NonNegativeReals if relax else pyo.Binary)
    start = list(model.start.values())
    jobs = range(instance.n)

    # (0)
    least = least_makespan(grid, instance.gpus, instance.cluster.gpus)
    minimise(model, columns, instance, objective, start=start, least=least)
    # (1)
    model.once = pyo.Constraint(jobs, expr={j: LinearExpression(columns.of_job(start, j)) == 1 for j in jobs})
    # (2)
    rows = {}
    for v, capacity in enumerate(nodes.tolist()):
        users, held = np.flatnonzero(blocks.held[:, v]), terms(blocks.held[columns.block, v], start)
        for t in columns.crowded(blocks.held[:, v], capacity):
            rows[v, t] = LinearExpression(columns.in_process(held, t, users)) <= capacity
    model.capacity = pyo.Constraint(list(rows), expr=rows)
    return model


def schedule(model: Any, instance: Instance) -> Schedule:
    """The schedule of an integer solution, on the nodes it chose."""
    columns: StartColumns = model.columns
    column = chosen(model, columns)
    counts = {j: model.mode[b] for j, b in enumerate(columns.block[column].tolist())}
    starts, duration = columns.grid.seconds(columns.slot[column]), fixed_durations(instance)
    return Schedule.from_starts(instance, starts, node_counts=counts, duration=duration, policy=NAME)


def warm_start(model: Any, given: Schedule) -> None:
    """Put a non-preemptive schedule, moved to the left on its own nodes, on all variables."""
    columns: StartColumns = model.columns
    blocks: NodeBlocks = model.blocks
    grid, starts = columns.grid, starts_of(given)
    block = np.empty(starts.size, dtype=np.int64)
    for s, j in enumerate(given.job.tolist()):
        used = given.gpu_node[given.gpu_offset[s] : given.gpu_offset[s + 1]].tolist()
        mode = tuple(sorted(Counter(used).items()))
        own = blocks.mode[blocks.offset[j] : blocks.offset[j + 1]]
        if mode not in own:
            raise InputError(
                f"job {given.instance.ids[j]!r} is placed in a way that the model does not have", value=mode
            )
        block[j] = blocks.offset[j] + own.index(mode)
    capacity = given.instance.cluster.node_gpus
    slot = left_shift(grid.slots(starts), grid.release, grid.duration, blocks.held[block], capacity)
    choose(model, columns, block, slot)


FORMULATIONS.register(NAME)(
    Formulation(
        name=NAME,
        graham="P | r_j, size_j, nodes | f, f regular",
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
