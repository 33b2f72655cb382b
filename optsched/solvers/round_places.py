"""`RoundPlaces`: schedules in rounds on machines, and moves of jobs to earlier ends.

A packing over kinds of devices gives the number of devices of each kind that a job has in a round; this module gives them
machines. Gangs that must be on one machine come first, the largest first, each on the fullest machine that holds it, so that
gangs whose sizes divide each other always fit. A job that finds no machine in some round goes to where it ends first among
the others (`RoundPlaces.improve`): in every round from its arrival on in the fastest mode that the free devices allow,
without the rounds it does not need.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from optsched.compiled import njit
from optsched.deadline import NEVER, Deadline
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.round_columns import RoundColumns

Cell = tuple[int, int, int]  # machine, type, devices
Placed = tuple[
    tuple[tuple[int, tuple[Cell, ...]], ...], ...
]  # for every job (round, cells), rising; () if it is left out


class RoundPlaces:
    """Devices of every job: ``free`` i64[T, H, R] devices; ``taken[j]``: the rounds of job j with their cells, rising."""

    def __init__(self, columns: RoundColumns) -> None:
        self.columns, problem = columns, columns.problem
        self.free = np.repeat(problem.devices[None].astype(np.int64), problem.rounds, axis=0)
        self.taken: list[list[tuple[int, tuple[Cell, ...]]]] = [[] for _ in range(problem.n)]
        cell = np.full(columns.cells.devices.shape, -1, dtype=np.int64)
        for q, where in enumerate(columns.cells.where):
            cell[where] = q
        mode_group = np.array([-1 if mode.group is None else mode.group for mode in columns.modes], dtype=np.int64)
        in_group = (mode_group[:, None] < 0) | (mode_group[:, None] == columns.cells.group[None, :])
        most = np.pad(columns.most, ((0, 0), (0, 1)))  # the last column is for types that no cell has
        suits = most[:, cell] > 0  # [modes, groups, types]
        self.open: Bools = suits[:, columns.cells.group] & in_group[:, :, None]  # [modes, machines, types]
        self.alone = mode_group >= 0
        self.apart = int(problem.together is not None)  # gangs not on one machine are on at least two

    def placed(self) -> Placed:
        """Return the current schedules."""
        return tuple(tuple(rounds) for rounds in self.taken)

    def value(self) -> float:
        """Return the total utility."""
        ends = [(j, rounds[-1][0]) for j, rounds in enumerate(self.taken) if rounds]
        return float(sum(float(self.columns.utility[j, end]) for j, end in ends))

    def place(self, chosen: Iterable[tuple[int, list[tuple[int, Ints]]]]) -> None:
        """Give machines to a packing over cells.

        Parameters
        ----------
        chosen
            (job, [(round, devices i64[Q])]) of every job that runs.
        """
        of_round: dict[int, list[tuple[int, Ints]]] = {}
        for j, rounds in chosen:
            for t, held in rounds:
                of_round.setdefault(t, []).append((j, held))
        lost = set[int]()
        tasks = self.columns.problem.tasks
        for t, gangs in sorted(of_round.items()):
            for j, held in sorted(gangs, key=lambda pair: (self._spread(*pair), -int(tasks[pair[0]]), pair[0])):
                cells = None if j in lost else self._cells(t, j, held)
                if cells is None:
                    lost.add(j)
                    self.remove(j)
                else:
                    self.add(j, t, cells)

    def _spread(self, j: int, held: Ints) -> bool:
        # the fastest mode that has such devices tells whether they are on one machine
        own = range(int(self.columns.start[j]), int(self.columns.start[j + 1]))
        return not next(self.alone[m] for m in own if bool((held <= self.columns.most[m]).all()))

    def _cells(self, t: int, j: int, held: Ints) -> tuple[Cell, ...] | None:
        """Return machines for the devices, the fullest that hold them, or None."""
        cells, group = self.columns.cells, self.columns.cells.group
        want = [(*cells.where[q], int(held[q])) for q in np.flatnonzero(held).tolist()]
        if not self._spread(j, held):
            fits = group == want[0][0]
            for _, r, count in want:
                fits &= self.free[t, :, r] >= count
            if not fits.any():
                return None
            left = np.where(fits, self.free[t].sum(axis=1), np.iinfo(np.int64).max)
            return tuple((int(left.argmin()), r, count) for _, r, count in want)
        room = np.full(group.size, int(held.sum()) - self.apart)
        placed_cells = list[Cell]()
        for g, r, count in want:
            for h in sorted(np.flatnonzero(group == g).tolist(), key=lambda h: int(self.free[t, h, r])):
                part = min(count, int(self.free[t, h, r]), int(room[h]))
                if part:
                    placed_cells.append((h, r, part))
                    count -= part
                    room[h] -= part
            if count:
                return None
        return tuple(placed_cells)

    def add(self, j: int, t: int, cells: tuple[Cell, ...]) -> None:
        """Give these devices to the job in a round.

        Parameters
        ----------
        j
            Number of the job.
        t
            Number of the round.
        cells
            (machine, type, devices) of the job.
        """
        for h, r, count in cells:
            self.free[t, h, r] -= count
        self.taken[j].append((t, cells))

    def remove(self, j: int) -> list[tuple[int, tuple[Cell, ...]]]:
        """Remove the job, and return the rounds and cells that it had.

        Parameters
        ----------
        j
            Number of the job.
        """
        had, self.taken[j] = self.taken[j], []
        for t, cells in had:
            for h, r, count in cells:
                self.free[t, h, r] += count
        return had

    def improve(self, deadline: Deadline = NEVER) -> None:
        """Move jobs to earlier ends, those left out first, until none can move.

        Parameters
        ----------
        deadline
            Time after which only jobs that are left out move.
        """
        utility = self.columns.utility
        moved = True
        while moved:
            moved = False
            for j in sorted(range(len(self.taken)), key=lambda j: (bool(self.taken[j]), -float(utility[j].max()), j)):
                if self.taken[j] and deadline.passed:
                    return
                moved = self._earlier(j) or moved

    def _earlier(self, j: int) -> bool:
        """Move the job to an earlier end if there is one, and return whether it moved."""
        columns = self.columns  # a job that never ends counts as ending after the last round
        before = self.taken[j][-1][0] if self.taken[j] else columns.problem.rounds
        part = slice(int(columns.start[j]), int(columns.start[j + 1]))
        needed, first = float(columns.needed[j]), int(columns.problem.arrival[j])
        if part.start == part.stop or before <= first:
            return False
        had = self.remove(j)
        taken = _first_end(
            self.free, first, before, int(columns.problem.tasks[j]), needed, columns.iterations[part],
            self.open[part], self.alone[part], self.apart,
        )  # fmt: skip
        if not len(taken):
            for t, cells in had:
                self.add(j, t, cells)
            return False
        for t, m, h in taken.tolist():
            self.add(j, t, self._some(t, part.start + m, h, int(columns.problem.tasks[j])))
        return True

    def _some(self, t: int, mode: int, machine: int, count: int) -> tuple[Cell, ...]:
        # take free devices of a mode, on the machine or, without one, on the fullest machines
        placed_cells = list[Cell]()
        machines = [machine] if machine >= 0 else np.argsort(self.free[t].sum(axis=1), kind="stable").tolist()
        most = count - (0 if machine >= 0 else self.apart)
        for h in machines:
            here = most
            for r in np.flatnonzero(self.open[mode, h] & (self.free[t, h] > 0)).tolist():
                part = min(count, here, int(self.free[t, h, r]))
                if part:
                    placed_cells.append((h, r, part))
                    count -= part
                    here -= part
        return tuple(placed_cells)


@njit
def _first_end(
    free: Ints,
    first: int,
    before: int,
    tasks: int,
    needed: float,
    iterations: Floats,
    suits: Bools,
    alone: Bools,
    apart: int,
) -> Ints:
    """Return the schedule that ends first, and before ``before``; empty if there is none.

    It is i64[k, 3] with (round, mode, machine or -1).
    """
    machines, types = free.shape[1], free.shape[2]
    taken, count, done = np.empty((before - first, 3), dtype=np.int64), 0, 0.0
    for t in range(first, before):
        found, where = -1, -1
        for m in range(iterations.size):
            total, least = 0, 1 << 60
            for h in range(machines):
                here, left = 0, 0
                for r in range(types):
                    left += free[t, h, r]
                    if suits[m, h, r]:
                        here += free[t, h, r]
                total += min(here, tasks - apart)
                if alone[m] and here >= tasks and left < least:
                    least, where = left, h
            if (alone[m] and where >= 0) or (not alone[m] and total >= tasks):
                found = m
                break
        if found >= 0:
            taken[count, 0], taken[count, 1], taken[count, 2] = t, found, where
            done += iterations[found]
            count += 1
            if done >= needed:
                break
    if done < needed:
        return taken[:0]
    kept = 0  # drop rounds that it does not need; the last round stays
    for i in range(count):
        if i < count - 1 and done - iterations[taken[i, 1]] >= needed:
            done -= iterations[taken[i, 1]]
        else:
            for k in range(3):
                taken[kept, k] = taken[i, k]
            kept += 1
    return taken[:kept]
