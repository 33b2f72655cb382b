"""Lower bounds from prices on time: a dual solution of a time-indexed LP, its value in exact arithmetic.

**Statement.** Let rows k = 1..K have widths ``u_kj >= 0`` and capacity ``U_k``: no set of gangs that fits on the G GPUs
together has more than U_k of row k. Cut time into cells of ``unit`` seconds from ``origin`` on (at or before the first
arrival), and let ``pi_kc >= 0`` be the price of a unit of row k for the whole of cell c; after the last cell all is free.
Jobs may have prices of their own, too, delta_jc >= 0: gangs that fit together pay at most D_c of these in cell c (a
knapsack). For every schedule of the class

    value >= sum_j m_j - sum_k U_k sum_c pi_kc - sum_c D_c,  m_j = min over all ways to run j of [ f_j(C_j) + what it pays ],

where j pays ``delta_jc + sum_k u_kj pi_kc`` for every cell in which it runs, in part for a part. **Proof.** At any moment
the jobs that run have at most U_k of row k, so all jobs together pay at most ``sum_k U_k sum_c pi_kc + sum_c D_c``; and each
pays, with its cost, at least m_j.
(LP duality for the start-time formulation; here it is said directly, so real-valued times need no second argument.)

**What m_j is.** Write P(t) for what j pays per second at time t, a step function.

* class ``gang-nonpreemptive``: j runs in one piece, m_j = min over starts S >= r_j of ``f_j(S + p_j)`` + the integral of P
  over [S, S + p_j].
* class ``gang``: j runs in pieces inside [r_j, C], m_j = min over C >= r_j + p_j of ``f_j(C)`` + the price of the cheapest
  p_j seconds of [r_j, C].

Seconds are rounded inward: of the price only the ``floor(p_j / unit)`` whole cells' worth are charged, in class ``gang``
from the cell on in which r_j lies. Prices are not negative, so that only lowers m_j; with times that are multiples of
``unit`` nothing is lost. What is charged is then linear in S (in C) between multiples of ``unit``: a window of whole cells
slides linearly; and of one further fraction of a cell the cheapest whole cells change by exchanging it for the dearest.
f_j has one kink. Hence the minimum is at a multiple of ``unit``, at the first possible S or C, or at the kink. After the
last cell nothing is charged any more while f_j does not fall, so no later point than the first such need be looked at.

**Rounding up.** If all times, weights and costs are integers, some optimal non-preemptive schedule has integer starts (move
jobs to the left), so its value is an integer and the bound may be rounded up. Not so with preemption.

**Rows.** The plain row is ``u_j = g_j, U = G``. Any other widths are allowed: finder and verifier compute
U_k, the largest total width of gangs that fit together (a knapsack).

Found by solvers alone (`optsched.solvers.lp_bound`, and `sequence_branching` and `partial_schedules` of
`optsched.solvers.methods`); verified by `optsched.verifier.lp_dual_proof`, which lets it claim less than its prices prove:
a solver may state what it needs.

Reference: the dual of the time-indexed LP; Dyer and Wolsey, Discrete Appl. Math. 26 (1990).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.bounds.certificate import Certificate, register_kind
from optsched.bounds.proof import prove
from optsched.bounds.regular import ExactCost, exact_costs
from optsched.classes import CLASSES
from optsched.errors import InputError
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.speeds.duration import seconds_alone

Integers = npt.NDArray[Any]  # int64, or Python integers where those could overflow

__all__ = ["KIND", "PriceRow", "Prices", "integers", "knapsack_capacity", "price_certificate", "row_capacity"]

KIND = "lp-dual"
STATEMENT = (
    "what jobs pay for time at the prices of a linear program's dual, less what all GPUs earn; found by solve alone"
)
SAFE = 1 << 61  # of intermediate results in int64


@dataclass(frozen=True)
class PriceRow:
    """One row of the LP: its widths and its prices.

    Both are i64, or Python integers (dtype object) if those would not fit.

    Attributes
    ----------
    width
        Width u_j >= 0 of every job, integers [n].
    price
        Price of every cell in units of 1 / denominator, [cells].
    """

    width: Integers
    price: Integers


@dataclass(frozen=True)
class Prices:
    """A dual solution: prices of cells of time, as integers over one denominator.

    Attributes
    ----------
    formulation
        Name of the model whose LP the prices come from; it is for the reader and proves nothing.
    origin
        Start of the first cell, in seconds.
    unit
        Length of a cell in seconds.
    denominator
        Denominator of all prices.
    rows
        Rows of the LP.
    own
        For every job, if any, the first cell in which it pays prices of its own, and these prices.
    """

    formulation: str
    origin: Fraction
    unit: Fraction
    denominator: int
    rows: tuple[PriceRow, ...]
    own: tuple[tuple[int, Integers], ...] = ()

    @property
    def cells(self) -> int:
        """Number of priced cells."""
        return max([*(row.price.size for row in self.rows), *(k + price.size for k, price in self.own)], default=0)

    def most_own(self, gpus: Ints, total: int) -> int:
        """Return the sum of all D_c, in units of 1 / denominator. Complexity O(total) a price.

        Parameters
        ----------
        gpus
            GPUs of every gang, i64[n].
        total
            GPUs of the cluster.
        """
        paid: list[list[tuple[int, int]]] = [[] for _ in range(self.cells)]
        for g, (first, price) in zip(gpus.tolist(), self.own, strict=False):
            for k, amount in enumerate(price.tolist(), start=first):
                paid[k] += [(amount, g)] if amount else []
        cells = [zip(*cell, strict=True) for cell in paid if cell]
        return sum(knapsack_capacity(integers(width), np.array(size), total) for width, size in cells)


def knapsack_capacity(width: Integers, gpus: Ints, total: int) -> int:
    """Return the largest total width of gangs that fit on the cluster together. Complexity O(n G).

    It is exact for widths of any size.

    Parameters
    ----------
    width
        Width of every gang, integers [n].
    gpus
        GPUs of every gang, i64[n].
    total
        GPUs of the cluster.
    """
    kind: Any = np.int64 if sum(width.tolist()) < SAFE else object
    best = np.zeros(total + 1, dtype=kind)
    for u, g in zip(width.tolist(), gpus.tolist(), strict=True):
        if u > 0:
            # 0/1 knapsack: the right-hand side is read before it is written
            best[g:] = np.maximum(best[g:], best[: total + 1 - g] + u)
    return int(best[-1])


def row_capacity(width: Integers, gpus: Ints, total: int) -> int:
    """Return the capacity U of a row; for the plain row the G that needs no knapsack.

    Parameters
    ----------
    width
        Width of every gang, integers [n].
    gpus
        GPUs of every gang, i64[n].
    total
        GPUs of the cluster.
    """
    return total if np.array_equal(width, gpus) else knapsack_capacity(width, gpus, total)


def price_certificate(instance: Instance, objective: str, schedule_class: str, prices: Prices) -> Certificate:
    """Return the certificate of a dual solution; its value is computed exactly, whatever the source of the prices.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    objective
        Name of the objective.
    schedule_class
        Name of the class of schedules.
    prices
        The dual solution.

    Raises
    ------
    InputError
        The objective is no sum of costs of the form base + slope max(C - kink, 0).
    """
    goal = get_objective(objective)
    if goal.maximum:
        raise InputError("prices bound sums of costs over jobs, not their maximum", field="objective", value=objective)
    costs = exact_costs(goal, instance)
    minima = list(_minima(instance, costs, schedule_class, prices))
    value = sum(minima, Fraction(0))
    for row in prices.rows:
        capacity = row_capacity(row.width, instance.gpus, instance.cluster.gpus)
        value -= capacity * Fraction(sum(row.price.tolist()), prices.denominator)
    value -= Fraction(prices.most_own(instance.gpus, instance.cluster.gpus), prices.denominator)
    # are all values of schedules with integer starts integers?
    rounded = not CLASSES.get(schedule_class).preemptive and instance.integral
    rounded = rounded and all(c.slope.denominator == c.kink.denominator == c.base.denominator == 1 for c in costs)
    if rounded:
        value = Fraction(-((-value.numerator) // value.denominator))
    return Certificate(
        instance.digest, objective, schedule_class, KIND, value, _document(instance, prices, minima, rounded)
    )


# --- the numbers -----------------------------------------------------------------------------------------------------


def _minima(instance: Instance, costs: Sequence[ExactCost], schedule_class: str, prices: Prices) -> Iterator[Fraction]:
    duration = seconds_alone(instance)
    largest = sum(int(row.width.max(initial=0)) * int(row.price.max(initial=0)) for row in prices.rows)
    largest += max((int(price.max(initial=0)) for _, price in prices.own), default=0)
    kind: Any = object if largest * (prices.cells + 1) >= SAFE else np.int64  # where a sum of prices could overflow
    stacked = [(row.width.astype(kind), row.price.astype(kind)) for row in prices.rows]
    piece = _in_pieces if CLASSES.get(schedule_class).preemptive else _in_one_piece
    for j, cost in enumerate(costs):
        release, length = Fraction(float(instance.arrival[j])) - prices.origin, Fraction(float(duration[j]))
        rate = np.zeros(prices.cells, dtype=kind)
        for width, price in stacked:
            if width[j]:
                rate[: price.size] += width[j] * price
        for k, price in prices.own[j : j + 1]:
            rate[k : k + price.size] += price
        charged, first, shift = piece(rate, prices.unit, release, length)
        money = Fraction(1, prices.denominator)
        yield _least(cost, charged, first, shift + prices.origin, prices.unit, money)


def _in_one_piece(
    rate: Integers, unit: Fraction, release: Fraction, length: Fraction
) -> tuple[Integers, Fraction, Fraction]:
    # charged[k]: the price of the cells k .. k + floor(length / unit) - 1, for a start at k unit
    cells = rate.size
    window = min(int(length // unit), cells)  # what is beyond the last cell is free
    prefix = np.concatenate([np.zeros(1, dtype=rate.dtype), np.cumsum(rate)])
    end = np.minimum(np.arange(cells + 1) + window, cells)
    return prefix[end] - prefix, release, length


def _in_pieces(
    rate: Integers, unit: Fraction, release: Fraction, length: Fraction
) -> tuple[Integers, Fraction, Fraction]:
    # charged[k]: the price of the cheapest floor(length / unit) cells of those from the release up to k, for C = k unit
    if release >= rate.size * unit:  # only free cells are left
        return np.zeros(1, dtype=rate.dtype), release + length, Fraction(0)
    begin, whole_cells = int(release // unit), int(length // unit)
    # What does not fit into the cells from the release on runs in free cells: as if it were over already, that much earlier.
    beyond = max(whole_cells - (rate.size - max(begin, 0)), 0)
    charged = _cheapest_cells(rate, begin, whole_cells - beyond)
    return charged, release + length - beyond * unit, beyond * unit


def _cheapest_cells(rate: Integers, first: int, count: int) -> Integers:
    """Return charged[k]: the sum of the ``count`` smallest of rate[first:k], with rate 0 beyond the array's end.

    Entries with fewer than ``count`` cells to choose from hold the sum of all of them; they are never asked for. The
    array ends where ``count`` free cells are available, so that beyond it the sum is 0. Complexity O(cells log count),
    Python integers.
    """
    cells = max(rate.size, first)
    charged = np.zeros(cells + count + 1, dtype=rate.dtype)
    chosen: list[int] = []  # the cheapest so far, negated: the dearest of them is on top
    total = 0
    prices = [int(v) for v in rate[first:]] + [0] * (cells - max(rate.size, first) + count)
    for k, price in enumerate(prices, start=first):
        if len(chosen) < count:
            heapq.heappush(chosen, -price)
            total += price
        elif count and price < -chosen[0]:
            total += price + heapq.heappushpop(chosen, -price)
        charged[k + 1] = total
    return charged


def _least(
    cost: ExactCost, charged: Integers, first: Fraction, shift: Fraction, unit: Fraction, money: Fraction
) -> Fraction:
    """Return min over x >= first of cost(x + shift) + money charged(x / unit).

    ``charged`` is linear between integers, and 0 beyond the array.
    """
    last = charged.size - 1
    from_cell = -int(-first // unit)

    def at(x: Fraction) -> Fraction:
        k = int(x // unit)
        part = x / unit - k
        low, high = (int(charged[i]) if i <= last else 0 for i in (k, k + 1))
        return cost.at(x + shift) + money * ((1 - part) * low + part * high)

    points = [first, max(from_cell, last) * unit]
    kink = cost.kink - shift
    if kink > first:
        points.append(kink)
    best = min(at(x) for x in points)
    if from_cell > last:
        return best
    # x = k unit: flat before the kink, then base + slope (k unit + shift - kink)
    rising = max(from_cell, min(last + 1, -int(-kink // unit)))
    flat = charged[from_cell:rising]
    if flat.size:
        best = min(best, cost.base + money * int(flat.min()))
    if rising <= last:
        best = min(best, cost.base + _least_rising(cost, charged, rising, shift, unit, money))
    return best


def _least_rising(
    cost: ExactCost, charged: Integers, rising: int, shift: Fraction, unit: Fraction, money: Fraction
) -> Fraction:
    step, start = cost.slope * unit, cost.slope * (rising * unit + shift - cost.kink)
    common = lcm(step.denominator, money.denominator)
    a, b = int(step * common), int(money * common)
    part = charged[rising:]
    k = np.arange(part.size)
    if a * part.size + b * max(abs(int(part.max())), abs(int(part.min())), 1) >= SAFE:
        k, part = k.astype(object), part.astype(object)
    return start + Fraction(int((a * k + b * part).min()), common)


# --- the document ----------------------------------------------------------------------------------------------------


def _document(instance: Instance, prices: Prices, minima: Sequence[Fraction], rounded: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "formulation": prices.formulation,
        "origin": str(prices.origin),
        "unit": str(prices.unit),
        "denominator": prices.denominator,
        "rows": [
            {
                "width": "gpus" if np.array_equal(row.width, instance.gpus) else row.width.tolist(),
                "price": row.price.tolist(),
            }
            for row in prices.rows
        ],
        "jobs": [str(m) for m in minima],
        "rounded": rounded,
    }
    return data | ({"own": [[k, price.tolist()] for k, price in prices.own]} if prices.own else {})


def integers(items: Sequence[int]) -> Integers:
    """Return integers of any size as an array: i64 if sums of two of them fit, else Python integers.

    Parameters
    ----------
    items
        Integers.
    """
    kind: Any = np.int64 if all(abs(item) < SAFE for item in items) else object
    return np.array(items, dtype=kind)


register_kind(KIND)(prove)
