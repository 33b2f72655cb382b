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
from optsched.policies.hadar_allocation import LEFT, LENGTH, NONE, SLACK, Lots, find_allocation, payoff_of
from optsched.problem.arrays import Bools, Floats, Ints

ALL_ROUNDS, WHOLE = range(2)  # of `PriceRange.rule`


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
    """Of Q lots (`hadar_allocation`): price = low exp(log_range * min(1, sold / scale)), f64[Q].

    ``rule`` bool[2]: is it paid for all rounds that are left, or for this one; do a job's rounds count as whole?
    """

    low: Floats
    log_range: Floats
    scale: Floats
    rule: Bools


class FreeDevices(NamedTuple):
    """H machines during a round, i64[H]; ``claimed``: what running jobs hold that were not looked at yet. Q lots of them."""

    pool: Ints
    lot: Ints
    free: Ints
    claimed: Ints
    lots: Lots
    sold: Ints


class Scratch(NamedTuple):
    """Arrays that are written anew: ``lots`` i64[2, Q]; of a window of q jobs ``window`` and ``best`` i64[q + 1, H],
    ``choice`` i64[3, q + 1], ``total`` f64[q + 1]."""

    lots: Ints
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
def _summarise(d: FreeDevices, q: int) -> None:
    count, largest, machines = 0, 0, 0
    for h in range(d.lot.size):
        if d.lot[h] == q and d.free[h] > 0:
            count += d.free[h]
            machines += 1
            largest = max(largest, d.free[h])
    d.lots.free[q], d.lots.largest[q], d.lots.machines[q] = count, largest, machines


@njit(**NESTED)
def _reprice(d: FreeDevices, price_range: PriceRange, q: int) -> None:
    share = min(1.0, d.sold[q] / price_range.scale[q])
    d.lots.price[q] = price_range.low[q] * math.exp(price_range.log_range[q] * share)


@njit(**NESTED)
def _sort(by_price: Ints, price: Floats) -> None:
    # Almost sorted already; ties by number.
    for i in range(1, by_price.size):
        q, k = by_price[i], i
        while k > 0 and (
            price[by_price[k - 1]] > price[q] or (price[by_price[k - 1]] == price[q] and by_price[k - 1] > q)
        ):
            by_price[k] = by_price[k - 1]
            k -= 1
        by_price[k] = q


@njit(**KERNEL)
def open_round(d: FreeDevices, price_range: PriceRange) -> None:
    """Prices and sums of the free devices in ``d.free``; nothing is sold."""
    for q in range(d.sold.size):
        d.sold[q] = 0
        d.lots.by_price[q] = q
        _reprice(d, price_range, q)
        _summarise(d, q)
    _sort(d.lots.by_price, d.lots.price)


@njit(**NESTED)
def _sell(d: FreeDevices, price_range: PriceRange, take: Ints, sign: int) -> None:
    for h in range(take.size):
        if take[h] > 0:
            d.free[h] -= sign * take[h]
            d.sold[d.lot[h]] += sign * take[h]
            _reprice(d, price_range, d.lot[h])
    for h in range(take.size):
        if take[h] > 0:
            _summarise(d, d.lot[h])
    _sort(d.lots.by_price, d.lots.price)


@njit(**NESTED)
def _place(d: FreeDevices, gang: int, several: bool, need: Ints, take: Ints) -> None:
    # Which machines, when all of a lot cost the same: unclaimed devices first; one machine: the fullest that holds it;
    # several: as few as possible.
    take[:] = 0
    for q in range(need.size):
        if need[q] > 0 and not several:
            best, least = -1, 0
            for h in range(d.lot.size):
                if d.lot[h] != q or d.free[h] < gang:
                    continue
                lack = max(0, gang - (d.free[h] - d.claimed[h]))
                if best < 0 or lack < least or (lack == least and d.free[h] < d.free[best]):
                    best, least = h, lack
            take[best] = gang
            return
        left = need[q]
        for claims in (True, False):
            while left > 0:
                best, most = -1, 0
                for h in range(d.lot.size):
                    if d.lot[h] != q:
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
    gang, terms, need = jobs.gang[j], jobs.terms[j], scratch.lots[0]
    all_rounds, whole = price_range.rule[ALL_ROUNDS], price_range.rule[WHOLE]
    value, rate, several = find_allocation(
        gang, jobs.together[j], jobs.spread[j], terms, d.lots, all_rounds, whole, need, scratch.lots[1]
    )
    first, last = jobs.held_first[j], jobs.held_first[j + 1]
    if last > first:
        held_rate, cost, there = np.inf, 0.0, True
        for e in range(first, last):
            h = jobs.held_machine[e]
            there = there and d.free[h] >= jobs.held_count[e]
            p = d.pool[h]
            held_rate = min(held_rate, jobs.together[j, p] if last - first == 1 else jobs.spread[j, p])
            cost += jobs.held_count[e] * d.lots.price[d.lot[h]]
        if there and held_rate > 0.0:
            kept = payoff_of(terms, held_rate, cost, last - first > 1, np.bool_(False), all_rounds, whole)
            if rate == NONE or kept >= value:
                if places:
                    take[:] = 0
                    for e in range(first, last):
                        take[jobs.held_machine[e]] = jobs.held_count[e]
                return kept, held_rate, True
    if places and rate != NONE and value > 0.0:
        _place(d, gang, several, need, take)
    return value, rate, False


@njit(**KERNEL)
def value_all(
    jobs: RoundJobs, d: FreeDevices, price_range: PriceRange, scratch: Scratch, payoff: Floats, density: Floats
) -> None:
    """Payoff of every job alone at the prices of ``d``, f64[m], and payoff per device and round charged; -inf: no place."""
    for j in range(jobs.gang.size):
        value, rate, _ = _best(jobs, j, d, price_range, scratch, scratch.window[0], np.bool_(False))
        payoff[j] = density[j] = -np.inf
        if rate != NONE:
            payoff[j], density[j] = value, value / jobs.gang[j]
            if price_range.rule[ALL_ROUNDS]:
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
) -> None:
    """Serve the jobs of ``order`` in windows of ``width``. ``hope`` f64[m]: no job is worth more."""
    at = 0
    while at < order.size:
        left = d.free.sum()
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
        if window == 1:  # what `_window` finds for one job, without taking it, giving it back and taking it again
            j = scratch.choice[2, 0]
            if hope[j] > 0.0:
                value, rate, kept = _best(jobs, j, d, price_range, scratch, scratch.window[0], np.bool_(True))
                if rate != NONE and value > 0.0:
                    _sell(d, price_range, scratch.window[0], np.int64(1))
                    _record(j, kept, scratch.window[0], taken)
            continue
        _window(jobs, window, hope, d, price_range, scratch)
        for i in range(window):
            if scratch.choice[1, i] == 1 or scratch.choice[1, i] == 2:
                _sell(d, price_range, scratch.best[i], np.int64(1))
                _record(scratch.choice[2, i], scratch.choice[1, i] == 2, scratch.best[i], taken)


@njit(**NESTED)
def _window(
    jobs: RoundJobs, width: int, hope: Floats, d: FreeDevices, price_range: PriceRange, scratch: Scratch
) -> None:
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
