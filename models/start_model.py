"""Start-time model behind every time-indexed formulation, with functions that read and set its schedule.

Sets: blocks b, each a way to run a job (`StartBlocks`): one a job where GPUs are counted, one a mode where they are placed;
starts t of a block; pools v of c_v GPUs: the whole cluster, or the nodes.
Variables: start[b, t] = 1 if the job of block b starts at slot t in that way, for p_b slots on u_bv GPUs of every pool.

    min  sum_{b,t} cost(j, t + p_b) start[b, t]                                                  (0)
    s.t. sum_{b of j, t} start[b, t] = 1                             every job j                 (1)  once
         sum_b sum_{t - p_b < s <= t} u_bv start[b, s] <= c_v        every pool v, crowded t     (2)  capacity

cost(j, t) is what j pays when it completes at t: w_j C_j, w_j (C_j - r_j) or w_j max(C_j - d_j, 0). The cost of j in its
fastest way from its release is a constant outside the sum, which changes nothing because of (1). For the makespan the model
is min M with sum (t + p_b) start[b, t] <= M (``finish``). For the largest flow time t + p_b - r_j replaces t + p_b. M is at
least the value of first come, first served with all GPUs as one machine. A slot is crowded if the jobs that can be in
process hold more than c_v GPUs together; the rows of all other slots are redundant and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression, MonomialTermExpression

from optsched.errors import InfeasibleError, InputError
from optsched.models.fast_building import collector_paused, terms
from optsched.models.formulation import size_reason
from optsched.models.latest_starts import in_sequence, latest_starts
from optsched.models.time_grid import TimeGrid
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import Objective, get_objective

# The columns: (job, [mode,] start slot), and which of them are in process at a slot.
#
# A *block* is a run of columns of one job (in one placement mode) with consecutive start slots ``first..last``; blocks of
# a job are adjacent. Hence the columns of a job, and those of a block in process at a slot, are ranges: a row of a
# model is a few slices of the list of its variables, which is what makes building fast (no Python work per nonzero).

T = TypeVar("T")


@dataclass(frozen=True)
class StartColumns:
    """Blocks i64[B] on a grid: ``job`` (nondecreasing), ``first`` and ``last`` start slot.

    ``own`` i64[B]: slots that the job runs in this block, if they depend on the mode; the grid then has the fewest.
    """

    grid: TimeGrid
    job: Ints
    first: Ints
    last: Ints
    own: Ints | None = None

    @cached_property
    def duration(self) -> Ints:
        """Slots that a block's job runs, i64[B]."""
        return self.grid.duration[self.job] if self.own is None else self.own

    @cached_property
    def offset(self) -> Ints:
        """First column of every block, and the number of columns: i64[B + 1]."""
        return np.concatenate([[0], np.cumsum(self.last - self.first + 1)]).astype(np.int64)

    @cached_property
    def job_offset(self) -> Ints:
        """First column of every job, and the number of columns: i64[n + 1]."""
        return self.offset[np.searchsorted(self.job, np.arange(self.grid.release.size + 1))]

    @cached_property
    def block(self) -> Ints:
        """Block of every column."""
        return np.repeat(np.arange(self.job.size), np.diff(self.offset))

    @cached_property
    def slot(self) -> Ints:
        """Start slot of every column."""
        return np.arange(self.offset[-1]) - self.offset[self.block] + self.first[self.block]

    @cached_property
    def end(self) -> Ints:
        """Slot boundary at which the job of a column completes."""
        return self.slot + self.duration[self.block]

    def of_job(self, items: Sequence[T], j: int) -> Sequence[T]:
        """Return the items of job j.

        Parameters
        ----------
        items
            One item for each column.
        j
            Number of the job.
        """
        return items[self.job_offset[j] : self.job_offset[j + 1]]

    def in_process(self, items: Sequence[T], slot: int, blocks: Ints | None = None) -> list[T]:
        """Return the items of all columns whose job runs during a slot.

        Parameters
        ----------
        items
            One item for each column.
        slot
            The slot.
        blocks
            Blocks that count, i64[k]; None: all.
        """
        begin = np.maximum(self.first, slot - self.duration + 1)
        end = np.minimum(self.last, slot)
        running = np.flatnonzero(begin <= end) if blocks is None else blocks[begin[blocks] <= end[blocks]]
        shift = (self.offset[:-1] - self.first)[running]
        ranges = zip((begin[running] + shift).tolist(), (end[running] + shift + 1).tolist(), strict=True)
        return list(chain.from_iterable(items[a:b] for a, b in ranges))

    def crowded(self, held: Ints, capacity: int) -> list[int]:
        """Return the slots at which jobs could hold more than ``capacity`` GPUs: rows of all other slots are redundant.

        A job counts once, with the block that holds most.

        Parameters
        ----------
        held
            GPUs of one pool that a block holds, i64[B].
        capacity
            GPUs of the pool.
        """
        change = np.zeros(int((self.last + self.duration).max()) + 1, dtype=np.int64)
        most = np.zeros(self.grid.release.size, dtype=np.int64)
        np.maximum.at(most, self.job, held)
        begin, end = np.full_like(most, change.size - 1), np.zeros_like(most)
        np.minimum.at(begin, self.job, self.first)
        np.maximum.at(end, self.job, self.last + self.duration)
        np.add.at(change, begin, most)
        np.add.at(change, end, -most)
        return np.flatnonzero(np.cumsum(change) > capacity).tolist()

    def costs(self, instance: Instance, objective: str) -> tuple[Floats, float]:
        """Return the cost of every column and a constant, for an objective that is a sum over jobs, in its own unit.

        The constant is what the jobs pay if each starts at its release; the cost of a column is what its job pays in
        addition.

        Parameters
        ----------
        instance
            Jobs and cluster.
        objective
            Name of the objective.

        Returns
        -------
        cost
            Cost of every column, f64.
        constant
            The constant.
        """
        goal = get_objective(objective)
        data = (instance.arrival, instance.weight, instance.due)
        least = goal.term(self.grid.seconds(self.grid.release + self.grid.duration), *data)
        job = self.job[self.block]
        paid = goal.term(self.grid.seconds(self.end), *(values[job] for values in data))
        return np.asarray(paid - least[job], dtype=np.float64), float(np.sum(least))

    def column_of(self, block: Ints, slot: Ints) -> Ints:
        """Return the column of each (block, start slot); -1 if there is none.

        Parameters
        ----------
        block
            Blocks, i64[k].
        slot
            Start slots, i64[k].
        """
        inside = (self.first[block] <= slot) & (slot <= self.last[block])
        return np.where(inside, self.offset[block] + slot - self.first[block], -1)


