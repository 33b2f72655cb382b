"""Orders of the starts and ends of jobs whose speed depends on which jobs are active: a linear program for each.

**Problem**: n jobs with e_j seconds of work at full speed and release dates r_j, a list of sets of jobs that may be active
at once, and in each of them the rate of every job; minimise sum C_j. Transfers on a network
(`optsched.solvers.transfer_search`) and jobs on given GPUs (`optsched.solvers.sharing_orders`) are of this kind.

**Method**: enumerate the orders of the 2n events. An order says which jobs are active between any two events, so that for

    t >= 0 seconds of the first event, d_e >= 0 seconds between events e and e + 1, e = 0..2n-2,

j active from event s_j to event f_j, v_je its rate between e and e + 1,

    min  sum_j ( t + sum_{e < f_j} d_e )
    s.t. sum_{s_j <= e < f_j} d_e v_je >= e_j                    every j    (1)  done, multiplier u_j >= 0
         t + sum_{e < s_j} d_e >= r_j                            every j    (2)  released, multiplier w_j >= 0

(1) allows an active job to idle. Where a job is no slower when fewer are active, that does not lower the optimum: let the
same starts run without idling; as long as every job is at least as far as before, those that still run are among those that
ran before, so none is slower. With it every order is feasible and its dual too, which gives a certificate.

**Certificate**: u, w >= 0 prove sum_j (e_j u_j + r_j w_j) for an order if sum_j w_j <= n and, for every e,
sum_{j active in e} u_j v_je + sum_{s_j > e} w_j <= the number of ends after e. Both right sides are >= 1, so multipliers
of the solver are made feasible in exact arithmetic by one division; the least value over all orders bounds the optimum.

**Guarantee**: exact, to the tolerance of the LP solver. **Complexity**: one LP of 2n columns and rows an order, many of them
side by side in one call of the solver: some 0.15 ms each; milliseconds more with the certificate.
**Reference**: own method; the certificate is LP duality.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np
import scipy.sparse as sp

from optsched.errors import OptschedError
from optsched.problem.arrays import Floats
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import Session

EventOrder = tuple[int, ...]  # the job of every event: first its start, then its end
Slowdowns = Callable[[list[int]], Mapping[int, Fraction] | None]
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
SIDE_BY_SIDE = 100  # orders in one call of the solver: five times as fast as one by one


@dataclass(frozen=True)
class LeastOrder:
    """``value`` sum C_j of the best ``order``, ``start`` f64[n] seconds; ``orders`` were solved.

    ``bound``: the exact lower bound that the multipliers of all orders prove, None where it was not asked for.
    """

    value: float
    order: EventOrder
    start: Floats
    orders: int
    bound: Fraction | None


@dataclass(frozen=True)
class EventOrders:
    """``work`` e_j and ``release`` r_j, seconds; ``rates[active][j]`` v_j in every set of jobs (bits) that may be active."""

    work: Sequence[Fraction]
    release: Sequence[Fraction]
    rates: Mapping[int, Sequence[Fraction]]

    @classmethod
    def of(cls, work: Sequence[Fraction], release: Sequence[Fraction], slowdowns: Slowdowns) -> EventOrders:
        """``slowdowns(active)``: seconds that one of work takes each active job; None: they may not be active at once."""
        rates = {}
        for bits in range(1 << len(work)):
            slow = slowdowns([j for j in range(len(work)) if bits >> j & 1])
            if slow is not None:
                rates[bits] = [1 / slow[j] if j in slow else Fraction(0) for j in range(len(work))]
        return cls(work, release, rates)

    def __iter__(self) -> Iterator[EventOrder]:
        """Every order in which the active jobs are always a set of `rates`; (2n)! / 2^n of them where all sets are."""
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
        """Solve the program of every order; ``certify``: also prove a bound in fractions. n >= 1."""
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
        """The programs of ``orders`` side by side, times in ``unit`` seconds.

        Of every order the columns t, d_0, ..., d_2n-2, then of the next; rows (1) of every j, then (2).
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
        """The exact bound on the order's value that multipliers (u_j, then w_j) prove once they are made feasible."""
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
