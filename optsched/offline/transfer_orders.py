"""All orders of the 2n events, a linear program each: the optimum of very few transfers, with starts anywhere in time.

**Problem**: `optsched.transfers`, minimise sum C_j. **Method**: enumerate the (2n)! / 2^n orders of starts and ends (6, 90,
2,520, 113,400 for n = 2..5). An order says how many transfers run on every link between any two events, so that for

    t >= 0 seconds of the first event, d_e >= 0 seconds between events e and e + 1, e = 0..2n-2,

with j active from event s_j to event f_j, p_je = k + (k - 1) eta / b, k the largest count on its links in e:

    min  sum_j ( t + sum_{e < f_j} d_e )
    s.t. sum_{s_j <= e < f_j} d_e / p_je >= b M_j                    every j    (1)  moved, multiplier u_j >= 0
         t + sum_{e < s_j} d_e >= r_j                                every j    (2)  released, multiplier w_j >= 0

(1) allows a started transfer to idle. That does not lower the optimum: let the same starts run without idling; as long as
every transfer is at least as far as before, those that still run are among those that ran before, so no rate is lower.
With it every order is feasible and its dual too, which gives a certificate.

**Certificate**: u, w >= 0 prove sum_j (b M_j u_j + r_j w_j) for an order if sum_j w_j <= n and, for every e,
sum_{j active in e} u_j / p_je + sum_{s_j > e} w_j <= the number of ends after e. Both right sides are >= 1, so multipliers
of the solver are made feasible in exact arithmetic by one division; the least value over all orders bounds the optimum.

**Guarantee**: exact, to the tolerance of the LP solver. **Complexity**: one LP of 2n columns and rows an order, many of them
side by side in one call of the solver; about 0.3 ms an order.
**Reference**: 4.1 (A) of the AdaDUAL sheet of this project.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from optsched.errors import InputError, OptschedError
from optsched.offline.linear_program import LinearProgram
from optsched.offline.session import Session
from optsched.transfers import TransferProblem

__all__ = ["MOST", "OrderOptimum", "best_event_order", "dual_value", "event_orders", "order_program"]

Floats = npt.NDArray[np.float64]
Rates = list[list[Fraction]]
Order = tuple[int, ...]  # the transfer of every event: first its start, then its end

MOST = 5  # transfers; 7,484,400 orders for 6
SIDE_BY_SIDE = 100  # orders in one call: five times as fast as one by one


@dataclass(frozen=True)
class OrderOptimum:
    """``value`` sum C_j, ``order`` of the events, ``start`` f64[n] seconds; ``orders`` were solved.

    ``bound``: the exact lower bound that the multipliers of all orders prove, None where it was not asked for.
    """

    value: float
    order: Order
    start: Floats
    orders: int
    bound: Fraction | None


def best_event_order(problem: TransferProblem, *, certify: bool = False) -> OrderOptimum:
    """Solve the program of every order; ``certify``: also prove a bound in fractions, some milliseconds more an order.

    Raises `InputError` for no transfers and for more than `MOST`.
    """
    if not 1 <= problem.n <= MOST:
        raise InputError("not a number of transfers to enumerate", field="n", value=problem.n, legal=f"1 to {MOST}")
    unit, width = float(np.max(problem.release + problem.alone)), 2 * problem.n
    value, order, times, solved = math.inf, Order(), np.zeros(width), 0
    bound: Fraction | None = None
    rates = _rates(problem)
    orders = event_orders(problem.n)
    while batch := list(islice(orders, SIDE_BY_SIDE)):
        program = _program(problem, rates, batch, unit)
        session = Session(program)
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
            found = min(_proved(problem, rates, one, row) for one, row in zip(batch, rows, strict=True))
            bound = found if bound is None else min(bound, found)
        solved += len(batch)
    return OrderOptimum(value, order, times[[order.index(j) for j in range(problem.n)]], solved, bound)


def event_orders(n: int) -> Iterator[Order]:
    """Every order of the 2n events, (2n)! / 2^n of them."""

    def grow(order: Order) -> Iterator[Order]:
        if len(order) == 2 * n:
            yield order
        for j in range(n):
            if order.count(j) < 2:
                yield from grow((*order, j))

    return grow(())


def order_program(problem: TransferProblem, orders: list[Order], unit: float = 1.0) -> LinearProgram:
    """The programs of ``orders`` side by side, times in ``unit`` seconds.

    Of every order the columns t, d_0, ..., d_2n-2, then of the next; rows (1) of every j, then (2).
    """
    return _program(problem, _rates(problem), orders, unit)


def dual_value(problem: TransferProblem, order: Order, multipliers: Floats) -> Fraction:
    """The exact bound on the order's value that multipliers (u_j, then w_j) prove once they are made feasible."""
    return _proved(problem, _rates(problem), order, multipliers)


def _program(problem: TransferProblem, exact_rates: Rates, orders: list[Order], unit: float) -> LinearProgram:
    n, width = problem.n, 2 * problem.n
    at = np.array(orders, dtype=np.int64)
    ends = np.sort(np.argsort(at, axis=1, kind="stable").reshape(-1, n, 2), axis=2)  # [order, j]: both events of j
    column = np.arange(width)
    active = np.bitwise_xor.accumulate(1 << at, axis=1)[:, :-1]
    rates = np.array([[float(rate) for rate in row] for row in exact_rates])
    A = np.zeros((len(orders), width, width))
    A[:, :n, 1:] = rates[active].transpose(0, 2, 1)
    A[:, n:, :] = column <= ends[:, :, :1]
    cost = (column <= ends[:, :, 1:]).sum(axis=1).astype(np.float64)
    block, row, col = np.nonzero(A)
    shape = (len(orders) * width, len(orders) * width)
    matrix = sp.csc_array(sp.coo_array((A[block, row, col], (block * width + row, block * width + col)), shape=shape))
    need = np.tile(np.concatenate([problem.alone, problem.release]) / unit, len(orders))
    return LinearProgram.from_arrays(cost.ravel(), matrix, need, np.full(need.size, np.inf))


def _proved(problem: TransferProblem, rates: Rates, order: Order, multipliers: Floats) -> Fraction:
    n = problem.n
    y = [max(Fraction(value), Fraction(0)) for value in multipliers.tolist()]
    u, w = y[:n], y[n:]
    coming, open_, active = set(range(n)), n, 0
    excess = max(Fraction(1), sum(w, Fraction(0)) / n)
    for j in order[:-1]:
        open_ -= j not in coming
        coming.discard(j)
        active ^= 1 << j
        load = sum((u[i] * rate for i, rate in enumerate(rates[active]) if rate), Fraction(0))
        excess = max(excess, (load + sum((w[i] for i in coming), Fraction(0))) / open_)
    b = Fraction(problem.contention.seconds_per_byte)
    sizes, releases = problem.size.tolist(), problem.release.tolist()
    return sum((b * Fraction(sizes[j]) * u[j] + Fraction(releases[j]) * w[j] for j in range(n)), Fraction(0)) / excess


def _rates(problem: TransferProblem) -> Rates:
    """1 / p_j for every set of active transfers (bit j: transfer j) and every j; 0 for those that are not in the set."""
    eta = Fraction(problem.contention.penalty) / Fraction(problem.contention.seconds_per_byte)
    table = []
    for active in range(1 << problem.n):
        inside = [j for j in range(problem.n) if active >> j & 1]
        carried = Counter(link for j in inside for link in problem.links[j])
        row = [Fraction(0)] * problem.n
        for j in inside:
            k = max(carried[link] for link in problem.links[j])
            row[j] = 1 / (k + (k - 1) * eta)
        table.append(row)
    return table
