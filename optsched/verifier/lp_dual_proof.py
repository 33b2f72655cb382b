"""Theorem lp-dual, of sums: prices on cells of time, in rows for all jobs or of a job's own.

The bound is what jobs cost and pay at least, less what the GPUs earn. It is the dual of a time-indexed linear program.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from fractions import Fraction
from operator import add
from typing import NamedTuple

from .certified_case import Case, Proof
from .document_fields import Data, read_field, read_ratio
from .gang_knapsack import by_cell, most_together
from .refusal import DUAL, UNJUDGED, WIDEST, need

MOST_ROWS = 1000


class RowOfPrices(NamedTuple):
    """A row of prices: ``width`` of every job, ``price`` of every cell; ``by_gpus`` if widths are gangs."""

    width: list[int]
    price: list[int]
    by_gpus: bool


def lp_dual(case: Case, data: Data) -> Proof:
    """Prove the values that the data state of jobs, none more than the job costs and pays, less what the GPUs earn.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``origin``, ``unit``, ``rows``, ``denominator``, ``jobs``, and ``own``, ``rounded``.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    origin, unit = (read_ratio(data.get(name), f"data.{name}", 1300) for name in ("origin", "unit"))
    claims = [read_ratio(text, "data.jobs") for text in read_field(list, data, "jobs", DUAL)]
    legal = unit > 0 and all(origin * case.unit <= r for r in case.release) and len(claims) == case.n
    need(legal, "these are no cells of time from the first arrival on, or no value for every job", DUAL)
    rows = _stated_rows(case, data)
    size, own = read_field(int, data, "denominator", DUAL, least=1), stated_own(data, case.n)
    cells = max([*(len(row.price) for row in rows), *(k + len(price) for k, price in own)], default=0)
    _require_few_steps(case, rows, own, cells)
    value = -Fraction(sum(most_together(paid, case.total) for paid in by_cell(own, case.gpus, cells)), size)
    for row in rows:
        widths = list(zip(case.gpus, row.width, strict=True))
        capacity = case.total if row.by_gpus else most_together(widths, case.total)
        value -= Fraction(capacity * sum(row.price), size)
    columns = zip(claims, case.weight, case.moment, _rates(case, rows, own, cells), strict=True)
    for j, (claim, w, c, rate) in enumerate(columns):
        slope, begin = Fraction(w, case.shares), Fraction(case.release[j], case.unit) - origin
        kink = Fraction(c if case.late else 0, case.unit) - origin
        times = unit, begin, Fraction(case.length[j], case.unit), kink
        least = cheapest(rate, size, slope, times, case.preemptive)
        value += claim
        legal = claim <= least - (slope * c / case.unit if case.flow else 0)
        need(legal, f"data.jobs[{j}]: the job costs and pays less", DUAL)
        need(value.denominator < WIDEST**8, "data.jobs have no common denominator of 4096 bits")
    if data.get("rounded") is True:
        _require_integers(case)
        value = Fraction(math.ceil(value))
    return value, data


def _stated_rows(case: Case, data: Data) -> list[RowOfPrices]:
    need(len(read_field(list, data, "rows", DUAL)) <= MOST_ROWS, f"more than {MOST_ROWS} rows of prices", DUAL)
    rows = list[RowOfPrices]()
    for row in data["rows"]:
        need(type(row) is dict, "a row of prices is no object", DUAL)
        price = read_field(list, row, "price", DUAL)
        width = case.gpus if row.get("width") == "gpus" else read_field(list, row, "width", DUAL)
        legal = len(width) == case.n and all(type(x) is int and 0 <= x < WIDEST for x in (*width, *price))
        need(legal, "widths and prices must be integers >= 0, and widths one for every job", DUAL)
        rows.append(RowOfPrices(width, price, width == case.gpus))
    return rows


def stated_own(data: Data, jobs: int) -> list[tuple[int, list[int]]]:
    """Return what jobs pay in addition: a cell and prices from there on, of every job or of none.

    Parameters
    ----------
    data
        Data of the certificate: ``own``.
    jobs
        Number of jobs.
    """
    rows = read_field(list, data, "own", DUAL) if "own" in data else []
    legal = len(rows) in (0, jobs) and all(type(row) is list and len(row) == 2 and type(row[1]) is list for row in rows)
    legal = legal and all(type(x) is int and 0 <= x < WIDEST for first, price in rows for x in (first, *price))
    need(legal, "data.own: [cell, prices from there on] of every job, integers >= 0", DUAL)
    return [(first, price) for first, price in rows]