@dataclass(frozen=True)
class StartBlocks:
    """Ways to run the jobs: B blocks, those of a job adjacent.

    Start-time formulations differ in their blocks. ``job`` i64[B]; ``slots`` i64[B] that the job runs; ``held`` i64[B, R]
    GPUs it holds of each of R pools (one pool where GPUs are ``counted``, else the nodes); ``capacity`` i64[R].
    """

    grid: TimeGrid
    job: Ints
    slots: Ints
    held: Ints
    capacity: Ints
    counted: bool = False

    def size(self, instance: Instance, objective: str, latest_end: Ints | None = None) -> int:
        """Estimate the nonzeros.

        A start is in ``once``, in one row for each slot and pool that it uses, and for a maximum in one row more.

        Parameters
        ----------
        instance
            Jobs and cluster.
        objective
            Name of the objective.
        latest_end
            Latest end of every block in slots, i64[B]; None: the proved one.
        """
        latest_end = self._latest_ends(instance) if latest_end is None else latest_end
        windows = latest_end - self.slots - self.grid.release[self.job] + 1
        rows = self.slots * np.count_nonzero(self.held, axis=1) + (2 if get_objective(objective).maximum else 1)
        return int(np.sum(windows.astype(np.float64) * rows))

    def columns(
        self, instance: Instance, objective: str, horizon: float | Floats | None, cut: bool = True
    ) -> tuple[StartColumns, Ints]:
        """Return the starts that are provably enough and end by ``horizon``, and the blocks that have any.

        Parameters
        ----------
        instance
            Jobs and cluster.
        objective
            Name of the objective.
        horizon
            Latest completion allowed, in seconds: one number, or f64[n] with one for each job. None: a horizon that
            provably keeps an optimal schedule.
        cut
            Leave out starts that are provably needless; without it every start that ends by the horizon is kept.

        Returns
        -------
        columns
            The starts.
        kept
            Numbers of the blocks that have a start.

        Raises
        ------
        InfeasibleError
            If a job cannot complete by the horizon in any way.
        InputError
            If there would be too many starts without ``cut``.
        """
        release, latest_end = self.grid.release, self._latest_ends(instance)
        goal = get_objective(objective)
        if not cut:
            one_by_one = release.max() + np.maximum.reduceat(self.slots, self._first).sum()
            latest_end = np.full_like(self.job, one_by_one)
        elif goal.maximum:
            # no optimal schedule is worse than a list schedule, which here uses the fastest ways of every job in turn
            fastest = np.flatnonzero(self.slots == np.minimum.reduceat(self.slots, self._first)[self.job])
            every = np.arange(release.size)
            count = np.bincount(self.job[fastest], minlength=every.size)
            chosen = fastest[np.searchsorted(self.job[fastest], every) + every % count]
            order = np.lexsort((-self.slots[chosen], release))
            start = in_sequence(order, release, self.slots[chosen], self.held[chosen], self.capacity)
            worst = largest(goal, start + self.slots[chosen], release).max()
            latest_end = np.minimum(latest_end, worst - largest(goal, np.zeros_like(release), release)[self.job])
        if horizon is not None:
            allowed = np.broadcast_to(np.asarray(horizon, dtype=np.float64), release.shape)[self.job]
            limited = np.isfinite(allowed)
            ends = self.grid.slots(np.where(limited, allowed, 0.0))
            latest_end = np.where(limited, np.minimum(latest_end, ends) if cut else ends, latest_end)
        reason = None if cut else size_reason(self.size(instance, objective, latest_end))
        if reason is not None:
            raise InputError(reason, field="horizon", value=horizon)
        last = latest_end - self.slots
        kept = np.flatnonzero(last >= release[self.job])
        lost = np.setdiff1d(np.arange(release.size), self.job[kept])
        if lost.size:
            raise InfeasibleError(f"job {instance.ids[lost[0]]!r} cannot complete by the horizon")
        return StartColumns(self.grid, self.job[kept], release[self.job[kept]], last[kept], self.slots[kept]), kept

    @cached_property
    def _first(self) -> Ints:
        return np.searchsorted(self.job, np.arange(self.grid.release.size)).astype(np.int64)

    def _latest_ends(self, instance: Instance) -> Ints:
        # `latest_starts` grows with the durations and falls with the GPUs that block a job: take the longest and the
        # least
        free = np.where(self.held > 0, self.capacity - self.held + 1, np.iinfo(np.int64).max)
        blocked = np.minimum.reduceat(free.min(axis=1), self._first)
        longest = np.maximum.reduceat(self.slots, self._first)
        return latest_starts(self.grid.release, longest, instance.gpus, blocked)[self.job] + self.slots


