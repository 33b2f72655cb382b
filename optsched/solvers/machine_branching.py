"""P || sum w_j C_j by branch and price: columns are schedules of one machine, branches say when a job starts at the latest.

The restricted master has a row a job and one that counts machines; its duals, smoothed towards the best so far (Wentges
1997), price the paths of `optsched.solvers.machine_schedules`. **Exactness** Prices are multiples of 1 / scale, and
all that follows is computed in integers, so that no bound rests on the solver's tolerances; it only proposes prices.
**Branching** by execution windows (van den Akker, Hoogeveen and van de Velde 1999): the last job that the LP starts at
several times starts by their mean, or after it. If there is none, the LP's starts are a schedule.
**Complexity** O(n H) for a pricing, H about sum p / m; the LP has n + 1 rows. **Guarantee** optimal at the end; a valid
interval at any time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

import numpy as np
import scipy.sparse as sp

from optsched.deadline import Deadline
from optsched.errors import OptschedError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.machine_schedules import FAR, close_starts, improve, least_after, least_before, paths_to
from optsched.solvers.session import Session
from optsched.solvers.size import Size

SMOOTH = 0.7  # of the best prices so far
COLUMNS = 10  # paths a pricing
ROUNDS = 20  # of pricing between two eliminations
KICKS, MORE_KICKS = 10, 20  # of the local search, at a time
PASSIVE = 4000  # columns beyond which those that are not used go
SCALES = 10  # bits of a price behind the point, at most
LARGE = 1 << 58
NOTHING = 1e-6  # of a column's value, or a mean start


@dataclass(frozen=True)
class ParallelJobs:
    """``length`` i64[n] >= 1 and ``weight`` i64[n] >= 0 in Smith's order (p / w rises), on so many ``machines``."""

    length: Ints
    weight: Ints
    machines: int

    @property
    def n(self) -> int:
        """How many."""
        return int(self.length.size)

    @cached_property
    def latest_start(self) -> Ints:
        """In an optimal schedule some machine is free for job j when the others have done all the other work on average."""
        return (self.length.sum() - self.length) // self.machines

    @cached_property
    def horizon(self) -> int:
        """No load of an optimal schedule is larger."""
        return int((self.latest_start + self.length).max())

    @cached_property
    def first_end(self) -> int:
        """In some optimal schedule no load is smaller: its machine would take the last job of another one."""
        total, longest = int(self.length.sum()), int(self.length.max())
        return max(0, -((self.machines - 1) * longest - total) // self.machines)

    @cached_property
    def penalty(self) -> Ints:
        """More than any job can cost, with what it makes others pay."""
        return 2 * (self.weight * self.horizon + self.length * int(self.weight.sum())) + 1

    @cached_property
    def scale(self) -> int:
        """Steps of a price in a unit of cost; 0 where integers are too large."""
        largest = 4 * sum(self.penalty.tolist())
        return next((1 << k for k in range(SCALES, -1, -1) if largest << k < LARGE), 0)

    def open_starts(self) -> Bools:
        """bool[n, H + 1]: where a job may start."""
        return np.arange(self.horizon + 1) <= self.latest_start[:, None]

    def in_turn(self, order: Ints) -> Ints:
        """Machine of every job when each goes, in that order, to the one with the least load."""
        load, machine = np.zeros(self.machines, dtype=np.int64), np.zeros(self.n, dtype=np.int64)
        for j in order.tolist():
            machine[j] = np.argmin(load)
            load[machine[j]] += self.length[j]
        return machine

    def starts(self, machine: Ints) -> Ints:
        """Start of every job on its machine, in Smith's order."""
        start = np.zeros(self.n, dtype=np.int64)
        for i in range(self.machines):
            here = machine == i
            start[here] = np.cumsum(self.length[here]) - self.length[here]
        return start

    def cost(self, machine: Ints) -> int:
        """Of an assignment to machines."""
        return int(self.weight @ (self.starts(machine) + self.length))


class _Master:
    """The restricted master: first a column for every job that nobody runs and for idle machines, then one a path."""

    def __init__(self, jobs: ParallelJobs) -> None:
        self.jobs, self.iterations = jobs, 0
        self.taken, self.start = np.zeros((0, jobs.n), dtype=bool), np.zeros((0, jobs.n), dtype=np.int64)
        self._begin()

    def _begin(self) -> None:
        jobs, self._known = self.jobs, set[bytes]()
        rows = np.ones(jobs.n + 1)
        rows[-1] = jobs.machines
        cost = np.append(jobs.penalty, jobs.penalty.max()).astype(np.float64)
        program = LinearProgram.from_arrays(cost, sp.csc_array(sp.eye_array(jobs.n + 1)), rows, rows)
        self.session = Session(program, options={"presolve": "off", "simplex_strategy": 4})

    def add(self, taken: Bools) -> int:
        """Those paths, bool[k, n], that are new; returns how many."""
        fresh = [row for row in taken if row.tobytes() not in self._known]
        self._known.update(row.tobytes() for row in fresh)
        if not fresh:
            return 0
        new = np.array(fresh)
        load = np.cumsum(new * self.jobs.length, axis=1)
        cost = (new * load) @ self.jobs.weight
        matrix = sp.csc_array(np.vstack([new.T, np.ones((1, len(fresh)))]).astype(np.float64))
        self.session.add_columns(cost.astype(np.float64), matrix)
        self.taken = np.vstack([self.taken, new])
        self.start = np.vstack([self.start, (load - self.jobs.length) * new])
        return len(fresh)

    def restrict(self, open_start: Bools) -> None:
        """Only columns whose starts are open; where there are many, the others are forgotten."""
        start = np.minimum(self.start, self.jobs.horizon)  # where nothing starts
        allowed = (open_start[np.arange(self.jobs.n), start] | ~self.taken).all(axis=1)
        if allowed.size > PASSIVE:
            kept, empty = self.taken[allowed], self.taken[:0]
            self.taken, self.start = empty, self.start[:0]
            self._begin()
            self.add(kept)
        else:
            upper = np.where(allowed, np.inf, 0.0)
            self.session.set_bounds(np.zeros(upper.size), upper, self.jobs.n + 1 + np.arange(upper.size))

    def solve(self, deadline: Deadline) -> tuple[float, Floats, Floats] | None:
        """(value, columns' values, duals); None when the time is up."""
        self.iterations += 1
        try:
            outcome = self.session.solve(time_limit=deadline.left)
        except OptschedError:  # the simplex method lost its way from the last basis
            self.session.highs.clearSolver()
            outcome = self.session.solve(time_limit=deadline.left)
        if outcome.status != "optimal" or outcome.x is None or outcome.value is None:
            return None
        return outcome.value, outcome.x, self.session.duals()

    @property
    def size(self) -> Size:
        """Rows and columns now."""
        rows, paths = self.jobs.n + 1, len(self.taken)
        return Size(rows, rows + paths, rows + paths + int(self.taken.sum()))


class MachineBranching:
    """The search. ``machine``: the best assignment so far, ``upper`` its cost, ``lower`` the bound, both integers.

    ``on_better()`` is called when either has changed. `run` to the end or the ``deadline``.
    """

    def __init__(self, jobs: ParallelJobs, deadline: Deadline, on_better: Callable[[], None]) -> None:
        self.jobs, self.deadline, self._tell = jobs, deadline, on_better
        self.machine = jobs.in_turn(np.arange(jobs.n))
        self.upper, self.lower, self.nodes = jobs.cost(self.machine), 0, 0
        self._seed = np.array([1], dtype=np.int64)
        self._before = np.zeros((jobs.n + 1, jobs.horizon + 1), dtype=np.int64)
        self._after = np.zeros_like(self._before)
        self.master = _Master(jobs)

    @property
    def closed(self) -> bool:
        """Proved?"""
        return self.lower >= self.upper

    def search(self, machine: Ints, kicks: int) -> None:
        """Local search from an assignment, which is changed."""
        jobs = self.jobs
        cost = improve(jobs.length, jobs.weight, machine, jobs.machines, kicks, self.lower, self._seed)
        self.master.add(machine == np.arange(jobs.machines)[:, None])
        if cost < self.upper:
            self.upper, self.machine = int(cost), machine.copy()
            self._tell()

    def run(self) -> None:
        """Until it is proved, or the time is up."""
        for _ in range(MORE_KICKS):
            if not self.deadline.passed:
                self.search(self.machine.copy(), KICKS)
        self._raise(int(self.jobs.weight @ self.jobs.length))
        ticket = count()
        nodes = [_Node.of(self.lower, 0, next(ticket), self.jobs.open_starts(), self._first_prices())]
        while nodes and not self.closed and not self.deadline.passed:
            node = heapq.heappop(nodes)
            if node.bound >= self.upper:
                continue
            self.nodes += 1
            mean, spread, open_start = self._solve(node, alone=not nodes)
            if node.bound < self.upper:
                for part in _parts(open_start, mean, spread):
                    heapq.heappush(
                        nodes, _Node(node.bound, node.depth - 1, next(ticket), np.packbits(part).tobytes(), node.price)
                    )
            self._raise(min((each.bound for each in nodes), default=self.upper))

    def _raise(self, bound: int) -> None:
        if bound > self.lower:
            self.lower = min(bound, self.upper)
            self._tell()

    def _first_prices(self) -> Floats:
        """What the best schedule would save without a job: its own cost, and its length of all that comes after it."""
        weight, length = self.jobs.weight, self.jobs.length
        after = np.zeros(self.jobs.n)
        for i in range(self.jobs.machines):
            here = self.machine == i
            after[here] = weight[here].sum() - np.cumsum(weight[here])
        return np.asarray(weight * (self.jobs.starts(self.machine) + length) + length * after)

    def _solve(self, node: _Node, alone: bool) -> tuple[Floats, Floats, Bools]:
        """(mean start of every job, its variance, open starts) in the LP of a node, whose bound rises on the way."""
        jobs = self.jobs
        shape = (jobs.n, jobs.horizon + 1)
        open_start = (
            np.unpackbits(np.frombuffer(node.bits, dtype=np.uint8), count=shape[0] * shape[1])
            .reshape(shape)
            .astype(bool)
        )
        best, best_price = -FAR, np.zeros(jobs.n, dtype=np.int64)
        self.master.restrict(open_start)
        x = np.zeros(0)
        while (solved := self.master.solve(self.deadline)) is not None:
            value, x, dual = solved
            entered = 0
            for smooth in (SMOOTH, 0.0):
                wished = np.clip(smooth * node.price + (1 - smooth) * dual[:-1], -jobs.penalty, jobs.penalty)
                price = np.rint(wished * jobs.scale).astype(np.int64)
                proved = self._price(price, open_start)
                if proved > best:
                    best, best_price, node.price = proved, price, price / jobs.scale
                    node.bound = max(node.bound, -(-best // jobs.scale))
                entered = 0 if node.bound >= self.upper else self._enter(dual)
                if entered or node.bound >= self.upper:
                    break
            if alone:
                self._raise(node.bound)
            whole = float(x[: jobs.n + 1].max()) < NOTHING  # nobody is left out
            if not entered or (whole and node.bound >= value - NOTHING * jobs.n):
                break
            if self.master.iterations % ROUNDS == 0:
                self._thin(best_price, best, open_start)
        if solved is None or node.bound >= self.upper:
            return np.zeros(jobs.n), np.zeros(jobs.n), open_start
        used = np.maximum(x[jobs.n + 1 :], 0.0)
        start = self.master.start[: used.size].astype(np.float64)
        mean = used @ start
        spread = used @ start**2 - mean**2
        self._thin(best_price, best, open_start)
        self.search(jobs.in_turn(np.argsort(mean, kind="stable")), MORE_KICKS)
        return mean, spread, open_start

    def _price(self, price: Ints, open_start: Bools) -> int:
        """What prices prove, times ``scale``; leaves the cheapest ways to all loads."""
        jobs = self.jobs
        least_before(jobs.length, jobs.weight * jobs.scale, price, open_start, self._before)
        cheapest = int(self._before[-1, jobs.first_end :].min())
        return FAR if cheapest >= FAR else sum(price.tolist()) + jobs.machines * cheapest

    def _enter(self, dual: Floats) -> int:
        """Put the cheapest paths that the LP can use into the master; returns how many were new to it."""
        jobs = self.jobs
        final = self._before[-1, jobs.first_end :]
        ends = np.argsort(final, kind="stable")[:COLUMNS]
        ends = ends[final[ends] < FAR] + jobs.first_end
        taken = np.zeros((ends.size, jobs.n), dtype=bool)
        paths_to(jobs.length, self._before, ends, taken)
        cost = (taken * np.cumsum(taken * jobs.length, axis=1)) @ jobs.weight
        gain = taken @ dual[:-1] + dual[-1] - cost
        return self.master.add(taken[gain * jobs.scale > 1])

    def _thin(self, price: Ints, proved: int, open_start: Bools) -> None:
        """Close the starts of no better schedule, by the prices that proved most."""
        jobs = self.jobs
        weight = jobs.weight * jobs.scale
        least_before(jobs.length, weight, price, open_start, self._before)
        least_after(jobs.length, weight, price, open_start, jobs.first_end, self._after)
        spare = (self.upper - 1) * jobs.scale - proved
        allowed = int(self._before[-1, jobs.first_end :].min()) + spare
        close_starts(jobs.length, weight, price, self._before, self._after, allowed, open_start)
        self.master.restrict(open_start)


@dataclass(order=True)
class _Node:
    bound: int
    depth: int  # negative: of equal bounds the deepest first
    ticket: int
    bits: bytes = field(compare=False)  # of its open starts
    price: Floats = field(compare=False)

    @classmethod
    def of(cls, bound: int, depth: int, ticket: int, open_start: Bools, price: Floats) -> _Node:
        """With its bits packed."""
        return cls(bound, depth, ticket, np.packbits(open_start).tobytes(), price)


def _parts(open_start: Bools, mean: Floats, spread: Floats) -> list[Bools]:
    """Two copies: a job starts by its mean, or later. None where no job has two starts left: the only schedule is known."""
    many = open_start.sum(axis=1) > 1
    unsure = np.flatnonzero(many & (spread > NOTHING))
    if not many.any():
        return []
    j = int(unsure[-1] if unsure.size else np.flatnonzero(many)[-1])
    slots = np.flatnonzero(open_start[j])
    last = int(np.clip(np.floor(mean[j] + NOTHING), slots[0], slots[-2]))
    early, late = open_start.copy(), open_start.copy()
    early[j, last + 1 :] = False
    late[j, : last + 1] = False
    return [early, late]
