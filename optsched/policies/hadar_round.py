"""One round of Hadar, compiled: jobs in a given order, alone or in windows, take GPUs at prices that rise as these go.

`value_all` says what every job is worth in an empty cluster; the caller sorts; `serve` goes through the order in windows of
q jobs: of the 2^q ways to take or skip them the one of largest total payoff is kept (depth first, cut off where even the
payoffs of an empty round would not catch up; q = 1 is the greedy rule). A job is worth its best allocation by
`hadar_allocation`, or the GPUs that it holds: those cost it no restart.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit
from optsched.policies.hadar_allocation import ALL_ROUNDS, LEFT, LENGTH, NONE, SLACK, find_allocation, payoff_of
from optsched.problem.arrays import Bools, Floats, Ints

BY_POOL, BY_MACHINE = 0, 1
UNKNOWN = -1  # devices of a pool that are counted anew
# PriceRange.rule
LEVEL, CHARGED, WHOLE = range(3)


class RoundJobs(NamedTuple):
    """m active jobs: ``gang`` i64[m], rates f64[m, P], ``terms`` f64[m, 7] (`hadar_allocation`), what they hold (CSR)."""

    gang: Ints
    together: Floats
    spread: Floats
    terms: Floats
    held_first: Ints  # i64[m + 1]
    held_machine: Ints
    held_count: Ints


class PriceRange(NamedTuple):
    """Q = P pools or H machines: price = low exp(log_range * min(1, sold / scale)), f64[Q].

    ``rule`` i64[3]: at LEVEL what has a price (BY_POOL or BY_MACHINE), at CHARGED for what it is paid (`hadar_allocation`:
    ALL_ROUNDS or THIS_ROUND), at WHOLE whether a job's rounds count as whole.
    """

    low: Floats
    log_range: Floats
    scale: Floats
    rule: Ints


class FreeDevices(NamedTuple):
    """H machines and P pools during a round; ``claimed``: what running jobs hold that were not looked at yet."""

    pool: Ints  # i64[H]
    free: Ints
    claimed: Ints
    stock: Ints  # i64[P] free devices
    largest: Ints
    machines: Ints
    sold: Ints  # i64[Q]
    price: Floats
    by_price: Ints


class Scratch(NamedTuple):
    """Arrays that are written anew: ``pools`` i64[2, P], ``machines`` i64[2, H]; of a window of q jobs ``window`` and
    ``best`` i64[q + 1, H], ``choice`` i64[3, q + 1], ``total`` f64[q + 1]."""

    pools: Ints
    machines: Ints
    window: Ints
    best: Ints
    choice: Ints
    total: Floats


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
def _sell(d: FreeDevices, price_range: PriceRange, take: Ints, sign: int) -> None:
    for h in range(take.size):
        if take[h] > 0:
            q = h if price_range.rule[LEVEL] == BY_MACHINE else d.pool[h]
            d.free[h] -= sign * take[h]
            d.sold[q] += sign * take[h]
            _reprice(d, price_range, q)
            d.stock[d.pool[h]] = UNKNOWN
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
                best, least = -1, 0
                for h in range(d.pool.size):
                    if d.pool[h] != p or d.free[h] < gang:
                        continue
                    lack = max(0, gang - (d.free[h] - d.claimed[h]))
                    if best < 0 or lack < least or (lack == least and d.free[h] < d.free[best]):
                        best, least = h, lack
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
    charged, whole = price_range.rule[CHARGED], price_range.rule[WHOLE] == 1
    by_machine = price_range.rule[LEVEL] == BY_MACHINE
    free, largest = (d.free, d.free) if by_machine else (d.stock, d.largest)
    found, trial = (take, scratch.machines[0]) if by_machine else (scratch.pools[0], scratch.pools[1])
    value, rate, several = find_allocation(
        by_machine, gang, jobs.together[j], jobs.spread[j], terms, d.pool, d.price, d.by_price, free, largest,
        d.machines, charged, whole, found, trial,
    )  # fmt: skip
    first, last = jobs.held_first[j], jobs.held_first[j + 1]
    if last > first:
        held_rate, cost, there = np.inf, 0.0, True
        for e in range(first, last):
            h = jobs.held_machine[e]
            there = there and d.free[h] >= jobs.held_count[e]
            p = d.pool[h]
            held_rate = min(held_rate, jobs.together[j, p] if last - first == 1 else jobs.spread[j, p])
            cost += jobs.held_count[e] * (d.price[h] if by_machine else d.price[p])
        if there and held_rate > 0.0:
            kept = payoff_of(terms, held_rate, cost, last - first > 1, np.bool_(False), charged, whole)
            if rate == NONE or kept >= value:
                if places:
                    take[:] = 0
                    for e in range(first, last):
                        take[jobs.held_machine[e]] = jobs.held_count[e]
                return kept, held_rate, True
    if places and rate != NONE and value > 0.0 and not by_machine:
        _place(d, gang, several, scratch.pools[0], take)
    return value, rate, False


@njit(**KERNEL)
def value_all(
    jobs: RoundJobs, d: FreeDevices, price_range: PriceRange, scratch: Scratch, payoff: Floats, density: Floats
) -> None:
    """Payoff of every job alone at the prices of ``d``, f64[m], and payoff per device and round charged; -inf: no place."""
    for j in range(jobs.gang.size):
        value, rate, _ = _best(jobs, j, d, price_range, scratch, scratch.machines[1], np.bool_(False))
        payoff[j] = density[j] = -np.inf
        if rate != NONE:
            payoff[j], density[j] = value, value / jobs.gang[j]
            if price_range.rule[CHARGED] == ALL_ROUNDS:
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
    width: int,
    d: FreeDevices,
    price_range: PriceRange,
    scratch: Scratch,
    taken: Taken,
) -> float:
    """Serve the jobs of ``order`` in windows of ``width``; the total payoff. ``hope`` f64[m]: no job is worth more."""
    total, at = 0.0, 0
    while at < order.size:
        left = 0
        for p in range(d.stock.size):
            left += d.stock[p]
        if left == 0:
            break
        window = 0
        end = at
        while end < order.size and window < width:  # jobs that do not fit take no place in the window
            if jobs.gang[order[end]] <= left:
                scratch.choice[2, window] = order[end]
                window += 1
            end += 1
        for i in range(at, end):
            for e in range(jobs.held_first[order[i]], jobs.held_first[order[i] + 1]):
                d.claimed[jobs.held_machine[e]] -= jobs.held_count[e]
        at = end
        if window == 1:
            total += _alone(jobs, scratch.choice[2, 0], hope, d, price_range, scratch, taken)
            continue
        total += _window(jobs, window, hope, d, price_range, scratch)
        for i in range(window):
            if scratch.choice[1, i] == 1 or scratch.choice[1, i] == 2:
                _sell(d, price_range, scratch.best[i], np.int64(1))
                _record(scratch.choice[2, i], scratch.choice[1, i] == 2, scratch.best[i], taken)
    return total


@njit(**NESTED)
def _alone(
    jobs: RoundJobs, j: int, hope: Floats, d: FreeDevices, price_range: PriceRange, scratch: Scratch, taken: Taken
) -> float:
    # What `_window` finds for one job, without taking it, giving it back and taking it again.
    if hope[j] <= 0.0:
        return 0.0
    value, rate, kept = _best(jobs, j, d, price_range, scratch, scratch.window[0], np.bool_(True))
    if rate == NONE or value <= 0.0:
        return 0.0
    _sell(d, price_range, scratch.window[0], np.int64(1))
    _record(j, kept, scratch.window[0], taken)
    return value


@njit(**NESTED)
def _window(
    jobs: RoundJobs, width: int, hope: Floats, d: FreeDevices, price_range: PriceRange, scratch: Scratch
) -> float:
    """The best way to take or skip the jobs ``choice[2, :width]`` one after the other: ``choice[1]``, ``best``."""
    state, best = scratch.choice[0], 0.0
    scratch.choice[1, :width] = 0
    depth, state[0] = 0, 0
    scratch.total[0] = 0.0
    while depth >= 0:
        if depth == width:
            if scratch.total[depth] > best:
                best = scratch.total[depth]
                for i in range(width):
                    scratch.choice[1, i] = state[i]
                    for h in range(scratch.best.shape[1]):
                        scratch.best[i, h] = scratch.window[i, h]
            depth -= 1
            continue
        if state[depth] == 1 or state[depth] == 2:  # back from taking it
            _sell(d, price_range, scratch.window[depth], np.int64(-1))
            state[depth] = 3
        elif state[depth] == 0:
            could = scratch.total[depth]
            for i in range(depth, width):
                could += max(0.0, hope[scratch.choice[2, i]])
            if could <= best:
                depth -= 1
                continue
            value, rate, kept = _best(
                jobs, scratch.choice[2, depth], d, price_range, scratch, scratch.window[depth], np.bool_(True)
            )
            if rate != NONE and value > 0.0:
                state[depth] = 2 if kept else 1
                _sell(d, price_range, scratch.window[depth], np.int64(1))
                scratch.total[depth + 1] = scratch.total[depth] + value
                depth += 1
                state[depth] = 0
                continue
            state[depth] = 3
        if state[depth] == 3:
            state[depth] = 4
            scratch.window[depth, :] = 0
            scratch.total[depth + 1] = scratch.total[depth]
            depth += 1
            state[depth] = 0
            continue
        depth -= 1
    return best