def _require_few_steps(case: Case, rows: list[RowOfPrices], own: list[tuple[int, list[int]]], cells: int) -> None:
    steps = cells * (len(rows) + 2) + sum(not row.by_gpus for row in rows) * case.total
    longest = max((max([*row.width, *row.price], default=0).bit_length() for row in rows), default=0)
    longest = max([longest, *(max(price, default=0).bit_length() for _, price in own)])
    steps += sum(len(price) for _, price in own) * case.total // (case.n + 1)
    steps *= 1 + longest // 64
    need(steps * (case.n + 1) <= case.most_steps, f"more than {case.most_steps} steps of prices", UNJUDGED)


def _require_integers(case: Case) -> None:
    # of integer times, schedules in one piece that are moved to the left have integer values
    whole = all(x % case.unit == 0 for x in (*case.release, *case.length, *(d or 0 for d in case.due)))
    whole = whole and all(w % case.shares == 0 for w in case.weight)
    need(whole and not case.preemptive, "only integers, without preemption, are rounded up")


def _rates(case: Case, rows: list[RowOfPrices], own: list[tuple[int, list[int]]], cells: int) -> Iterator[list[int]]:
    # of every job: the price of every cell, in 1 / denominator
    for j in range(case.n):
        rate = [0] * cells
        for width, price, _ in rows:
            if width[j]:
                rate[: len(price)] = [paid + width[j] * x for paid, x in zip(rate, price, strict=False)]
        for first, price in own[j : j + 1]:
            rate[first : first + len(price)] = map(add, rate[first:], price)
        yield rate


def cheapest(rate: list[int], size: int, slope: Fraction, times: tuple[Fraction, ...], pieces: bool) -> Fraction:
    """Return the least sum of cost and price of a job over all ends C.

    It costs ``slope`` max(C - kink, 0) and pays for ``p // unit`` whole cells. In one piece the job takes the last cells
    before C, else the cheapest from the one of r on. Cost and price are linear between the candidates: the first end, the
    kink, the last cell and multiples of the unit.

    Parameters
    ----------
    rate
        Price of every cell, in ``1 / size``; later cells cost nothing.
    size
        Denominator of the prices.
    slope
        Cost of a second.
    times
        Seconds of a cell, release r, length p and kink, from the first cell on.
    pieces
        True if the job may be interrupted.
    """
    fine = math.lcm(*(t.denominator for t in times))
    unit, r, p, kink = (int(t * fine) for t in times)
    rate, kink, r = rate[r // unit :], kink - r // unit * unit, r % unit  # cells count from that of r
    count = min(p // unit, len(rate))  # more than these are surely free cells
    shift = (p // unit - count) * unit if pieces else p - count * unit  # from the end of the window of cells to C
    first, charged, window = r + p - shift, [0], list[int]()
    for k, x in enumerate(rate + [0] * count):  # charged[k]: the price of the window that ends with cell k
        dropped = 0
        if pieces:
            heapq.heappush(window, -x)
            dropped = -heapq.heappop(window) if len(window) > count else 0
        elif k >= count:
            dropped = rate[k - count]
        charged.append(charged[-1] + x - dropped)
    last = len(charged) - 1
    # in 1 / (slope's denominator x fine x unit x size)
    a, b = slope.numerator * unit * size, slope.denominator * fine

    def cost(x: int) -> int:
        k, part = divmod(min(x, last * unit), unit)
        paid = (unit - part) * charged[k] + part * charged[min(k + 1, last)]
        return a * max(x + shift - kink, 0) + b * paid

    best = min(cost(max(x, first)) for x in (first, kink - shift, last * unit))
    begin = -(-first // unit)
    rising = min(max(begin, -(-(kink - shift) // unit)), last)  # before that the job costs nothing yet
    best = min([best, *(b * unit * paid for paid in charged[begin:rising])])
    offset = a * (shift - kink)
    best = min([best, *(a * unit * k + offset + b * unit * charged[k] for k in range(max(rising, begin), last))])
    return Fraction(best, slope.denominator * fine * unit * size)
