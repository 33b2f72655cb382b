"""The cheapest cells of a growing window, for prices on the time of a job that may be preempted."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]


def cheapest_cells(rate: Integers, first: int, count: int) -> Integers:
    """charged[k]: the sum of the ``count`` smallest of rate[first:k], with rate 0 beyond the array's end.

    Entries with fewer than ``count`` cells to choose from hold the sum of all of them; they are never asked for. The
    array ends where ``count`` free cells are at hand, so beyond it the sum is 0. O(cells log count), Python integers.
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
