"""Theorem priced-log, of sums: prices of a second of a GPU over the cells of a log, whatever the type.

The bound is what all jobs cost and pay at least, ``least_together``, less what all GPUs are worth
(optsched/bounds/priced_log.py). A job holds its gang for its least seconds, after its arrival and before its end: the
cheapest ones of that time. All numbers are integers: ticks of time, and parts of the prices.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise
from operator import mul
from typing import NamedTuple

from .certified_case import Case, Proof
from .document_fields import LARGEST_PRICE, Data, read_exponent, read_field, read_ratio, whole
from .priced_cells import LARGEST
from .refusal import DUAL, need

MOST_CELLS = 1 << 15
MOST_LOOKED = 50_000_000  # cells that jobs look at: a minute or two; what the search makes has a half at most


class LogJob(NamedTuple):
    """A job with ``work`` ticks to run from ``release`` on.

    It costs ``weight`` a tick after ``kink``, and pays ``gang`` times the price of a tick in which it runs.
    """

    release: int
    work: int
    weight: int
    kink: int
    gang: int


class LogCells:
    """Cells of time in ticks with a price of a tick; nothing is paid outside of them.

    Parameters
    ----------
    moments
        Ends of the cells, rising.
    prices
        Price of every cell.
    """

    def __init__(self, moments: list[int], prices: list[int]) -> None:
        self.moments, self.prices = moments, prices
        self.left = MOST_LOOKED

    def least(self, job: LogJob) -> int:
        """Return the least sum of cost and payment of a job.

        It takes the first ticks after its arrival. A later end exchanges the dearest of them for cheaper ones. Cost and
        payment are linear while one price is exchanged for another, and on either side of the kink.

        Parameters
        ----------
        job
            The job.
        """
        release, work, weight, kink, gang = job
        k, now, paid = bisect_right(self.moments, release) - 1, release, 0
        if not work or not weight:
            return weight * max(now - kink, 0)
        begin, taken, last, best = k, list[tuple[int, int]](), len(self.prices), -1  # taken: (-price, ticks), a heap
        while best < 0 or weight * max(now - kink, 0) < best:
            price = self.prices[k] if 0 <= k < last else 0
            end = self.moments[k + 1] if k < last else None
            got = 0
            if work:
                got = work if end is None else min(work, end - now)
                work, now, paid = work - got, now + got, paid + price * got
            if not work:
                at = weight * max(now - kink, 0) + gang * paid
                best = at if best < 0 else min(best, at)
                while taken and -taken[0][0] > price and (end is None or now < end):
                    dearest, ticks = -taken[0][0], taken[0][1]
                    part = ticks if end is None else min(ticks, end - now)
                    if now < kink < now + part:
                        part = kink - now
                    paid, now, got = paid - (dearest - price) * part, now + part, got + part
                    if part < ticks:
                        heapq.heapreplace(taken, (-dearest, ticks - part))
                    else:
                        heapq.heappop(taken)
                    best = min(best, weight * max(now - kink, 0) + gang * paid)
            if got:
                heapq.heappush(taken, (-price, got))
            if end is None or (not work and not paid):
                break
            now, k = end, k + 1
        self.left -= k - begin + 1
        need(self.left >= 0, f"jobs look at more than {MOST_LOOKED} cells: too many to try")
        return best


def priced_log(case: Case, data: Data) -> Proof:
    """Prove what all jobs cost and pay at least, less what GPUs are worth.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``moments``, ``moment_exponent``, ``prices``, ``price_exponent``, ``least_together``.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    moments, prices = read_field(list, data, "moments"), read_field(list, data, "prices", DUAL)
    legal = all(type(x) is int and abs(x) < LARGEST for x in moments) and 1 < len(moments) <= MOST_CELLS + 1
    need(
        legal and all(a < b for a, b in pairwise(moments)),
        f"data.moments must be integers that rise, 2 to {MOST_CELLS + 1}",
    )
    legal = len(prices) == len(moments) - 1 and whole(prices, LARGEST_PRICE)
    need(legal, "data.prices must be integers >= 0, below 2^64, one for every cell", DUAL)
    tick, unit = (Fraction(2) ** -read_exponent(data, name) for name in ("moment_exponent", "price_exponent"))
    least_together = read_ratio(data.get("least_together"), "data.least_together")
    ticks = max(case.unit, tick.denominator)  # in a second: both are powers of two
    finer = ticks // case.unit
    cells = LogCells([x * int(tick * ticks) for x in moments], prices)
    # parts of cost and payment: ticks, and the denominators of weights and prices
    per_weight, per_price = unit.denominator, case.shares * unit.numerator
    together = 0
    for j, (release, work, moment, weight) in enumerate(
        zip(case.release, case.length, case.moment, case.weight, strict=True)
    ):
        gang = case.gpus[j] * per_price
        together += cells.least(LogJob(release * finer, work * finer, weight * per_weight, moment * finer, gang))
    holds = Fraction(together, ticks * case.shares * unit.denominator) >= least_together
    need(holds, "data.least_together: the jobs cost and pay less than it says", DUAL)
    spent = sum(map(mul, prices, (b - a for a, b in pairwise(moments)))) * tick * unit
    names = ("moments", "moment_exponent", "prices", "price_exponent", "least_together")
    return least_together - case.total * spent, {name: data[name] for name in names}
