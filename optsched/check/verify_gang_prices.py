"""Prices of running jobs over time, for verifiers without optsched: which gangs fit together, and what they pay at most.

Beside verify_on_clusters.py. As verify_time_prices.py; and job j pays own_prices[j] = [k, [p, ...]] for a second in which it
runs in cell k, k + 1, ..., beside its GPUs; it pays nothing in other cells, of which none before k may be of its time.
**Theorem** priced-gangs: the sum of what jobs cost and pay at least, less, in every second, what all GPUs are worth and the
most own prices of gangs that have no more GPUs together than there are (optsched/bounds/priced_gangs.py).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from optsched.check.verify_case import DUAL, Data, need, the
    from optsched.check.verify_sharing import whole
    from optsched.check.verify_time_prices import (
        LARGEST_PRICE,
        LeastCost,
        Minima,
        PricedCells,
        exponent,
        stated_cells,
        stated_minima,
    )
else:  # copied
    from verify_case import DUAL, Data, need, the
    from verify_sharing import whole
    from verify_time_prices import LARGEST_PRICE, LeastCost, Minima, PricedCells, exponent, stated_cells, stated_minima

MOST_CELLS, MOST_PAIRS, MOST_FILLED = 1 << 15, 600_000, 200_000_000  # own prices; times GPUs: a minute or two


def priced_gangs(case: Any, data: Data) -> tuple[Fraction, Data]:
    """Every job's minimum is held against all moments at which it may end; knapsacks are filled as well as can be."""
    rates, _ = case.rates(data)
    cells, minima = stated_cells(data, case.count, MOST_CELLS), stated_minima(data, len(rates))
    given, unit = the(list, data, "own_prices", DUAL), Fraction(2) ** -exponent(data, "price_exponent")
    need(len(given) == len(rates) and all(map(legal_row, given)), "data.own_prices: [cell, prices] of every job", DUAL)
    need(sum(len(row) for _, row in given) <= MOST_PAIRS, f"more than {MOST_PAIRS} own prices: too many to try")
    paid: list[list[tuple[int, int]]] = [[] for _ in cells.prices]  # (GPUs, price) of every cell
    for j, (first, row) in enumerate(given):
        need(first + len(row) <= len(paid), f"data.own_prices[{j}]: there are no such cells", DUAL)
        release = Fraction(case.release[j], case.unit)
        need(cells.moments[first] <= release, f"data.own_prices[{j}] begin after the job's arrival", DUAL)
        least = unit_of(data) * minima[j]
        job = LeastCost(
            release, case.work[j], Fraction(case.weight[j], case.shares), Fraction(case.moment[j], case.unit), least
        )
        mine = own_cells(cells, first, [unit * price for price in row], case.gpus[j])
        held = Minima(mine, adds=False).hold(job, rates[j])
        need(held, f"data.minima[{j}]: the job costs and pays less than it says", DUAL)
        for k, price in enumerate(row, start=first):
            paid[k] += [(case.gpus[j], price)] if price else []
    need(sum(map(len, paid)) * case.total <= MOST_FILLED, "too many gangs and GPUs to try")
    worth = cells.worth(case.count) + unit * sum(
        ((b - a) * most_paid(some, case.total) for (a, b), some in zip(pairwise(cells.moments), paid, strict=True)),
        Fraction(0),
    )
    names = ("moments", "moment_exponent", "prices", "price_exponent", "own_prices", "minima", "minimum_exponent")
    return unit_of(data) * sum(minima) - worth, {name: data[name] for name in names}


def unit_of(data: Data) -> Fraction:
    """Of the minima."""
    return Fraction(2) ** -exponent(data, "minimum_exponent")


def legal_row(row: Any) -> bool:
    """Is it a cell, and prices from there on?"""
    legal = type(row) is list and len(row) == 2 and type(row[0]) is int and row[0] >= 0 and type(row[1]) is list
    return legal and len(row[1]) > 0 and whole(row[1], LARGEST_PRICE)


def own_cells(cells: PricedCells, first: int, row: list[Fraction], gang: int) -> PricedCells:
    """The cells of a job, at its own prices of a GPU."""
    last = first + len(row)
    prices = [
        {t: price + own / gang for t, price in by_type.items()}
        for by_type, own in zip(cells.prices[first:last], row, strict=True)
    ]
    return PricedCells(cells.moments[first : last + 1], prices)


def most_paid(gangs: list[tuple[int, int]], total: int) -> int:
    """The most that gangs of no more than ``total`` GPUs pay together: dynamic programming over the GPUs filled."""
    if sum(gang for gang, _ in gangs) <= total:
        return sum(price for _, price in gangs)
    step = math.gcd(*(gang for gang, _ in gangs))
    best = [0] * (total // step + 1)
    for gang, price in gangs:
        size = gang // step
        best[size:] = map(max, best[size:], [paid + price for paid in best[: len(best) - size]])
    return best[-1]
