"""Knapsacks over the GPUs: the most that gangs pay which fit on the cluster together."""

from __future__ import annotations

import math


def most_together(paid: list[tuple[int, int]], total: int) -> int:
    """Return the most that gangs pay which have no more GPUs together than the cluster, by the GPUs filled.

    Parameters
    ----------
    paid
        GPUs and price of every gang.
    total
        GPUs of the cluster.
    """
    if sum(gang for gang, _ in paid) <= total:
        return sum(price for _, price in paid)
    step = math.gcd(*(gang for gang, _ in paid))
    best = [0] * (total // step + 1)
    for size, price in ((gang // step, price) for gang, price in paid if price):
        best[size:] = map(max, best[size:], [more + price for more in best[: len(best) - size]])
    return best[-1]


def by_cell(own: list[tuple[int, list[int]]], gangs: list[int], cells: int) -> list[list[tuple[int, int]]]:
    """Return (GPUs, price) of the jobs that pay in every cell.

    Parameters
    ----------
    own
        First cell and prices from there on, of every job or of none.
    gangs
        GPUs of every job.
    cells
        Number of cells.
    """
    paid: list[list[tuple[int, int]]] = [[] for _ in range(cells)]
    for (first, row), gang in zip(own, gangs, strict=False):
        for k, price in enumerate(row, start=first):
            paid[k] += [(gang, price)] if price else []
    return paid
