"""The method ``machine-schedules``: gangs of one size released at 0, by branch and price over machines' schedules.

**Problem** P || sum w_j C_j: on G GPUs floor(G / g) gangs of g run together, so they are identical machines.
Every cost must rise from the moment at which the job could be done: completion and flow times do, tardiness does not.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import count

import numpy as np
import scipy.sparse as sp

from optsched.deadline import Deadline
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.column_generation import PricedColumns, generate_columns
from optsched.solvers.linear_program import Size
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.outcome import there
from optsched.solvers.session import Session
from optsched.solvers.smith_order import FAR, close_starts, improve, least_after, least_before, paths_to
from optsched.solvers.solve_state import SolveState, common_step

NAME = "machine-schedules"
STATES = 4_000_000  # jobs x slots: 70 MB


def _applies(state: SolveState) -> str | None:
    instance, grid = state.instance, state.grid
    if reason := state.misfit():
        return reason
    if np.unique(instance.gpus).size > 1:
        return "jobs hold different numbers of GPUs"
    if np.ptp(instance.arrival) > 0:
        return "jobs arrive at different times"
    if grid is None:
        return "the times have no useful common unit"
    if any(
        cost.kink > Fraction(grid.origin) + int(p) * grid.unit
        for cost, p in zip(state.costs, grid.duration, strict=True)
    ):
        return "a job costs nothing up to some time"
    jobs, _, _ = _jobs(state)
    if jobs is None or jobs.scale == 0:
        return "times and weights are too large for exact arithmetic"
    if jobs.n * jobs.horizon > STATES:
        return f"{jobs.n} jobs x {jobs.horizon} slots are too many"
    return None


def _jobs(state: SolveState) -> tuple[ParallelJobs | None, Ints, Fraction]:
    """Return (the jobs in Smith's order, their positions, the value of a unit of their integer costs)."""
    grid, instance = there(state.grid), state.instance
    rise = [cost.slope * grid.unit for cost in state.costs]
    step = common_step(rise) or Fraction(1)
    weight = [int(each / step) for each in rise]
    length = grid.duration.tolist()
    if sum(weight) * sum(length) >= 1 << 60:
        return None, np.zeros(0, dtype=np.int64), step
    never = Fraction(1 << 62)
    key = [Fraction(p, w) if w else never for p, w in zip(length, weight, strict=True)]
    order = np.array(sorted(range(instance.n), key=lambda j: (key[j], length[j], j)), dtype=np.int64)
    machines = instance.cluster.gpus // int(instance.gpus[0])
    return ParallelJobs(grid.duration[order], np.array(weight, dtype=np.int64)[order], machines), order, step


def _run(state: SolveState) -> MethodReport:
    parallel, order, step = _jobs(state)
    jobs, grid = there(parallel), there(state.grid)
    origin = Fraction(grid.origin)
    unavoidable = sum((cost.base + cost.slope * (origin - cost.kink) for cost in state.costs), Fraction(0))

    def better() -> None:
        start = np.zeros(state.instance.n, dtype=np.int64)
        start[order] = jobs.starts(search.machine)
        state.offer_starts(grid.seconds(start), NAME)
        state.raise_bound(unavoidable + step * search.lower, "solver")

    search = MachineBranching(jobs, state.deadline, better)
    search.run()
    better()
    ended = "" if state.closed else f"the time limit came after {search.nodes} nodes"
    return MethodReport(
        Session.solver, Size(jobs.n + 1, len(search.paths), int(search.paths.sum())), search.nodes, note=ended
    )


add_method(NAME, _applies, _run)


# P || sum w_j C_j by branch and price: columns are schedules of one machine, branches limit the start of a job.
#
# The master of a node (`optsched.solvers.column_generation`) has a row a job and one that counts machines; its duals
# price the paths of `optsched.solvers.smith_order`. **Exactness** Prices are multiples of 1 / scale, and
# everything after them is computed in integers. So no bound depends on the solver's tolerances; the solver only
# proposes prices. **Branching** by execution windows (van den Akker, Hoogeveen and van de Velde 1999): the job whose
# start varies most in the LP starts by its mean, or after it. If none varies, the LP's starts are a schedule.
# **Complexity** O(n H) for a pricing, H about sum p / m; the LP has n + 1 rows. **Guarantee** optimal at the end; a
# valid interval at any time.

SMOOTH = 0.7  # weight of the best prices so far
COLUMNS = 10  # paths that a pricing returns
ROUNDS = 20  # pricings between two eliminations
KICKS, MORE_KICKS = 10, 20  # kicks of one call of the local search
PATHS = 3000  # paths kept from node to node, the latest first
CLOSE = 0.2  # gap between the LP and its bound at which to stop, in units of cost
SCALES = 10  # largest number of fractional bits of a price
LARGE = 1 << 58
NOTHING = 1e-6  # tolerance for a column's value and a mean start


@dataclass(frozen=True)
class ParallelJobs:
    """Jobs ``length`` i64[n] >= 1 and ``weight`` i64[n] >= 0 in Smith's order (p / w rises), on a number of ``machines``."""

    length: Ints
    weight: Ints
    machines: int

    @property
    def n(self) -> int:
        """Number of jobs."""
        return int(self.length.size)

    @cached_property
    def latest_start(self) -> Ints:
        """Latest starts of an optimal schedule, i64[n].

        Some machine is free for job j when the machines have done all the other work on average.
        """
        return (self.length.sum() - self.length) // self.machines

    @cached_property
    def horizon(self) -> int:
        """Largest load of a machine in an optimal schedule."""
        return int((self.latest_start + self.length).max())

    @cached_property
    def first_end(self) -> int:
        """Lower bound on the loads of some optimal schedule: a machine with less would take the last job of another one."""
        total, longest = int(self.length.sum()), int(self.length.max())
        return max(0, -((self.machines - 1) * longest - total) // self.machines)

    @cached_property
    def penalty(self) -> Ints:
        """Amount above the cost of any job, with the delay that it causes for others, i64[n]."""
        return 2 * (self.weight * self.horizon + self.length * int(self.weight.sum())) + 1

    @cached_property
    def scale(self) -> int:
        """Steps of a price in a unit of cost; 0 where integers are too large."""
        largest = 4 * sum(self.penalty.tolist())
        return next((1 << k for k in range(SCALES, -1, -1) if largest << k < LARGE), 0)

    def open_starts(self) -> Bools:
        """Return the starts that are allowed, bool[n, H + 1]."""
        return np.arange(self.horizon + 1) <= self.latest_start[:, None]

    def in_turn(self, order: Ints) -> Ints:
        """Return the machine of every job when each goes, in order, to the machine with the least load.

        Parameters
        ----------
        order
            The jobs in order, i64[n].
        """
        load, machine = np.zeros(self.machines, dtype=np.int64), np.zeros(self.n, dtype=np.int64)
        for j in order.tolist():
            machine[j] = np.argmin(load)
            load[machine[j]] += self.length[j]
        return machine

    def starts(self, machine: Ints) -> Ints:
        """Return the start of every job on its machine, in Smith's order.

        Parameters
        ----------
        machine
            Machine of every job, i64[n].
        """
        start = np.zeros(self.n, dtype=np.int64)
        for i in range(self.machines):
            on_machine = machine == i
            start[on_machine] = np.cumsum(self.length[on_machine]) - self.length[on_machine]
        return start

    def cost(self, machine: Ints) -> int:
        """Return the cost of an assignment to machines.

        Parameters
        ----------
        machine
            Machine of every job, i64[n].
        """
        return int(self.weight @ (self.starts(machine) + self.length))


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
        self.paths = np.zeros((0, jobs.n), dtype=bool)

    @property
    def closed(self) -> bool:
        """True if the optimum is proved."""
        return self.lower >= self.upper

    def search(self, machine: Ints, kicks: int) -> None:
        """Search locally from an assignment.

        Parameters
        ----------
        machine
            Machine of every job, i64[n]; changed.
        kicks
            Number of repetitions.
        """
        jobs = self.jobs
        cost = improve(jobs.length, jobs.weight, machine, jobs.machines, kicks, self.lower, self._seed)
        self.paths = np.vstack([machine == np.arange(jobs.machines)[:, None], self.paths])
        if cost < self.upper:
            self.upper, self.machine = int(cost), machine.copy()
            self._tell()

    def run(self) -> None:
        """Search until the optimum is proved, or the time is up."""
        for _ in range(MORE_KICKS):
            if not self.deadline.passed:
                self.search(self.machine.copy(), KICKS)
        self._raise(int(self.jobs.weight @ self.jobs.length))
        ticket, whole = count(), np.packbits(self.jobs.open_starts()).tobytes()
        # The first price of a job is what the best schedule would save without it: its cost, and its length for all
        # jobs after it.
        weight, length = self.jobs.weight, self.jobs.length
        after = np.zeros(self.jobs.n)
        for i in range(self.jobs.machines):
            on_machine = self.machine == i
            after[on_machine] = weight[on_machine].sum() - np.cumsum(weight[on_machine])
        first = np.asarray(weight * (self.jobs.starts(self.machine) + length) + length * after)
        nodes = [_Node(self.lower, 0, next(ticket), whole, first)]
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

    def _solve(self, node: _Node, alone: bool) -> tuple[Floats, Floats, Bools]:
        """Solve the LP of a node, whose bound rises; return (mean start of every job, its variance, open starts)."""
        jobs = self.jobs
        shape = (jobs.n, jobs.horizon + 1)
        bits = np.unpackbits(np.frombuffer(node.bits, dtype=np.uint8), count=shape[0] * shape[1])
        open_start = bits.reshape(shape).astype(bool)
        best, best_price, pricings = -FAR, np.zeros(jobs.n, dtype=np.int64), count(1)

        def price(duals: Floats) -> PricedColumns:
            nonlocal best, best_price
            wished = np.rint(np.clip(duals[:-1], -jobs.penalty, jobs.penalty) * jobs.scale).astype(np.int64)
            proved, paths = self._price(wished, open_start)
            if proved > best:
                best, best_price, node.price = proved, wished, wished / jobs.scale
                node.bound = max(node.bound, -(-best // jobs.scale))
                if alone:
                    self._raise(node.bound)
            columns = self._columns(paths)
            if next(pricings) % ROUNDS == 0:
                self._thin(best_price, best, open_start)
            bound = math.inf if node.bound >= self.upper else proved / jobs.scale
            return PricedColumns(columns.value, columns.A, bound)

        rows = np.append(np.ones(jobs.n), jobs.machines)
        while True:
            fits = self._fit(self.paths, open_start)
            generated = generate_columns(
                price,
                rows,
                rows,
                start=self._columns(self.paths[fits], artificial=True),
                duals=np.append(node.price, 0.0),
                smoothing=SMOOTH,
                tolerance=CLOSE / max(1, self.upper),
                deadline=self.deadline,
            )
            paths_of_lp = generated.columns.A[:-1, jobs.n + 1 :].T.toarray() > 0
            self.paths = np.vstack([paths_of_lp[::-1], self.paths[~fits]])[:PATHS]
            used = np.maximum(generated.x[jobs.n + 1 :], 0.0)
            if node.bound >= self.upper or self.deadline.passed:
                break
            self._thin(best_price, best, open_start)
            if self._fit(paths_of_lp[used > NOTHING], open_start).all():
                break  # else the LP uses paths that have been closed meanwhile; without them its value is higher
        start = self._starts(paths_of_lp).astype(np.float64)
        mean = used @ start
        spread = used @ start**2 - mean**2
        if node.bound < self.upper:
            self.search(jobs.in_turn(np.argsort(mean, kind="stable")), MORE_KICKS)
        return mean, spread, open_start

    def _fit(self, paths: Bools, open_start: Bools) -> Bools:
        """Return which paths use open starts only, bool[k]."""
        start = np.minimum(self._starts(paths), self.jobs.horizon)  # H where no job starts
        return np.asarray((open_start[np.arange(self.jobs.n), start] | ~paths).all(axis=1))

    def _starts(self, paths: Bools) -> Ints:
        """Return the start of every job on each path, 0 for others, i64[k, n]."""
        return np.asarray((np.cumsum(paths * self.jobs.length, axis=1) - self.jobs.length) * paths)

    def _columns(self, paths: Bools, artificial: bool = False) -> PricedColumns:
        """Return paths as columns; the rows are the jobs and one that counts machines.

        With ``artificial`` a column for each row comes first.
        """
        jobs = self.jobs
        value = (paths * (self._starts(paths) + jobs.length)) @ jobs.weight
        A = np.vstack([paths.T, np.ones((1, len(paths)))])
        if artificial:
            value = np.concatenate([jobs.penalty, [jobs.penalty.max()], value])
            A = np.hstack([np.eye(jobs.n + 1), A])
        return PricedColumns(value.astype(np.float64), sp.csc_array(A.astype(np.float64)))

    def _price(self, price: Ints, open_start: Bools) -> tuple[int, Bools]:
        """Return (bound that prices prove, times ``scale``; cheapest path to each of the cheapest loads, bool[k, n])."""
        jobs = self.jobs
        least_before(jobs.length, jobs.weight * jobs.scale, price, open_start, self._before)
        final = self._before[-1, jobs.first_end :]
        ends = np.argsort(final, kind="stable")[:COLUMNS]
        ends = ends[final[ends] < FAR]
        taken = np.zeros((ends.size, jobs.n), dtype=bool)
        paths_to(jobs.length, self._before, ends + jobs.first_end, taken)
        return sum(price.tolist()) + jobs.machines * int(final[ends[0]]) if ends.size else FAR, taken

    def _thin(self, price: Ints, proved: int, open_start: Bools) -> None:
        """Close the starts that are in no better schedule, by the prices with the best bound."""
        jobs = self.jobs
        weight = jobs.weight * jobs.scale
        least_before(jobs.length, weight, price, open_start, self._before)
        least_after(jobs.length, weight, price, open_start, jobs.first_end, self._after)
        spare = (self.upper - 1) * jobs.scale - proved
        allowed = int(self._before[-1, jobs.first_end :].min()) + spare
        close_starts(jobs.length, weight, price, self._before, self._after, allowed, open_start)


@dataclass(order=True)
class _Node:
    bound: int
    depth: int  # negative, so that the deepest of equal bounds comes first
    ticket: int
    bits: bytes = field(compare=False)  # its open starts
    price: Floats = field(compare=False)


def _parts(open_start: Bools, mean: Floats, spread: Floats) -> list[Bools]:
    """Return two copies: a job starts by its mean, or later; none if only one schedule is left."""
    many = open_start.sum(axis=1) > 1
    if not many.any():
        return []
    j = int(np.argmax(np.where(many, spread, -np.inf)))
    slots = np.flatnonzero(open_start[j])
    last = int(np.clip(np.floor(mean[j] + NOTHING), slots[0], slots[-2]))
    early, late = open_start.copy(), open_start.copy()
    early[j, last + 1 :] = False
    late[j, : last + 1] = False
    return [early, late]
