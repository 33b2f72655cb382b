"""Search over the loads of identical machines, stage by stage in Smith's order, limited by bounds; compiled.

**Problem** P || sum w_j C_j, jobs in Smith's order (`optsched.solvers.smith_order`): job j costs w_j (load + p_j) on any
machine. **Method** A state of stage j is the sorted vector of the loads with which jobs 0..j-1 can leave the machines, and
the least cost of that (`optsched.solvers.identical_machines` makes all of them). With prices y, job j pays y_j less, and the
rest of the schedule costs at least the sum of the m cheapest paths from the loads (`least_after`) plus sum y: a state whose
bound exceeds the ``limit`` is dropped. Bounds of a linear program are so close to the optimum that few states are left.
**Guarantee** If nothing but such states was dropped, the search is complete: it returns the best schedule of at most the
limit, or proves that there is none. With more than ``width`` states at a stage only those of the least bounds stay, which
makes it a beam search. States count as equal only if all their loads are. Everything is an integer.
**Complexity** O(n m width). **References** Rothkopf, Management Science 12 (1966) for the states; Morin and Marsten,
Branch-and-bound strategies for dynamic programming, Operations Research 24 (1976) for bounds in a dynamic program (both from
recollection).
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.deadline import Deadline
from optsched.problem.arrays import Bools, Ints
from optsched.solvers.smith_order import FAR, ParallelJobs, Potentials

STEPS = 40_000_000  # states of all stages together whose origins are kept: 160 MB
SPARE = 4  # children per state of the width that are kept until the best of them are chosen


@dataclass(frozen=True)
class LoadSearch:
    """Result of a search: ``start`` i64[n] of the best schedule found (None: none), its ``cost``, and ``complete``.

    ``complete``: no better schedule of at most the limit exists. ``states``: number of states made.
    """

    start: Ints | None
    cost: int
    complete: bool
    states: int


def search_loads(jobs: ParallelJobs, potentials: Potentials, limit: int, width: int, deadline: Deadline) -> LoadSearch:
    """Search for a schedule that costs at most ``limit``.

    Parameters
    ----------
    jobs
        The jobs.
    potentials
        Prices, open starts, and the cheapest paths for them.
    limit
        Largest cost.
    width
        Largest number of states of a stage.
    deadline
        Time at which to stop, checked at every stage.
    """
    n, m, scale = jobs.n, jobs.machines, potentials.scale
    most = limit * scale - potentials.paid  # of the costs less the prices
    first = potentials.bound - potentials.paid
    nothing = LoadSearch(None, 0, False, 0)
    if first > most:
        return LoadSearch(None, 0, True, 0)
    room, key = SPARE * width + m, np.random.default_rng(1).integers(1 << 40, size=jobs.horizon + 1)
    columns = [np.zeros(room, dtype=np.int64) for _ in range(3)]
    new = NewStates(columns[0], columns[1], columns[2], np.zeros(2 << room.bit_length(), dtype=np.int32))
    rows, bound, mark = np.zeros((1, m), dtype=np.int32), np.array([first]), np.array([m * key[0]])
    steps, complete, made = list[Any](), True, 0
    stage = SearchStage(
        jobs.length, jobs.weight * scale, potentials.price, potentials.open_start, potentials.after, key
    )
    for j in range(n):
        if deadline.passed:
            return nothing
        new.table[:] = -1
        count, done, worst = 0, 0, most
        while done < bound.size:
            count, done = _expand(stage, j, rows, bound, mark, worst, new, count, done)
            if done < bound.size:  # there is no room for more
                complete, count, worst = False, width, min(worst, new.keep_best(width, count))
        made += count
        complete &= count <= width and made <= STEPS
        if count == 0 or made > STEPS:
            return LoadSearch(None, 0, complete, made)
        best = np.argsort(new.bound[:count], kind="stable")[:width]
        before, bound, mark = rows, new.bound[best], new.mark[best]
        steps.append(new.origin[best].astype(np.int32))
        rows = np.empty((best.size, m), dtype=np.int32)
        _move(before, steps[-1], jobs.length[j], rows)
    return LoadSearch(_starts(jobs, steps), (int(bound[0]) + potentials.paid) // scale, complete, made)


class SearchStage(NamedTuple):
    """Arrays of `Potentials` that every stage reads, weights in steps, and a random ``key`` i64[H + 1] of every load."""

    length: Ints
    weight: Ints
    price: Ints
    open_start: Bools
    after: Ints
    key: Ints


class NewStates(NamedTuple):
    """States of the next stage: their ``bound``, ``origin`` (state x machines + place) and ``mark``, i64[room].

    The mark is the sum of the keys of the loads. ``table`` i32[2^k] finds a state by its mark.
    """

    bound: Ints
    origin: Ints
    mark: Ints
    table: Any

    def keep_best(self, width: int, count: int) -> int:
        """Move the states of the least bounds to the front and forget the others; return the largest bound left.

        Parameters
        ----------
        width
            Number of states that stay.
        count
            Number of states.
        """
        best = np.argpartition(self.bound[:count], width)[:width]
        for numbers in (self.bound, self.origin, self.mark):
            numbers[:width] = numbers[best]
        self.table[:] = -1
        _enter(self.mark[:width], self.table)
        return int(self.bound[:width].max())


def _starts(jobs: ParallelJobs, steps: list[Ints]) -> Ints:
    """Return the start of every job in the schedule of the first of the last states, i64[n]."""
    taken, at = list[int](), 0
    for origin in reversed(steps):
        at, place = divmod(int(origin[at]), jobs.machines)
        taken.append(place)
    loads, start = [0] * jobs.machines, list[int]()
    for place, length in zip(reversed(taken), jobs.length.tolist(), strict=True):
        start.append(loads.pop(place))
        insort(loads, start[-1] + length)
    return np.array(start, dtype=np.int64)


@njit(forceinline=True)
def _place(row: Ints, i: int, end: int) -> int:
    # the position of the load that grew to ``end`` at position i, among the sorted loads after it
    place = i
    while place + 1 < row.size and row[place + 1] < end:
        place += 1
    return place


@njit(forceinline=True)
def _load(row: Ints, i: int, place: int, end: int, k: int) -> int:
    return row[k] if k < i or k > place else end if k == place else row[k + 1]


@njit(interpreted=False)
def _same(rows: Ints, length: int, one: int, two: int) -> bool:
    """Return whether two children (state x machines + place) have the same loads after a job."""
    m = rows.shape[1]
    row, i, other, k = rows[one // m], one % m, rows[two // m], two % m
    end, end_of_other = row[i] + length, other[k] + length
    place, place_of_other = _place(row, i, end), _place(other, k, end_of_other)
    for at in range(m):
        if _load(row, i, place, end, at) != _load(other, k, place_of_other, end_of_other, at):
            return False
    return True


@njit(interpreted=False)
def _move(before: Ints, origin: Ints, length: int, rows: Ints) -> None:
    """Compute the sorted loads of the states after a job."""
    m = rows.shape[1]
    for x in range(origin.size):
        s, i = origin[x] // m, origin[x] % m
        end = before[s, i] + length
        place = _place(before[s], i, end)
        for at in range(m):
            rows[x, at] = _load(before[s], i, place, end, at)


@njit(interpreted=False)
def _enter(mark: Ints, table: Any) -> None:
    for c in range(mark.size):
        slot = (mark[c] ^ (mark[c] >> 20)) & (table.size - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (table.size - 1)
        table[slot] = c


@njit(interpreted=False)
def _expand(
    stage: SearchStage, j: int, rows: Ints, bound: Ints, mark: Ints, most: int, new: NewStates, count: int, begin: int
) -> tuple[int, int]:
    """Put job j at every place of the states from ``begin`` on, while there is room for children of bounds <= ``most``.

    It returns (number of children, first state whose children are not among them).
    """
    m, p, after, key = rows.shape[1], stage.length[j], stage.after, stage.key
    for s in range(begin, bound.size):
        if count + m > new.bound.size:
            return count, s
        # what the other machines cost more at the least when they do not take the job; one of them may have to take it
        rise, must, many = bound[s], -1, 0
        for i in range(m):
            t = rows[s, i]
            if after[j + 1, t] < FAR:
                rise += after[j + 1, t] - after[j, t]
            else:
                must, many = i, many + 1
        if many > 1:
            continue
        for i in range(m):
            t = rows[s, i]
            end = t + p
            if (many == 1 and i != must) or (i > 0 and rows[s, i - 1] == t) or end >= after.shape[1]:
                continue
            if not stage.open_start[j, t] or after[j + 1, end] >= FAR:
                continue
            least = rise + stage.weight[j] * end - stage.price[j] + after[j + 1, end]
            least -= after[j, t] if many == 1 else after[j + 1, t]
            if least > most:
                continue
            sign, origin = mark[s] - key[t] + key[end], s * m + i
            slot = (sign ^ (sign >> 20)) & (new.table.size - 1)
            other = new.table[slot]
            while other >= 0 and (new.mark[other] != sign or not _same(rows, p, origin, new.origin[other])):
                slot = (slot + 1) & (new.table.size - 1)
                other = new.table[slot]
            if other < 0:
                new.bound[count], new.origin[count], new.mark[count], new.table[slot] = least, origin, sign, count
                count += 1
            elif least < new.bound[other]:
                new.bound[other], new.origin[other] = least, origin
    return count, bound.size
