"""The method ``machine-schedules``: gangs of one size released at 0, by prices, then a search over loads of the machines.

**Problem** P || sum w_j C_j: on G GPUs floor(G / g) gangs of g run together, so they are identical machines.
Every cost must rise from the moment at which the job could be done: completion and flow times do, tardiness does not.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

import numpy as np

from optsched.bounds.lp_dual import PriceRow, Prices, integers, price_certificate
from optsched.deadline import Deadline
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.linear_program import Size
from optsched.solvers.machine_groups import Effort, regroup
from optsched.solvers.machine_loads import search_loads
from optsched.solvers.machine_prices import Flow, fluid_prices, solve_flow, start_prices
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.outcome import there
from optsched.solvers.session import Session
from optsched.solvers.smith_order import ParallelJobs, Potentials
from optsched.solvers.solve_state import SolveState, common_step

NAME = "machine-schedules"
STATES = 12_000_000  # jobs x slots: 200 MB
CERTIFYING = 5e-7  # seconds a job and slot that a certificate and its check take
QUANTUM = 1 << 20  # steps of a slot's price in a unit of cost


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
        start[order] = search.start
        state.offer_starts(grid.seconds(start), NAME)
        state.raise_bound(unavoidable + step * search.lower, "solver")

    def priced(slot: Floats) -> None:
        if 2 * jobs.n * jobs.horizon * CERTIFYING > state.left:
            return
        quantum = step / QUANTUM
        price = [units * quantum.numerator for units in np.rint(slot * QUANTUM).astype(np.int64).tolist()]
        row = PriceRow(np.ones(jobs.n, dtype=np.int64), integers(price))
        prices = Prices("time-indexed", origin, grid.unit, quantum.denominator, (row,))
        certificate = price_certificate(state.instance, state.goal.name, "gang-nonpreemptive", prices)
        if state.certificate is None or certificate.value > state.certificate.value:
            state.offer_certificate(certificate)

    search = MachineBranching(jobs, state.deadline, better, priced)
    search.run()
    better()
    ended = "" if state.closed else f"the time limit came after {search.nodes} nodes"
    return MethodReport(Session.solver, search.size, search.nodes, note=ended)


add_method(NAME, _applies, _run)


# P || sum w_j C_j by branch and bound. A node of the tree limits the starts of the jobs.
#
# **Bound** Prices (`optsched.solvers.machine_prices`) bound all schedules of a node, and close the starts that are in no
# better one (`optsched.solvers.smith_order`). They are multiples of 1 / scale, and everything after them is computed in
# integers: the solver of the flow program only proposes prices, and no bound depends on its tolerances.
# **Search** With these bounds a search over the loads of the machines (`optsched.solvers.machine_loads`) finds better
# schedules, and mostly proves that none is left. It is repeated with more states while it is not complete. In
# between a local search (`optsched.solvers.machine_groups`) improves the schedule, and a better one closes more starts.
# **Branching** where there would be too many states, by execution windows (van den Akker, Hoogeveen and van de Velde 1999):
# the job whose start varies most in the flow program starts by its mean, or after it.
# **Complexity** O(n H) a bound, H about sum p / m, and a flow program a node. **Guarantee** optimal at the end; a valid
# interval at any time.

WIDTHS = (1_000, 10_000, 100_000, 1_000_000)  # states of the searches at the root; other nodes do without the last
# local searches at the root, after the searches of these widths; other nodes have only the second one
GROUPS = (Effort(2, 5, 1_000, 300), Effort(4, 8, 2_000, 300), Effort(6, 12, 10_000, 100), Effort(4, 8, 4_000, 300))
IMPROVING = 2  # number of widths at the root with a search for any better schedule of all machines
FEW = (0.15, 0.5, np.inf)  # parts of the gap of the list schedule: starts that cost less are in the flow programs
ARCS = 100_000  # largest number of starts of a flow program, if not of the first
RISE = 100.0  # parts of the gap by which a price may rise in a flow program
MISSED = 0.1  # units of cost by which paths of other starts may lower the bound of a flow program
BEYOND = float(1 << 62)  # price of a start that does not exist
NOTHING = 1e-6  # tolerance of a mean start


class MachineBranching:
    """The search. ``start``: starts of the best schedule so far, ``upper`` its cost, ``lower`` the bound, both integers.

    ``on_better()`` is called when either has changed, ``on_prices(slot)`` with the prices of the slots at the root. `run` to
    the end or the ``deadline``.
    """

    def __init__(
        self,
        jobs: ParallelJobs,
        deadline: Deadline,
        on_better: Callable[[], None],
        on_prices: Callable[[Floats], None] = lambda _slot: None,
    ) -> None:
        self.jobs, self.deadline, self._tell, self._price = jobs, deadline, on_better, on_prices
        self.start = jobs.list_starts()
        self.upper, self.lower, self.nodes = jobs.cost(self.start), 0, 0
        self.size, self.tries = Size(), 0

    @property
    def closed(self) -> bool:
        """True if the optimum is proved."""
        return self.lower >= self.upper

    def run(self) -> None:
        """Search until the optimum is proved, or the time is up."""
        self._raise(int(self.jobs.weight @ self.jobs.length))
        ticket, whole = count(), np.packbits(self.jobs.open_starts()).tobytes()
        price = start_prices(self.jobs, fluid_prices(self.jobs))
        nodes = [_Node(self.lower, 0, next(ticket), whole, price.min(axis=1))]
        while nodes and not self.closed and not self.deadline.passed:
            node = heapq.heappop(nodes)
            if node.bound >= self.upper:
                continue
            self.nodes += 1
            for part in self._solve(node, alone=not nodes):
                packed = np.packbits(part).tobytes()
                heapq.heappush(nodes, _Node(node.bound, node.depth - 1, next(ticket), packed, node.price))
            self._raise(min((each.bound for each in nodes), default=self.upper))

    def _raise(self, bound: int) -> None:
        if bound > self.lower:
            self.lower = min(bound, self.upper)
            self._tell()

    def _solve(self, node: _Node, alone: bool) -> list[Bools]:
        """Raise the bound of a node, search in it, and return its parts if better schedules may be left in it."""
        shape = (self.jobs.n, self.jobs.horizon + 1)
        bits = np.unpackbits(np.frombuffer(node.bits, dtype=np.uint8), count=shape[0] * shape[1])
        open_start = bits.reshape(shape).astype(bool)
        potentials, root = self._bound(node, node.price, open_start, alone), node.depth == 0
        tried = [open_start]
        if root:
            price = start_prices(self.jobs, fluid_prices(self.jobs)) - node.price[:, None]
            gap = max(self.upper - potentials.bound / potentials.scale, 1.0)
            tried = [price <= min(part * gap, BEYOND) for part in FEW]
            self._improve(node, potentials, WIDTHS[0])
        flow = self._flow(node, potentials, tried, alone)
        potentials = self._bound(node, node.price, open_start, alone)
        for i, width in enumerate(WIDTHS if root else WIDTHS[:-1]):
            if root and i < IMPROVING:
                self._improve(node, potentials, width)
            self._search(node, potentials, width, alone)
            if root or i == 1:
                self._regroup(node, potentials, GROUPS[i])
        if not root:
            self._improve(node, potentials, WIDTHS[0])
        if node.bound >= self.upper:
            return []
        return [open_start] if self.deadline.passed else _parts(open_start, flow)

    def _bound(self, node: _Node, price: Floats, open_start: Bools, alone: bool) -> Potentials:
        """Raise the bound of a node by prices, and close the starts that are in no better schedule."""
        potentials = Potentials.at(self.jobs, price, open_start)
        self._close(node, potentials, alone)
        return potentials

    def _close(self, node: _Node, potentials: Potentials, alone: bool) -> None:
        self._lift(node, min(-(-potentials.bound // potentials.scale), self.upper), alone)
        if node.bound < self.upper:
            potentials.close(self.upper - 1, potentials.open_start)
            potentials.look_back()
            if potentials.bound > (self.upper - 1) * potentials.scale:
                self._lift(node, self.upper, alone)

    def _lift(self, node: _Node, bound: int, alone: bool) -> None:
        node.bound = max(node.bound, bound)
        if alone:
            self._raise(node.bound)

    def _flow(self, node: _Node, potentials: Potentials, tried: list[Bools], alone: bool) -> Flow | None:
        """Solve the flow program of a node over more and more starts, until its prices hold for the others, too.

        Its prices are then those of the node. The root's is solved even if the search has proved the optimum: its prices of
        slots can be verified.
        """
        flow, root = None, node.depth == 0
        for starts in tried:
            if (node.bound >= self.upper and not root) or (flow and starts.sum() > ARCS) or self.deadline.passed:
                break
            most = RISE * max(self.upper - potentials.bound / potentials.scale, 1.0)
            solved = solve_flow(self.jobs, starts, potentials.price / potentials.scale, most, self.deadline)
            if solved is None:
                break
            flow, self.size, node.price = solved, solved.size, solved.job
            potentials = self._bound(node, flow.job, potentials.open_start, alone)
            proved = potentials.bound / potentials.scale
            if root:
                proved = min(proved, self._slots_prove(flow.slot))
            if proved >= flow.value - MISSED:
                break
        if flow and root:
            self._price(flow.slot)
        return flow

    def _slots_prove(self, slot: Floats) -> float:
        return float(start_prices(self.jobs, slot).min(axis=1).sum() - self.jobs.machines * slot.sum())

    def _improve(self, node: _Node, potentials: Potentials, width: int) -> None:
        """Search for a better schedule of a node."""
        if node.bound < self.upper - 1 and not self.deadline.passed:
            result = search_loads(self.jobs, potentials, self.upper - 1, width, self.deadline)
            self._take(node, potentials, result.start)

    def _regroup(self, node: _Node, potentials: Potentials, effort: Effort) -> None:
        """Improve the best schedule by a local search at the prices of a node."""
        if node.bound < self.upper and not self.deadline.passed:
            self.tries += 1
            start = regroup(self.jobs, self.start, potentials, self.lower, effort, self.tries, self.deadline)
            self._take(node, potentials, start)

    def _search(self, node: _Node, potentials: Potentials, width: int, alone: bool) -> None:
        """Search for schedules that cost no more than the bound, which rises while there are none."""
        while node.bound < self.upper and not self.deadline.passed:
            result = search_loads(self.jobs, potentials, node.bound, width, self.deadline)
            self._take(node, potentials, result.start)
            if not result.complete:
                break
            self._lift(node, min(node.bound + 1, self.upper), alone)

    def _take(self, node: _Node, potentials: Potentials, start: Ints | None) -> None:
        if start is not None and (cost := self.jobs.cost(start)) < self.upper:
            self.start, self.upper = start, cost
            self._tell()
            self._close(node, potentials, alone=False)


@dataclass(order=True)
class _Node:
    bound: int
    depth: int  # negative, so that the deepest of equal bounds comes first
    ticket: int
    bits: bytes = field(compare=False)  # its open starts
    price: Floats = field(compare=False)


def _parts(open_start: Bools, flow: Flow | None) -> list[Bools]:
    """Return two copies: a job starts by its mean, or later; none if only one schedule is left."""
    many = open_start.sum(axis=1) > 1
    if not many.any():
        return []
    if flow is None:
        slots = np.arange(open_start.shape[1])
        mean = (open_start @ slots) / np.maximum(open_start.sum(axis=1), 1)
        spread = open_start.sum(axis=1).astype(np.float64)
    else:
        mean, spread = flow.mean, flow.spread
    j = int(np.argmax(np.where(many, spread, -np.inf)))
    slots = np.flatnonzero(open_start[j])
    last = int(np.clip(np.floor(mean[j] + NOTHING), slots[0], slots[-2]))
    early, late = open_start.copy(), open_start.copy()
    early[j, last + 1 :] = False
    late[j, : last + 1] = False
    return [early, late]