def largest(goal: Objective, end: Ints, release: Ints) -> Ints:
    """Return what jobs pay for an objective that is a maximum, in slots: their end, or their end minus their release.

    Parameters
    ----------
    goal
        The objective.
    end
        Ends in slots.
    release
        Releases in slots.
    """
    return np.asarray(goal.term(end, release, 1, np.inf))


def least_maximum(goal: Objective, grid: TimeGrid, gpus: Ints, capacity: int) -> int:
    """Return a lower bound on a maximum, in slots, from the released work and from every job alone.

    Parameters
    ----------
    goal
        The objective.
    grid
        Releases and durations in slots.
    gpus
        GPUs of each job, i64[n].
    capacity
        GPUs of the cluster.
    """
    order = np.argsort(grid.release, kind="stable")
    release, work = grid.release[order], (gpus * grid.duration)[order]
    before = np.cumsum(work) - work
    # first come, first served with all GPUs for each job
    busy = before + work + np.maximum.accumulate(release * capacity - before)
    together = largest(goal, -(-busy // capacity), release)
    return int(max(together.max(), largest(goal, grid.release + grid.duration, grid.release).max()))


@collector_paused
def start_model(
    name: str,
    instance: Instance,
    objective: str,
    blocks: StartBlocks,
    *,
    horizon: float | Floats | None = None,
    relax: bool = False,
    cut: bool = True,
) -> tuple[pyo.ConcreteModel, Ints]:
    """Build the model with ``model.start[b, t]`` and ``model.columns``; blocks that have no start are left out.

    Rows of ``capacity`` are indexed by slot where GPUs are counted, else by (node, slot).

    Parameters
    ----------
    name
        Name of the model.
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    blocks
        Ways to run the jobs.
    horizon
        Latest completion allowed, in seconds: one number, or f64[n] with one for each job. None: a horizon that
        provably keeps an optimal schedule.
    relax
        Drop integrality.
    cut
        Leave out starts that are provably needless; without it every start that ends by the horizon is kept.

    Returns
    -------
    model
        The model, with its blocks renumbered from 0.
    kept
        Numbers in ``blocks`` of the model's blocks.
    """
    columns, kept = blocks.columns(instance, objective, horizon, cut)
    held = blocks.held[kept]

    model = pyo.ConcreteModel(name)
    model.columns, model.grid = columns, columns.grid
    keys = list(zip(columns.block.tolist(), columns.slot.tolist(), strict=True))
    model.start = pyo.Var(keys, domain=pyo.NonNegativeReals if relax else pyo.Binary)
    start, jobs = list(model.start.values()), range(instance.n)

    # (0)
    goal, grid = get_objective(objective), columns.grid
    if goal.maximum:  # the variable is in slots
        least = least_maximum(goal, grid, instance.gpus, instance.cluster.gpus)
        model.goal, model.largest = goal, pyo.Var(bounds=(least, None))
        paid, late, end = terms(_paid(columns, goal), start), {}, np.zeros_like(grid.release)
        np.maximum.at(end, columns.job, columns.last + columns.duration)
        for j in np.flatnonzero(largest(goal, end, grid.release) > least).tolist():
            late[j] = LinearExpression([*columns.of_job(paid, j), MonomialTermExpression((-1, model.largest))]) <= 0
        model.finish = pyo.Constraint(list(late), expr=late)
        body = goal.term(grid.origin, grid.origin, 1, np.inf) + float(grid.unit) * model.largest
    else:
        cost, constant = columns.costs(instance, objective)
        body = LinearExpression(constant=constant, linear_coefs=cost.tolist(), linear_vars=start)
    model.objective = pyo.Objective(expr=body)
    # (1)
    model.once = pyo.Constraint(jobs, expr={j: LinearExpression(columns.of_job(start, j)) == 1 for j in jobs})
    # (2)
    rows = {}
    for v, capacity in enumerate(blocks.capacity.tolist()):
        users = np.flatnonzero(held[:, v])
        used = start if (held[users, v] == 1).all() else terms(held[columns.block, v], start)
        for t in columns.crowded(held[:, v], capacity):
            rows[t if blocks.counted else (v, t)] = LinearExpression(columns.in_process(used, t, users)) <= capacity
    model.capacity = pyo.Constraint(list(rows), expr=rows)
    return model, kept


def _paid(columns: StartColumns, goal: Objective) -> Ints:
    """Return what the job of every column pays, in slots, for an objective that is a maximum."""
    return largest(goal, columns.end, columns.grid.release[columns.job[columns.block]])


def end(model: Any, j: int) -> Any:
    """Return C_j in seconds, an expression in ``model.start``; by (1) it is the end of the chosen start.

    Parameters
    ----------
    model
        The model.
    j
        Number of the job.
    """
    columns: StartColumns = model.columns
    own = slice(columns.job_offset[j], columns.job_offset[j + 1])
    if not isinstance(model.start, pyo.Var):
        return columns.grid.seconds(columns.end[own]) @ model.start[own]
    return LinearExpression(terms(columns.grid.seconds(columns.end[own]), list(model.start.values())[own]))


def chosen(model: Any) -> tuple[Ints, Floats]:
    """Return the block of every job and its start, from the values loaded in ``model.start``.

    Parameters
    ----------
    model
        The model, with values loaded.

    Returns
    -------
    block
        Block of every job, i64[n].
    start
        Start of every job in seconds, f64[n].

    Raises
    ------
    InputError
        If the values do not start every job once.
    """
    columns: StartColumns = model.columns
    if isinstance(model.start, pyo.Var):
        value = np.array([v.value or 0.0 for v in model.start.values()])
    else:  # CVXPY's vector
        value = np.zeros(columns.slot.size) if model.start.value is None else model.start.value
    column = np.flatnonzero(value > 0.5)
    block = columns.block[column]
    if not np.array_equal(columns.job[block], np.arange(columns.grid.release.size)):
        raise InputError(
            "the model has no integer solution that starts every job once: solve it first, without relaxation"
        )
    return block, columns.grid.seconds(columns.slot[column])


def choose(model: Any, block: Ints, slot: Ints) -> None:
    """Put the schedule that starts job j in ``block[j]`` at ``slot[j]`` on all variables of the model.

    Parameters
    ----------
    model
        The model.
    block
        Block of every job, i64[n].
    slot
        Start slot of every job, i64[n].

    Raises
    ------
    InputError
        If a job completes after the horizon of the model.
    """
    columns: StartColumns = model.columns
    column = columns.column_of(block, slot)
    if np.any(column < 0):
        job = int(np.flatnonzero(column < 0)[0])
        raise InputError(f"job {job} (0-based) completes after the horizon that the model was built with")
    value = np.zeros(columns.slot.size)
    value[column] = 1.0
    if isinstance(model.start, pyo.Var):
        for variable, x in zip(model.start.values(), value.tolist(), strict=True):
            variable.set_value(x, skip_validation=True)
    else:
        model.start.value = value
    if getattr(model, "largest", None) is not None:
        model.largest.value = int(_paid(columns, model.goal)[column].max())
