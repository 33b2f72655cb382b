"""The columns of start-time models: (job, [mode,] start slot), and which of them are in process at a slot.

A *block* is a run of columns of one job (in one placement mode) with consecutive start slots ``first..last``; blocks of
a job are adjacent. Hence the columns of a job, and those of a block in process at a slot, are ranges: a row of a
model is a few slices of the list of its variables, which is what makes building fast (no Python work per nonzero).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np

from optsched.errors import InfeasibleError, InputError
from optsched.models.formulation import size_reason
from optsched.models.latest_starts import latest_starts
from optsched.models.left_shift import in_sequence
from optsched.models.time_grid import TimeGrid
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import Objective, get_objective

T = TypeVar("T")


@dataclass(frozen=True)
class StartColumns:
    """Blocks i64[B] on a grid: ``job`` (nondecreasing), ``first`` and ``last`` start slot.

    ``own`` i64[B]: slots that the job runs in this block where they depend on the mode; the grid then holds the fewest.
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
        """Slot boundary at which a job completes that starts by a column."""
        return self.slot + self.duration[self.block]

    def of_job(self, items: Sequence[T], j: int) -> Sequence[T]:
        """The items (one a column) of job j."""
        return items[self.job_offset[j] : self.job_offset[j + 1]]

    def in_process(self, items: Sequence[T], slot: int, blocks: Ints | None = None) -> list[T]:
        """The items (one a column) of all columns whose job runs during a slot, of all blocks or some."""
        begin = np.maximum(self.first, slot - self.duration + 1)
        end = np.minimum(self.last, slot)
        here = np.flatnonzero(begin <= end) if blocks is None else blocks[begin[blocks] <= end[blocks]]
        shift = (self.offset[:-1] - self.first)[here]
        ranges = zip((begin[here] + shift).tolist(), (end[here] + shift + 1).tolist(), strict=True)
        return list(chain.from_iterable(items[a:b] for a, b in ranges))

    def crowded(self, held: Ints, capacity: int) -> list[int]:
        """Slots at which jobs could hold more than ``capacity`` GPUs: rows of all other slots are redundant.

        ``held`` i64[B]: GPUs a block holds (of one pool). A job counts once however many blocks it has: the most.
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
        """(cost of every column, constant) of an objective that is a sum over jobs, in its own unit.

        The constant is what the jobs pay when each starts at its release; a column costs what comes on top.
        """
        goal = get_objective(objective)
        data = (instance.arrival, instance.weight, instance.due)
        least = goal.term(self.grid.seconds(self.grid.release + self.grid.duration), *data)
        job = self.job[self.block]
        paid = goal.term(self.grid.seconds(self.end), *(values[job] for values in data))
        return np.asarray(paid - least[job], dtype=np.float64), float(np.sum(least))

    def column_of(self, block: Ints, slot: Ints) -> Ints:
        """Column of each (block, start slot); -1 where there is none."""
        inside = (self.first[block] <= slot) & (slot <= self.last[block])
        return np.where(inside, self.offset[block] + slot - self.first[block], -1)


@dataclass(frozen=True)
class StartBlocks:
    """The ways to run the jobs: B blocks, those of a job adjacent. What tells one start-time formulation from another.

    ``job`` i64[B]; ``slots`` i64[B] that the job runs; ``held`` i64[B, R] GPUs it holds of each of R pools (one pool where
    GPUs are ``counted``, else the nodes); ``capacity`` i64[R].
    """

    grid: TimeGrid
    job: Ints
    slots: Ints
    held: Ints
    capacity: Ints
    counted: bool = False

    def size(self, instance: Instance, objective: str, latest_end: Ints | None = None) -> int:
        """Nonzeros: a start stands in ``once``, in a row a slot and pool that it uses, and for a maximum in one more."""
        latest_end = self._latest_ends(instance) if latest_end is None else latest_end
        windows = latest_end - self.slots - self.grid.release[self.job] + 1
        rows = self.slots * np.count_nonzero(self.held, axis=1) + (2 if get_objective(objective).maximum else 1)
        return int(np.sum(windows.astype(np.float64) * rows))

    def columns(
        self, instance: Instance, objective: str, horizon: float | Floats | None, cut: bool = True
    ) -> tuple[StartColumns, Ints]:
        """The starts that are provably enough and end by ``horizon`` (seconds), and the blocks that have any.

        Without ``cut`` all that end by the horizon. Raises `InfeasibleError` when a job cannot complete by the horizon in
        any way, `InputError` where all starts would be too many.
        """
        release, latest_end = self.grid.release, self._latest_ends(instance)
        goal = get_objective(objective)
        if not cut:
            one_by_one = release.max() + np.maximum.reduceat(self.slots, self._first).sum()
            latest_end = np.full_like(self.job, one_by_one)
        elif goal.maximum:
            # no optimal schedule is worse than a list schedule, whatever the ways: every job in its fastest ones in turn
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
        # `latest_starts` grows with the durations and falls with the GPUs that block a job: the longest, the least blocked
        free = np.where(self.held > 0, self.capacity - self.held + 1, np.iinfo(np.int64).max)
        blocked = np.minimum.reduceat(free.min(axis=1), self._first)
        longest = np.maximum.reduceat(self.slots, self._first)
        return latest_starts(self.grid.release, longest, instance.gpus, blocked)[self.job] + self.slots


def largest(goal: Objective, end: Ints, release: Ints) -> Ints:
    """What jobs pay for an objective that is a maximum, in slots: their end, or less their release."""
    return np.asarray(goal.term(end, release, 1, np.inf))


def least_maximum(goal: Objective, grid: TimeGrid, gpus: Ints, capacity: int) -> int:
    """A lower bound on a maximum in slots: work released in some slots, and every job alone."""
    order = np.argsort(grid.release, kind="stable")
    release, work = grid.release[order], (gpus * grid.duration)[order]
    before = np.cumsum(work) - work
    busy = before + work + np.maximum.accumulate(release * capacity - before)  # first come, first served by all GPUs
    together = largest(goal, -(-busy // capacity), release)
    return int(max(together.max(), largest(goal, grid.release + grid.duration, grid.release).max()))
