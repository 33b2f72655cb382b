"""Columns of Hadar's packing LP: the schedule in rounds with the largest payoff for a job at given prices of devices.

**Problem** for a `RoundProblem` and prices k_tq >= 0 of a device of cell q in round t: for every job j the schedule s,
of all its schedules in rounds, with the largest payoff u_js - sum_tq k_tq w_tq^js, or none where no payoff is positive.
**Cells** are kinds of devices: machines with equal devices are one *group*, cell q = (group, type) has all its devices. By
symmetry some optimal prices of alike machines are equal (the mean of optimal prices is optimal), so the LP over cells has
the value of the LP over machines.
**Pricing** is a dynamic program over (round, units of work done). A round in mode m (`RoundProblem.modes`) costs the
cheapest W_j devices that are fast enough, and does ceil(c_m s) units. Here c_m is its iterations and s the units an
iteration, chosen such that the fastest mode does a whole number; j is done at ceil(needed s) units. **Rounding favours
the job**: a schedule that does the work does the units, too, so the payoff is at least the true one and the bound
holds. If the units are done and the iterations are not, the column is mended (one more round, or a faster mode) and the
job gets finer units, until there is no such column or a fixed size is reached. **Long jobs** may take a part of one
round: the cheapest work of the rounds up to t, round by round on the lower hull of cost over iterations, for all t in
one pass; the column has that round whole. **Numbers** prices and utilities are integers over 2**scale (utilities
rounded up): the bound is exact. **Complexity** O(rounds x units x modes) a job, for the rounds up to the one at which
utility alone is below the best payoff found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from optsched.compiled import njit
from optsched.models.hadar_rounds import ENOUGH, Mode, RoundProblem
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.column_generation import PricedColumns

BITS = 40  # of the largest utility: if no price is larger, sums over rounds and devices fit into 63 bits
UNITS = 16  # of a round in the fastest mode, at first
MOST_UNITS = 4096  # of a job
LONG = 48  # rounds that a long job needs at least: a part of one round is then small
INTERPRETED = 300  # rounds times jobs: a pricing takes hundredths of a second in plain Python
NEVER = 1 << 61  # larger than any cost
SAFE = 2.0**-40  # relative to the largest sum: rounding of floats


class DeviceCells:
    """Machines with equal devices as groups: ``capacity`` i64[Q] of cells (group, type), ``machines`` of each group."""

    def __init__(self, problem: RoundProblem) -> None:
        self.devices, self.group = np.unique(problem.devices, axis=0, return_inverse=True)
        self.group = self.group.reshape(-1)
        self.count = np.bincount(self.group, minlength=len(self.devices))
        self.where = [(g, r) for g, r in np.argwhere(self.devices > 0).tolist()]
        self.capacity = np.array([self.devices[g, r] * self.count[g] for g, r in self.where], dtype=np.int64)

    def held(self, mode: Mode, most: int) -> Ints:
        """Return the devices of every cell that a mode may use, i64[Q].

        Parameters
        ----------
        mode
            The mode.
        most
            Largest number of devices on each machine.
        """
        own = {(int(self.group[h]), r) for h, r in mode.cells}
        count = self.count if mode.machine is None else np.ones_like(self.count)
        held = [count[g] * min(int(self.devices[g, r]), most) * ((g, r) in own) for g, r in self.where]
        return np.array(held, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class CellMode:
    """A mode of a job: ``iterations`` a round, devices ``most`` i64[Q] of every cell; ``group``: on one machine of it."""

    iterations: float
    most: Ints
    group: int | None

    def beats(self, other: CellMode) -> bool:
        """Return whether the mode is never slower and never dearer than another one.

        Parameters
        ----------
        other
            The other mode.
        """
        return self.iterations >= other.iterations and bool((self.most >= other.most).all())


def cell_modes(problem: RoundProblem, cells: DeviceCells, j: int) -> list[CellMode]:
    """Return the modes of a job that no other one beats; machines that are alike give one.

    Parameters
    ----------
    problem
        The problem in rounds.
    cells
        Groups of its machines.
    j
        Number of the job.
    """
    candidates: list[CellMode] = []
    seen: set[tuple[float, int]] = set()
    for mode in problem.modes[j]:
        group = None if mode.machine is None else int(cells.group[mode.machine])
        if group is not None and (mode.task, group) in seen:
            continue
        seen.add((mode.task, -1 if group is None else group))
        apart = group is None and problem.together is not None  # then it is not on one machine
        most = cells.held(mode, int(problem.tasks[j]) - apart)
        if most.sum() >= problem.tasks[j]:
            candidates.append(CellMode(problem.iterations(j, mode), np.minimum(most, problem.tasks[j]), group))
    unbeaten: list[CellMode] = []
    for one in sorted(candidates, key=lambda each: (-each.iterations, each.group is None)):
        if not any(better.beats(one) for better in unbeaten):
            unbeaten.append(one)
    return unbeaten


@dataclass(frozen=True, eq=False)
class RoundColumn:
    """A schedule of job ``job``: in rounds ``rounds`` i64[k] in modes ``modes`` i64[k], numbers of `RoundColumns.modes`."""

    job: int
    rounds: Ints
    modes: Ints


class RoundColumns:
    """The pricing problem of one `RoundProblem`.

    Rows of the master: T x Q capacities (rounds outermost), then n jobs, at most one schedule each. ``active`` bool[n]: jobs
    that are priced, and ``free`` i64[T, Q]: devices that their schedules may have; at first all.
    """

    def __init__(self, problem: RoundProblem) -> None:
        self.problem, self.cells = problem, DeviceCells(problem)
        by_job = [cell_modes(problem, self.cells, j) for j in range(problem.n)]
        self.modes = [mode for modes in by_job for mode in modes]
        self.start = np.cumsum([0, *map(len, by_job)]).astype(np.int64)
        self.most = np.array([mode.most for mode in self.modes], dtype=np.int64).reshape(
            len(self.modes), self.cells.capacity.size
        )
        self.iterations = np.array([mode.iterations for mode in self.modes], dtype=np.float64)
        largest = float(self.utility.max(initial=0.0))
        self.scale = BITS - math.frexp(largest)[1] if largest else 0
        self.worth = np.ceil(np.ldexp(self.utility, self.scale)).astype(np.int64)
        self.units, self.done = np.zeros(len(self.modes), dtype=np.int64), np.zeros(problem.n, dtype=np.int64)
        self.release()
        self.fine, self.needed = np.full(problem.n, UNITS), problem.work * ENOUGH
        fastest = np.maximum.reduceat(np.append(self.iterations, 1.0), self.start[:-1])
        self.long = (self.needed > LONG * fastest) & self.active
        for j in np.flatnonzero(~self.long).tolist():
            self._count(j)

    def release(self) -> None:
        """Free all devices, and make all jobs active that can run."""
        self.free = np.tile(self.cells.capacity, (self.problem.rounds, 1))
        self.active = np.diff(self.start) > 0

    @cached_property
    def utility(self) -> Floats:
        """Utility u_jt from the arrival on, 0 before, f64[n, T]."""
        late = np.arange(self.problem.rounds) >= self.problem.arrival[:, None]
        return np.where(late, np.where(late, self.problem.utility, 0.0), 0.0)

    @property
    def rows(self) -> int:
        """Number of rows of the master."""
        return self.problem.rounds * self.cells.capacity.size + self.problem.n

    @property
    def upper(self) -> Floats:
        """Right-hand sides of the rows, f64[rows]."""
        return np.concatenate([np.tile(self.cells.capacity, self.problem.rounds), np.ones(self.problem.n)]).astype(
            float
        )

    def _count(self, j: int) -> None:
        # The units are exact in the fastest mode, so that a job of one type has no rounding at all. Of all scales up to
        # the allowed one, take the one that rounds the other modes least.
        a, b = self.start[j], self.start[j + 1]
        if a == b:
            return
        pace = self.iterations[a:b] / self.iterations[a]
        scales = np.arange(1, self.fine[j] + 1)[:, None]
        scale = int((np.ceil(scales * pace * (1 - 1e-12)) / (scales * pace)).max(axis=1).argmin()) + 1
        s = Fraction(scale) / Fraction(float(self.iterations[a]))
        self.done[j] = math.ceil(Fraction(float(self.needed[j])) * s)
        self.units[a:b] = [min(math.ceil(Fraction(x) * s), int(self.done[j])) for x in self.iterations[a:b].tolist()]

    def integers(self, price: Floats) -> Ints:
        """Return prices as integers over 2**`scale`, rounded down, i64[T, Q].

        Prices above every utility, at which no job buys, are cut down to about that size.

        Parameters
        ----------
        price
            Prices of the cells, f64[T Q].
        """
        capped = np.minimum(np.ldexp(np.maximum(price, 0.0), self.scale), 2.0 ** (BITS + 1))
        return np.floor(capped).astype(np.int64).reshape(self.problem.rounds, -1)

    def best(self, price: Ints) -> tuple[Ints, list[RoundColumn]]:
        """Return the best schedule of every job at integer prices.

        Parameters
        ----------
        price
            Prices of the cells, i64[T, Q].

        Returns
        -------
        payoff
            Payoffs over 2**`scale`, never below the true ones, i64[n].
        columns
            The schedules that have them.
        """
        n, T = self.problem.n, self.problem.rounds
        payoff, taken = np.zeros(n, dtype=np.int64), np.full((n, T), -1, dtype=np.int8)
        jobs = self.problem.arrival, self.problem.tasks.copy(), self.start, self.most, self.free
        _best_schedules(price, self.worth, *jobs, self.units, np.where(self.active, self.done, 0), payoff, taken)
        _best_parts(price, self.worth, *jobs, self.iterations, self.needed, self.long & self.active, payoff, taken)
        columns = []
        for j in np.flatnonzero(payoff).tolist():
            rounds = np.flatnonzero(taken[j] >= 0)
            column = RoundColumn(j, rounds, self.start[j] + taken[j, rounds])
            # the units are done, the iterations are not
            if float(self.iterations[column.modes].sum()) < float(self.needed[j]):
                rounds_of_job = float(self.needed[j] / self.iterations[self.start[j]])
                if not self.long[j] and 2 * self.fine[j] * rounds_of_job <= MOST_UNITS:
                    self.fine[j] *= 2
                    self._count(j)
                mended = self._mended(column, price)
                if mended is None:
                    continue
                column = mended
            columns.append(column)
        return payoff, columns

    def _mended(self, column: RoundColumn, price: Ints) -> RoundColumn | None:
        """Return the column with faster modes or more rounds, the cheapest work first; None: no work is left."""
        j, last = column.job, int(column.rounds[-1])
        short = float(self.needed[j]) - float(self.iterations[column.modes].sum())
        taken = dict(zip(column.rounds.tolist(), column.modes.tolist(), strict=True))
        while short > 0:
            options = []
            for t in range(int(self.problem.arrival[j]), last + 1):
                before = taken.get(t)
                done, paid = (0.0, 0) if before is None else (self.iterations[before], self.cost(before, price, t, j))
                for m in range(int(self.start[j]), int(self.start[j + 1])):
                    more = min(float(self.iterations[m] - done), short)
                    if more > 0 and int(np.minimum(self.most[m], self.free[t]).sum()) >= self.problem.tasks[j]:
                        options.append(((self.cost(m, price, t, j) - paid) / more, t, m))
            if not options:
                return None
            _, t, m = min(options)
            short -= float(self.iterations[m]) - (float(self.iterations[taken[t]]) if t in taken else 0.0)
            taken[t] = m
        rounds = np.array(sorted(taken), dtype=np.int64)
        return RoundColumn(j, rounds, np.array([taken[t] for t in rounds.tolist()], dtype=np.int64))

    def cost(self, mode: int, price: Ints, t: int, j: int) -> int:
        """Return the least cost of W_j devices in round t, in a mode.

        Parameters
        ----------
        mode
            Number of the mode.
        price
            Prices of the cells, i64[T, Q].
        t
            Number of the round.
        j
            Number of the job.
        """
        return int((price[t] * self.held(mode, price, t, j)).sum())

    def held(self, mode: int, price: Ints, t: int, j: int) -> Ints:
        """Return the cheapest W_j devices of a mode in round t, i64[Q].

        Parameters
        ----------
        mode
            Number of the mode.
        price
            Prices of the cells, i64[T, Q].
        t
            Number of the round.
        j
            Number of the job.
        """
        held, left = np.zeros(price.shape[1], dtype=np.int64), int(self.problem.tasks[j])
        for q in np.argsort(price[t], kind="stable").tolist():
            held[q] = min(left, int(self.most[mode, q]), int(self.free[t, q]))
            left -= int(held[q])
        return held

    def bound(self, price: Ints, payoff: Ints) -> Fraction:
        """Return the exact bound that integer prices prove: the sum of payoffs and of the prices of all devices.

        Parameters
        ----------
        price
            Prices of the cells, i64[T, Q].
        payoff
            Payoffs of the jobs, i64[n].
        """
        sold = int((price.astype(object).sum(axis=0) * self.cells.capacity.astype(object)).sum())
        return Fraction(sum(payoff.tolist()) + sold) / Fraction(2) ** self.scale

    def price(self, duals: Floats) -> PricedColumns:
        """Solve the pricing problem for `generate_columns`.

        Parameters
        ----------
        duals
            Duals of the master, f64[rows].
        """
        prices = self.integers(duals[: self.rows - self.problem.n])
        payoff, columns = self.best(prices)
        return PricedColumns(*self.arrays(columns, prices), bound=float(self.bound(prices, payoff)))

    def arrays(self, columns: list[RoundColumn], price: Ints) -> tuple[Floats, sp.csc_array]:
        """Return columns as arrays for the master; a mode takes its cells by price.

        Parameters
        ----------
        columns
            The schedules.
        price
            Prices of the cells, i64[T, Q].

        Returns
        -------
        value
            Utilities, f64[k].
        A
            Matrix, csc [rows, k].
        """
        Q = self.cells.capacity.size
        row, held, start = list[Ints](), list[Ints](), [0]
        for column in columns:
            used = np.array(
                [self.held(m, price, t, column.job) for t, m in zip(column.rounds, column.modes, strict=True)]
            )
            at, q = np.nonzero(used)
            row += [column.rounds[at] * Q + q, np.array([self.rows - self.problem.n + column.job])]
            held += [used[at, q], np.ones(1, dtype=np.int64)]
            start.append(start[-1] + q.size + 1)
        value = np.array([self.utility[column.job, column.rounds[-1]] for column in columns], dtype=np.float64)
        entries = (np.concatenate([[], *held]).astype(float), np.concatenate([[], *row]).astype(np.int64), start)
        return value, sp.csc_array(entries, shape=(self.rows, len(columns)))


@njit(interpreted=lambda price, worth, *_: price.shape[0] * worth.shape[0] <= INTERPRETED)
def _best_schedules(price, worth, arrival, tasks, start, most, free, units, done, payoff, taken):  # type: ignore[no-untyped-def]
    """Find the best schedule of every job with ``done`` units: ``payoff`` i64[n], ``taken`` i8[n, T] modes from 0, or -1."""
    T = price.shape[0]
    choice = np.empty((T, done.max() + 1), dtype=np.int8)
    least = np.empty(done.max() + 1, dtype=np.int64)
    for j in range(arrival.size):
        first, count, all_done = start[j], start[j + 1] - start[j], done[j]
        if all_done == 0:
            continue
        cost = np.empty(count, dtype=np.int64)
        least[:] = NEVER
        least[0] = 0
        best, last = 0, -1
        for t in range(arrival[j], T):
            if worth[j, t] <= best:
                break
            for m in range(count):
                cost[m] = _cheapest_devices(price[t], most[first + m], free[t], tasks[j])
            for now in range(all_done, 0, -1):
                value, by = least[now], -1
                for m in range(count):
                    before = max(now - units[first + m], 0)
                    if least[before] < NEVER and cost[m] < NEVER and least[before] + cost[m] < value:
                        value, by = least[before] + cost[m], m
                least[now] = value
                choice[t, now] = by
            if worth[j, t] - least[all_done] > best:
                best, last = worth[j, t] - least[all_done], t
        payoff[j] = best
        left, t = all_done, last
        while left > 0 and t >= 0:
            by = choice[t, left]
            if by >= 0:
                taken[j, t] = by
                left = max(left - units[first + by], 0)
            t -= 1


@njit(interpreted=lambda price, worth, *_: price.shape[0] * worth.shape[0] <= INTERPRETED)
def _best_parts(price, worth, arrival, tasks, start, most, free, iterations, needed, long, payoff, taken):  # type: ignore[no-untyped-def]
    """Find the same for long jobs, which may take a part of one round.

    The payoff is a bound, and the schedule has the whole round.

    The cheapest work of the rounds so far is kept by its price, with the pieces of every round on the lower hull of
    cost over iterations. The dearest piece goes when the rest is enough.
    """
    T, size = price.shape[0], price.shape[0] * 8
    slope, width = np.empty(size), np.empty(size)
    at, mode = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int8)
    for j in range(arrival.size):
        if not long[j]:
            continue
        best, until = 0, -1
        for read in range(2):  # first to find the end, then again up to it, to record what is taken
            pieces, total, paid, largest = 0, 0.0, 0.0, 0.0
            for t in range(arrival[j], T if read == 0 else until + 1):
                if read == 0 and worth[j, t] <= best:
                    break
                reached, spent = 0.0, 0.0
                while True:  # the next vertex of the hull
                    steepest, to, cost = np.inf, -1, 0.0
                    for m in range(start[j], start[j + 1]):
                        if iterations[m] > reached:
                            asked = np.float64(_cheapest_devices(price[t], most[m], free[t], tasks[j]))
                            if asked >= NEVER:
                                continue
                            rise = max(asked - spent, 0.0) / (iterations[m] - reached)
                            if rise < steepest or (rise == steepest and iterations[m] > iterations[to]):
                                steepest, to, cost = rise, m, asked
                    if to < 0:
                        break
                    place = pieces
                    while place > 0 and slope[place - 1] > steepest:
                        slope[place], width[place] = slope[place - 1], width[place - 1]
                        at[place], mode[place] = at[place - 1], mode[place - 1]
                        place -= 1
                    slope[place], width[place], at[place], mode[place] = (
                        steepest,
                        iterations[to] - reached,
                        t,
                        to - start[j],
                    )
                    total += width[place]
                    paid += steepest * width[place]
                    pieces += 1
                    reached, spent = iterations[to], cost
                largest = max(largest, paid)
                while pieces > 0 and total - width[pieces - 1] >= needed[j]:
                    pieces -= 1
                    total -= width[pieces]
                    paid -= slope[pieces] * width[pieces]
                if read == 0 and total >= needed[j]:
                    least = paid - slope[pieces - 1] * (total - needed[j]) - SAFE * largest
                    gained = worth[j, t] - np.int64(max(np.floor(least), 0.0))
                    if gained > best:
                        best, until = gained, t
            if until < 0:
                break
        payoff[j] = best
        # modes are sorted by falling speed: the least number is the fastest
        for i in range(pieces if until >= 0 else 0):
            if taken[j, at[i]] < 0 or mode[i] < taken[j, at[i]]:
                taken[j, at[i]] = mode[i]


@njit
def _cheapest_devices(price, most, free, tasks):  # type: ignore[no-untyped-def]
    """Return the least cost of ``tasks`` devices; it selects cells by price, because there are few."""
    left, cost, after, at = tasks, 0, np.int64(-1), -1
    while left > 0:
        next_, where = np.int64(1 << 62), -1
        for q in range(price.size):
            if (price[q] > after or (price[q] == after and q > at)) and price[q] < next_:
                next_, where = price[q], q
        if where < 0:
            return NEVER
        after, at = next_, where
        part = min(left, most[where], free[where])
        cost += part * next_
        left -= part
    return cost
