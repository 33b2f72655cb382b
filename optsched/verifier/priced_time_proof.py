"""Theorem priced-time, of sums and utility: prices of GPUs over time.

The bound is the sum of what jobs cost and pay at least, less what all GPUs are worth (optsched/bounds/priced_time.py); of
utility, which is bounded from above, its negative. The data state the minima of the jobs, and every minimum is compared with
all moments at which its job may end.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .certified_case import Case, Proof
from .document_fields import Data, read_exponent, read_field
from .priced_cells import LARGEST, LeastCost, PricedCells, stated_cells
from .refusal import DUAL, need

MOST_WORK = 3_000_000  # cells times options of all jobs: a minute or two; what the search makes has a sixth


def priced_time(case: Case, data: Data) -> Proof:
    """Prove the sum of minima of jobs, less what all GPUs are worth.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``minima``, ``minimum_exponent``, and those of the cells.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    cells, rates, charged = few_cells(case, data)
    minima, unit = stated_minima(data, case.n), Fraction(2) ** -read_exponent(data, "minimum_exponent")
    proof: Any = case.minima(cells)
    utility = case.objective == "total_utility"
    need(not utility or all(case.work), "a job takes no time: its utility has no bound")
    for j, (w, c, work) in enumerate(zip(case.weight, case.moment, case.work, strict=True)):
        release, weight = Fraction(case.release[j], case.unit), Fraction(w, case.shares)
        cost, gain = (Fraction(0), weight * Fraction(case.amount[j])) if utility else (weight, Fraction(0))
        amount, kink = Fraction(work, case.work_unit), Fraction(c, case.unit)
        job = LeastCost(release, amount, cost, kink, unit * minima[j], gain)
        need(proof.hold(job, rates[j]), f"data.minima[{j}]: the job costs and pays less than it says", DUAL)
    names = ("moments", "moment_exponent", "prices", "price_exponent", "minima", "minimum_exponent")
    value = unit * sum(minima) - cells.worth(case.count)
    return -value if utility else value, {**{name: data[name] for name in names}, **charged}


def few_cells(case: Case, data: Data) -> tuple[PricedCells, list[Any], Data]:
    """Return the cells, the options of every job, and what certificates state of the options.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: those of the cells.

    Raises
    ------
    Refused
        If there are too many cells and options to try.
    """
    rates, charged = case.rates(data)
    cells = stated_cells(data, case.count)
    need(
        cells.moments[0] * case.unit <= min(case.release, default=0),
        "data.moments must begin at the first arrival, or before",
    )
    few = len(cells.prices) * sum(map(len, rates)) <= MOST_WORK
    need(few, f"more than {MOST_WORK} cells and options: too many to try")
    return cells, rates, charged


def stated_minima(data: Data, count: int) -> list[int]:
    """Return what jobs cost and pay at least, as the data of a certificate state it.

    Parameters
    ----------
    data
        Data of the certificate: ``minima``.
    count
        Number of jobs.
    """
    minima: list[int] = read_field(list, data, "minima")
    legal = len(minima) == count and all(type(x) is int and abs(x) < LARGEST for x in minima)
    need(legal, "data.minima must be integers, one for every job")
    return minima
