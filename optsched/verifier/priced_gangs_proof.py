"""Theorem priced-gangs, of sums: prices of GPUs over time and of running gangs, of which not all fit together.

Job j also pays own_prices[j] = [k, [p, ...]] for a second in which it runs in cell k, k + 1, ..., in addition to its GPUs,
and nothing in other cells, of which none before k may be of its time. The bound is the sum of what jobs cost and pay at
least, less, in every second, what all GPUs are worth and the most own prices of gangs that have no more GPUs together than
the cluster (optsched/bounds/priced_gangs.py).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

from .certified_case import Case, Proof
from .document_fields import LARGEST_PRICE, Data, read_exponent, read_field, whole
from .gang_knapsack import by_cell, most_together
from .priced_cells import LeastCost, Minima, PricedCells, stated_cells
from .priced_time_proof import stated_minima
from .refusal import DUAL, need

MOST_CELLS = 1 << 15
MOST_PAIRS, MOST_FILLED = 600_000, 200_000_000  # own prices; times GPUs: a minute or two


def priced_gangs(case: Case, data: Data) -> Proof:
    """Prove the sum of minima of jobs, less what GPUs are worth and the most that gangs pay which fit together.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``own_prices``, ``minima``, ``minimum_exponent``, and those of the cells.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    rates, _ = case.rates(data)
    cells, minima = stated_cells(data, case.count, MOST_CELLS), stated_minima(data, case.n)
    own, price_unit = read_field(list, data, "own_prices", DUAL), Fraction(2) ** -read_exponent(data, "price_exponent")
    need(len(own) == case.n and all(map(legal_row, own)), "data.own_prices: [cell, prices] of every job", DUAL)
    need(sum(len(row) for _, row in own) <= MOST_PAIRS, f"more than {MOST_PAIRS} own prices: too many to try")
    unit = Fraction(2) ** -read_exponent(data, "minimum_exponent")
    for j, (first, row) in enumerate(own):
        need(first + len(row) <= len(cells.prices), f"data.own_prices[{j}]: there are no such cells", DUAL)
        release = Fraction(case.release[j], case.unit)
        need(cells.moments[first] <= release, f"data.own_prices[{j}] begin after the job's arrival", DUAL)
        amount, kink = Fraction(case.work[j], case.work_unit), Fraction(case.moment[j], case.unit)
        job = LeastCost(release, amount, Fraction(case.weight[j], case.shares), kink, unit * minima[j])
        paid_cells = own_cells(cells, first, [price_unit * price for price in row], case.gpus[j])
        holds = Minima(paid_cells, adds=False).hold(job, rates[j])
        need(holds, f"data.minima[{j}]: the job costs and pays less than it says", DUAL)
    paid = by_cell(own, case.gpus, len(cells.prices))
    need(sum(map(len, paid)) * case.total <= MOST_FILLED, "too many gangs and GPUs to try")
    spans = zip(pairwise(cells.moments), paid, strict=True)
    packed = sum(((b - a) * most_together(payments, case.total) for (a, b), payments in spans), Fraction(0))
    worth = cells.worth(case.count) + price_unit * packed
    names = ("moments", "moment_exponent", "prices", "price_exponent", "own_prices", "minima", "minimum_exponent")
    return unit * sum(minima) - worth, {name: data[name] for name in names}


def legal_row(row: Any) -> bool:
    """Return True for a cell and prices from there on.

    Parameters
    ----------
    row
        JSON value.
    """
    legal = type(row) is list and len(row) == 2 and type(row[0]) is int and row[0] >= 0 and type(row[1]) is list
    return legal and len(row[1]) > 0 and whole(row[1], LARGEST_PRICE)


def own_cells(cells: PricedCells, first: int, row: list[Fraction], gang: int) -> PricedCells:
    """Return the cells of a job, at its own prices of a GPU.

    Parameters
    ----------
    cells
        Cells and the prices of all jobs.
    first
        Index of its first cell.
    row
        What it pays for a second in that cell and the following ones.
    gang
        GPUs of its gang.
    """
    last = first + len(row)
    prices = [
        {t: price + own / gang for t, price in by_type.items()}
        for by_type, own in zip(cells.prices[first:last], row, strict=True)
    ]
    return PricedCells(cells.moments[first : last + 1], prices)
