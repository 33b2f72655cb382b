"""Depth-first branch and bound over events, for jobs whose speed depends on who else runs; in floats or in fractions.

**Problem**: n jobs, released at r_j, with e_j seconds of work alone; minimise sum C_j. A subclass defines which jobs may
start together, and how fast each job runs together with others: `transfer_search` for transfers on links,
`sharing_search` for jobs that share GPUs. **Method**: at every release and completion any of the waiting
jobs may start, or none if another event will follow; then time moves to the next event. The child with the least bound goes
next; it is cut when the flow times so far plus a bound for the rest reach the incumbent. Times count from the first
release. The search adds up and compares flow times, so that clock times are never subtracted.
**Guarantee**: the best schedule among those that start jobs at releases and completions only. **Complexity**: exponential.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from optsched.errors import OptschedError
from optsched.problem.arrays import Floats
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import Session

CLOSE = 1e-12  # floats only, relative to the flow time: a bound this close to the incumbent differs by rounding
ULPS = 2  # the same, in units in the last place of every time

Number = Any  # float or Fraction
Left = dict[int, Number]  # running jobs and the seconds that each still needs alone
On = tuple[tuple[int, ...], ...]  # jobs on every GPU, if that matters
Start = tuple[Any, ...]  # job, seconds alone, and further data to keep: its option and its GPUs


@dataclass(frozen=True, slots=True)
class Moment:
    """State after an event: work left, waiting jobs, number of released jobs, flow time so far, jobs on every GPU."""

    now: Number
    left: Left
    waits: tuple[int, ...]
    come: int
    paid: Number
    on: On = ()


class EventSearch(ABC):
    """One run. ``order`` has the jobs by release, and the first ``come`` of them are released.

    ``best`` is the flow time of the schedule ``found``, (starts, ends, the rest of each `Start`); ``nodes`` is the same on
    every machine. ``node_limit``, or ``stop`` when it returns true, ends the search early, but not before it has a schedule.
    """

    def __init__(
        self,
        release: Sequence[Number],
        alone: Sequence[Number],
        number: Callable[[float], Number],
        node_limit: int | None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.n, self.number, self.zero = len(release), number, number(0)
        self.release, self.alone = list(release), list(alone)
        self.order = sorted(range(self.n), key=lambda j: self.release[j])
        last = float(max(self.release, default=0.0) + sum(self.alone))
        exact = number is Fraction
        self.share: Number = self.zero if exact else CLOSE
        self.ulps: Number = self.zero if exact else ULPS * self.n * math.ulp(last)
        self.start, self.end, self.held = [self.zero] * self.n, [self.zero] * self.n, [tuple[Any, ...]()] * self.n
        self.best: Number = math.inf
        self.found: tuple[tuple[Any, ...], ...] = (), (), ()
        self.nodes, self.limit, self.stop = 0, math.inf if node_limit is None else node_limit, stop

    @abstractmethod
    def choices(self, at: Moment) -> Iterator[tuple[tuple[Start, ...], On]]:
        """Yield the sets of jobs that may start now, each with the jobs on every GPU afterwards.

        Parameters
        ----------
        at
            The current state.
        """

    @abstractmethod
    def slowdowns(self, left: Left, on: On) -> dict[int, Number]:
        """Return the seconds that a second of work takes each running job.

        Parameters
        ----------
        left
            Running jobs and their seconds of work left.
        on
            Jobs on every GPU.
        """

    @abstractmethod
    def least(self, now: Number, left: Left, later: Iterable[int]) -> Number:
        """Return a lower bound on the flow times of running jobs and of those that have not started.

        Parameters
        ----------
        now
            Current time.
        left
            Running jobs and their seconds of work left.
        later
            Jobs that have not started.
        """

    def at_zero(self, on: On = ()) -> Moment:
        """Return the state before any job starts.

        Parameters
        ----------
        on
            Jobs on every GPU.
        """
        come = self._come(self.zero, 0)
        return Moment(self.zero, {}, tuple(self.order[:come]), come, self.zero, on)

    def finished(self, at: Moment) -> bool:
        """Return whether all jobs are released and complete.

        Parameters
        ----------
        at
            The current state.
        """
        return not at.left and not at.waits and at.come == self.n

    def explore(self, at: Moment) -> bool:
        """Find the best schedule from a state on, and return whether the search was complete.

        Parameters
        ----------
        at
            The state.
        """
        if self.finished(at):
            self.keep(at.paid)
            return True
        children: list[tuple[Number, int, tuple[Start, ...], Moment, list[int]]] = []
        for starts, on in self.choices(at):
            if not at.left and not starts and at.come == self.n:
                continue  # no event would follow
            if self.best < math.inf and (self.nodes >= self.limit or self.stop()):
                return False
            self.nodes += 1
            then, ended = self.advance(at, starts, on)
            least = then.paid + self.least(then.now, then.left, (*then.waits, *self.order[then.come :]))
            children.append((least, len(children), starts, then, ended))
        for least, _, starts, then, ended in sorted(children, key=lambda child: child[:2]):
            # no schedule with this bound is better than the best by more than rounding
            if self.best < math.inf and least >= self.best - self.best * self.share - self.ulps:
                break
            self.enter(at.now, starts, then, ended)
            if not self.explore(then):
                return False
        return True

    def enter(self, now: Number, starts: Sequence[Start], then: Moment, ended: Sequence[int]) -> None:
        """Note which jobs start now, and which end at the next event.

        Parameters
        ----------
        now
            Current time.
        starts
            Jobs that start.
        then
            State after the next event.
        ended
            Jobs that end at the next event.
        """
        for j, _, *held in starts:
            self.start[j], self.held[j] = now, tuple(held)
        for j in ended:
            self.end[j] = then.now

    def keep(self, flow_time: Number) -> None:
        """Take the current schedule as the best one if it is better.

        Parameters
        ----------
        flow_time
            Its flow time.
        """
        if flow_time < self.best:
            self.best, self.found = flow_time, (tuple(self.start), tuple(self.end), tuple(self.held))

    def _come(self, now: Number, come: int) -> int:
        while come < self.n and self.release[self.order[come]] <= now:
            come += 1
        return come

    def advance(self, at: Moment, starts: Sequence[Start], on: On = ()) -> tuple[Moment, list[int]]:
        """Move to the next event; return the state after it, and the jobs that end there.

        Parameters
        ----------
        at
            The current state.
        starts
            Jobs that start now.
        on
            Jobs on every GPU after the starts.
        """
        begun = {start[0]: start[1] for start in starts}
        left = at.left | begun
        slow = self.slowdowns(left, on)
        need = {j: seconds * slow[j] for j, seconds in left.items()}
        coming = [self.release[self.order[at.come]] - at.now] if at.come < self.n else []
        step = min([*need.values(), *coming])
        ended = [j for j, seconds in need.items() if seconds <= step]
        rest = {j: max(left[j] - step / slow[j], self.zero) for j, seconds in need.items() if seconds > step}
        # a release is an exact time, not a sum of steps
        then = self.release[self.order[at.come]] if coming and step == coming[0] else at.now + step
        come = self._come(then, at.come)
        waits = (*(j for j in at.waits if j not in begun), *self.order[at.come : come])
        on = tuple(tuple(j for j in residents if j in rest) for residents in on) if ended else on
        stayed = sum((then - self.release[j] for j in ended), self.zero)
        return Moment(then, rest, waits, come, at.paid + stayed, on), ended


# Orders of the starts and ends of jobs whose speed depends on which jobs are active: a linear program for each.
#
# **Problem**: n jobs with e_j seconds of work at full speed and release dates r_j, a list of sets of jobs that may be active
# at once, and in each of them the rate of every job; minimise sum C_j.
#
# **Method**: enumerate the orders of the 2n events. An order determines which jobs are active between two events. With
#
#     t >= 0 seconds of the first event, d_e >= 0 seconds between events e and e + 1, e = 0..2n-2,
#
# j active from event s_j to event f_j, v_je its rate between e and e + 1,
#
#     min  sum_j ( t + sum_{e < f_j} d_e )
#     s.t. sum_{s_j <= e < f_j} d_e v_je >= e_j                    every j    (1)  done, multiplier u_j >= 0
#          t + sum_{e < s_j} d_e >= r_j                            every j    (2)  released, multiplier w_j >= 0
#
# (1) allows an active job to idle. If a job is no slower when fewer are active, that does not lower the optimum. Proof:
# let the same starts run without idling. As long as every job is at least as far as before, the jobs that still run are
# among those that ran before, so none is slower. With idling every order is feasible and its dual too, which gives a
# certificate.
#
# **Certificate**: u, w >= 0 prove sum_j (e_j u_j + r_j w_j) for an order if sum_j w_j <= n and, for every e,
# sum_{j active in e} u_j v_je + sum_{s_j > e} w_j <= the number of ends after e. Both right sides are >= 1, so multipliers
# of the solver are made feasible in exact arithmetic by one division; the least value over all orders bounds the optimum.
#
# **Guarantee**: exact, to the tolerance of the LP solver. **Complexity**: one LP of 2n columns and rows an order, many
# of them in one call of the solver: some 0.15 ms each; milliseconds more with the certificate.
# **Reference**: own method; the certificate is LP duality.

EventOrder = tuple[int, ...]  # the job of every event: first its start, then its end
Slowdowns = Callable[[list[int]], Mapping[int, Fraction] | None]
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
SIDE_BY_SIDE = 100  # orders in one call of the solver, which is five times as fast as one call each


@dataclass(frozen=True)
class LeastOrder:
    """Best order of events.

    ``value`` is sum C_j of the best ``order``, ``start`` f64[n] in seconds; ``orders`` is the number of orders solved.
    ``bound``: the exact lower bound that the multipliers of all orders prove, None if it was not requested.
    """

    value: float
    order: EventOrder
    start: Floats
    orders: int
    bound: Fraction | None


@dataclass(frozen=True)
class EventOrders:
    """Jobs of which some sets may be active at once.

    ``work`` e_j and ``release`` r_j in seconds; ``rates[active][j]``: v_j in every set of jobs (bits) that may be active.
    """

    work: Sequence[Fraction]
    release: Sequence[Fraction]
    rates: Mapping[int, Sequence[Fraction]]

    @classmethod
    def of(cls, work: Sequence[Fraction], release: Sequence[Fraction], slowdowns: Slowdowns) -> EventOrders:
        """Return the orders of jobs with the given slow-downs.

        Parameters
        ----------
        work
            e_j, seconds of work at full speed.
        release
            r_j in seconds.
        slowdowns
            ``slowdowns(active)``: seconds that one second of work takes each active job; None: they may not be
            active at once.
        """
        rates = {}
        for bits in range(1 << len(work)):
            slow = slowdowns([j for j in range(len(work)) if bits >> j & 1])
            if slow is not None:
                rates[bits] = [1 / slow[j] if j in slow else Fraction(0) for j in range(len(work))]
        return cls(work, release, rates)

    def __iter__(self) -> Iterator[EventOrder]:
        """Yield every order in which the active jobs are always a set of `rates`.

        There are (2n)! / 2^n orders if all sets are allowed.
        """
        n = len(self.work)

        def grow(order: EventOrder, active: int, coming: frozenset[int]) -> Iterator[EventOrder]:
            if len(order) == 2 * n:
                yield order
            for j in range(n):
                after = active ^ 1 << j
                if active >> j & 1 or (j in coming and after in self.rates):
                    yield from grow((*order, j), after, coming - {j})

        return grow((), 0, frozenset(range(n)))

    def least(self, *, certify: bool = False) -> LeastOrder:
        """Solve the program of every order. n >= 1.

        Parameters
        ----------
        certify
            Prove a bound in fractions, too.

        Raises
        ------
        OptschedError
            If the solver does not solve a program.
        """
        width = 2 * len(self.work)
        unit = max(float(r + e) for r, e in zip(self.release, self.work, strict=True))
        value, order, times, solved = math.inf, EventOrder(), np.zeros(width), 0
        bound: Fraction | None = None
        orders = iter(self)
        while batch := list(islice(orders, SIDE_BY_SIDE)):
            program = self.program(batch, unit)
            session = Session(program, options=TIGHT)
            outcome = session.solve()
            if outcome.status != "optimal" or outcome.x is None:
                raise OptschedError(f"the programs of {len(batch)} orders of events were not solved: {outcome.status}")
            x = outcome.x.reshape(-1, width)
            values = (program.c.reshape(-1, width) * x).sum(axis=1) * unit
            best = int(np.argmin(values))
            if values[best] < value:
                value, order, times = float(values[best]), batch[best], np.cumsum(x[best]) * unit
            if certify:
                rows = session.duals().reshape(-1, width)
                proved = min(self.proved(one, row) for one, row in zip(batch, rows, strict=True))
                bound = proved if bound is None else min(bound, proved)
            solved += len(batch)
        return LeastOrder(value, order, times[[order.index(j) for j in range(width // 2)]], solved, bound)

    def program(self, orders: Sequence[EventOrder], unit: float = 1.0) -> LinearProgram:
        """Return the programs of several orders in one block-diagonal program.

        Every order has the columns t, d_0, ..., d_2n-2 and the rows (1) of every j, then (2).

        Parameters
        ----------
        orders
            The orders.
        unit
            Unit of time in seconds.
        """
        n = len(self.work)
        width, column, speeds = 2 * n, np.arange(2 * n), np.zeros((1 << n, n))
        for active, rates in self.rates.items():
            speeds[active] = [float(rate) for rate in rates]
        at = np.array(orders, dtype=np.int64)
        ends = np.sort(np.argsort(at, axis=1, kind="stable").reshape(-1, n, 2), axis=2)  # [order, j]: both events of j
        between = np.bitwise_xor.accumulate(1 << at, axis=1)[:, :-1]
        A = np.zeros((len(orders), width, width))
        A[:, :n, 1:] = speeds[between].transpose(0, 2, 1)
        A[:, n:, :] = column <= ends[:, :, :1]
        cost = (column <= ends[:, :, 1:]).sum(axis=1).astype(np.float64)
        block, row, col = np.nonzero(A)
        shape = (len(orders) * width, len(orders) * width)
        matrix = sp.csc_array(
            sp.coo_array((A[block, row, col], (block * width + row, block * width + col)), shape=shape)
        )
        need = np.tile(np.array([float(x) for x in (*self.work, *self.release)]) / unit, len(orders))
        return LinearProgram.from_arrays(cost.ravel(), matrix, need, np.full(need.size, np.inf))

    def proved(self, order: EventOrder, multipliers: Floats) -> Fraction:
        """Return the exact bound on an order's value that the multipliers prove once they are made feasible.

        Parameters
        ----------
        order
            The order of events.
        multipliers
            u_j of every job, then w_j, f64[2 n].
        """
        n, zero = len(self.work), Fraction(0)
        y = [max(Fraction(value), zero) for value in multipliers.tolist()]
        u, w = y[:n], y[n:]
        coming, open_, active = set(range(n)), n, 0
        excess = max(Fraction(1), sum(w, zero) / n)
        for j in order[:-1]:
            open_ -= j not in coming
            coming.discard(j)
            active ^= 1 << j
            load = sum((u[i] * rate for i, rate in enumerate(self.rates[active]) if rate), zero)
            excess = max(excess, (load + sum((w[i] for i in coming), zero)) / open_)
        return sum((self.work[j] * u[j] + self.release[j] * w[j] for j in range(n)), zero) / excess
