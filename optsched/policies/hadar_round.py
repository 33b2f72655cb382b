"""One round of Hadar, compiled: jobs in a given order take GPUs at prices that rise as these go.

`value_all` says what every job is worth in an empty cluster; the caller sorts; `serve` goes through the order. A job is
worth its best allocation by `hadar_allocation`, or the GPUs that it holds: those cost it no restart.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import KERNEL, NESTED
from optsched.policies.hadar_allocation import (
    LEFT,
    LENGTH,
    NONE,
    SLACK,
    find_allocation,
    payoff_of,
)
from optsched.problem.arrays import Bools, Floats, Ints

UNKNOWN = -1  # devices of a pool that are counted anew


class RoundJobs(NamedTuple):
    """m active jobs: ``gang`` i64[m], rates f64[m, P], ``terms`` f64[m, 6] (`hadar_allocation`), what they hold (CSR)."""

    gang: Ints
    together: Floats
    spread: Floats
    terms: Floats
    held_first: Ints  # i64[m + 1]
    held_machine: Ints
    held_count: Ints


class PriceRange(NamedTuple):
    """Of P pools: price = low exp(log_range * min(1, sold / scale)), f64[P]. ``whole``: rounds that are begun are paid."""

    low: Floats
    log_range: Floats
    scale: Floats
    whole: bool


class FreeDevices(NamedTuple):
    """H machines and P pools during a round; ``claimed``: what running jobs hold that were not looked at yet."""

    pool: Ints  # i64[H]
    free: Ints
    claimed: Ints
    stock: Ints  # i64[P] free devices
    largest: Ints
    machines: Ints
    sold: Ints
    price: Floats
    by_price: Ints


class Scratch(NamedTuple):
    """Scratch: ``pools`` i64[2, P], ``machines`` i64[H]."""

    pools: Ints
    machines: Ints


class Taken(NamedTuple):
    """What was given (CSR): ``size`` i64[2] entries of ``job`` and of ``machine``; ``kept``: the GPUs it held."""

    size: Ints
    job: Ints
    kept: Ints
    first: Ints
    machine: Ints
    amount: Ints


@njit(**NESTED)
def _summarise(d: FreeDevices, p: int) -> None:
    count, largest, machines = 0, 0, 0
    for h in range(d.pool.size):
        if d.pool[h] == p and d.free[h] > 0:
            count += d.free[h]
            machines += 1
            largest = max(largest, d.free[h])
    d.stock[p], d.largest[p], d.machines[p] = count, largest, machines


@njit(**KERNEL)
def claim(jobs: RoundJobs, waits: Bools, d: FreeDevices) -> None:
    """``d.claimed``: the devices that the jobs with ``waits`` bool[m] hold."""
    d.claimed[:] = 0
    for j in range(waits.size):
        if waits[j]:
            for e in range(jobs.held_first[j], jobs.held_first[j + 1]):
                d.claimed[jobs.held_machine[e]] += jobs.held_count[e]


@njit(**NESTED)
def _reprice(d: FreeDevices, price_range: PriceRange, q: int) -> None:
    d.price[q] = price_range.low[q] * math.exp(price_range.log_range[q] * min(1.0, d.sold[q] / price_range.scale[q]))


@njit(**NESTED)
def _sort(d: FreeDevices) -> None:
    # Almost sorted already; ties by number.
    for i in range(1, d.by_price.size):
        q, k = d.by_price[i], i
        while k > 0 and (
            d.price[d.by_price[k - 1]] > d.price[q]
            or (d.price[d.by_price[k - 1]] == d.price[q] and d.by_price[k - 1] > q)
        ):
            d.by_price[k] = d.by_price[k - 1]
            k -= 1
        d.by_price[k] = q


@njit(**KERNEL)
def open_round(d: FreeDevices, price_range: PriceRange) -> None:
    """Prices and sums of the free devices in ``d.free``; nothing is sold."""
    for q in range(d.price.size):
        d.sold[q] = 0
        d.by_price[q] = q
        _reprice(d, price_range, q)
    _sort(d)
    for p in range(d.stock.size):
        _summarise(d, p)


@njit(**NESTED)
def _sell(d: FreeDevices, price_range: PriceRange, take: Ints) -> None:
    for h in range(take.size):
        if take[h] > 0:
            p = d.pool[h]
            d.free[h] -= take[h]
            d.sold[p] += take[h]
            _reprice(d, price_range, p)
            d.stock[p] = UNKNOWN
    for p in range(d.stock.size):
        if d.stock[p] == UNKNOWN:
            _summarise(d, p)
    _sort(d)


@njit(**NESTED)
def _place(d: FreeDevices, gang: int, several: bool, need: Ints, take: Ints) -> None:
    # Which machines, when all of a pool cost the same: unclaimed devices first; one machine: the fullest that holds it;
    # several: as few as possible.
    take[:] = 0
    if not several:
        for p in range(need.size):
            if need[p] > 0:
                best = -1
                for h in range(d.pool.size):
                    if d.pool[h] != p or d.free[h] < gang:
                        continue
                    lack = max(0, gang - (d.free[h] - d.claimed[h]))
                    if (
                        best < 0
                        or lack < max(0, gang - (d.free[best] - d.claimed[best]))
                        or (lack == max(0, gang - (d.free[best] - d.claimed[best])) and d.free[h] < d.free[best])
                    ):
                        best = h
                take[best] = gang
        return
    for p in range(need.size):
        left = need[p]
        for claims in (True, False):
            while left > 0:
                best, most = -1, 0
                for h in range(d.pool.size):
                    if d.pool[h] != p:
                        continue
                    here = min(d.free[h] - take[h], gang - 1 - take[h])
                    if claims:
                        here = min(here, d.free[h] - d.claimed[h] - take[h])
                    if here > most:
                        best, most = h, here
                if best < 0:
                    break
                given = min(left, most)
                take[best] += given
                left -= given


@njit(**NESTED)
def _best(
    jobs: RoundJobs, j: int, d: FreeDevices, price_range: PriceRange, scratch: Scratch, take: Ints, places: bool
) -> tuple[float, float, bool]:
    """(payoff, rate, does it keep what it holds) of the best allocation of job j; ``places``: its machines in ``take``."""
    gang, terms = jobs.gang[j], jobs.terms[j]
    value, rate, several = find_allocation(
        gang, jobs.together[j], jobs.spread[j], terms, d.price, d.by_price, d.stock, d.largest, d.machines,
        price_range.whole, scratch.pools[0], scratch.pools[1],
    )  # fmt: skip
    first, last = jobs.held_first[j], jobs.held_first[j + 1]
    if last > first:
        held_rate, cost, there = np.inf, 0.0, True
        for e in range(first, last):
            h = jobs.held_machine[e]
            there = there and d.free[h] >= jobs.held_count[e]
            p = d.pool[h]
            held_rate = min(held_rate, jobs.together[j, p] if last - first == 1 else jobs.spread[j, p])
            cost += jobs.held_count[e] * d.price[p]
        if there and held_rate > 0.0:
            kept = payoff_of(terms, held_rate, cost, np.bool_(False), price_range.whole)
            if rate == NONE or kept >= value:
                if places:
                    take[:] = 0
                    for e in range(first, last):
                        take[jobs.held_machine[e]] = jobs.held_count[e]
                return kept, held_rate, True
    if places and rate != NONE and value > 0.0:
        _place(d, gang, several, scratch.pools[0], take)
    return value, rate, False


@njit(**KERNEL)
def value_all(
    jobs: RoundJobs, d: FreeDevices, price_range: PriceRange, scratch: Scratch, payoff: Floats, density: Floats
) -> None:
    """Payoff of every job alone at the prices of ``d``, f64[m], and payoff per device and round; -inf: no place."""
    for j in range(jobs.gang.size):
        value, rate, _ = _best(jobs, j, d, price_range, scratch, scratch.machines, np.bool_(False))
        payoff[j] = density[j] = -np.inf
        if rate != NONE:
            payoff[j], density[j] = value, value / jobs.gang[j]
            density[j] /= max(1.0, np.ceil(jobs.terms[j, LEFT] / rate / jobs.terms[j, LENGTH] - SLACK))


@njit(**NESTED)
def _record(j: int, kept: bool, take: Ints, taken: Taken) -> None:
    k, e = taken.size[0], taken.size[1]
    taken.job[k], taken.kept[k], taken.first[k] = j, kept, e
    for h in range(take.size):
        if take[h] > 0:
            taken.machine[e], taken.amount[e] = h, take[h]
            e += 1
    taken.first[k + 1] = e
    taken.size[0], taken.size[1] = k + 1, e


@njit(**KERNEL)
def serve(
    jobs: RoundJobs,
    order: Ints,
    hope: Floats,
    d: FreeDevices,
    price_range: PriceRange,
    scratch: Scratch,
    taken: Taken,
) -> None:
    """Serve the jobs of ``order``, one after the other. ``hope`` f64[m]: no job is worth more."""
    for j in order:
        left = 0
        for p in range(d.stock.size):
            left += d.stock[p]
        if left == 0:
            break
        for e in range(jobs.held_first[j], jobs.held_first[j + 1]):
            d.claimed[jobs.held_machine[e]] -= jobs.held_count[e]
        if jobs.gang[j] > left or hope[j] <= 0.0:
            continue
        value, rate, kept = _best(jobs, j, d, price_range, scratch, scratch.machines, np.bool_(True))
        if rate != NONE and value > 0.0:
            _sell(d, price_range, scratch.machines)
            _record(j, kept, scratch.machines, taken)
