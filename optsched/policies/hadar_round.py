"""One round of Hadar, compiled: jobs in a given order take GPUs at prices that rise as these go.

`value_all` says what every job is worth in an empty cluster; the caller sorts; `serve` goes through the order. A job is
worth its best allocation by `hadar_allocation`, or the GPUs that it holds: those cost it no restart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit
from optsched.policies.exponential_prices import exponential_price
from optsched.policies.hadar_allocation import LEFT, LENGTH, NONE, SLACK, Lots, find_allocation, payoff_of
from optsched.problem.arrays import Bools, Floats, Ints


class RoundJobs(NamedTuple):
    """m jobs: ``gang`` i64[m], rates f64[m, P], ``terms`` f64[m, 6] (`hadar_allocation`), and the GPUs that they hold.

    Job j holds the entries ``held_first[j]`` <= e < ``held_last[j]``.
    """

    gang: Ints
    together: Floats
    spread: Floats
    terms: Floats
    held_first: Ints
    held_last: Ints
    held_machine: Ints
    held_count: Ints


class PriceRange(NamedTuple):
    """The prices of P pools: `exponential_price` (low, log_range, sold, scale), f64[P].

    ``whole`` bool[]: do the rounds that are left of a job count as whole ones?
    """

    low: Floats
    log_range: Floats
    scale: Floats
    whole: Bools


class FreeDevices(NamedTuple):
    """The free GPUs of H machines in P pools during a round: ``pool``, ``free``, ``claimed`` i64[H], ``sold`` i64[P].

    ``claimed``: what running jobs hold that have not been served yet.
    """

    pool: Ints
    free: Ints
    claimed: Ints
    lots: Lots
    sold: Ints


class Scratch(NamedTuple):
    """Arrays that are overwritten: ``lots`` i64[2, P], ``take`` i64[H] GPUs of every machine."""

    lots: Ints
    take: Ints


class Taken(NamedTuple):
    """GPUs that were given, as CSR: ``size`` i64[2] entries of ``job`` and of ``machine``; ``kept`` if held before."""

    size: Ints
    job: Ints
    kept: Ints
    first: Ints
    machine: Ints
    amount: Ints


@njit(**NESTED)
def _summarise(d: FreeDevices, q: int) -> None:
    count, largest, machines = 0, 0, 0
    for h in range(d.pool.size):
        if d.pool[h] == q and d.free[h] > 0:
            count += d.free[h]
            machines += 1
            largest = max(largest, d.free[h])
    d.lots.free[q], d.lots.largest[q], d.lots.machines[q] = count, largest, machines


@njit(**NESTED)
def _reprice(d: FreeDevices, price_range: PriceRange, q: int) -> None:
    d.lots.price[q] = exponential_price(price_range.low[q], price_range.log_range[q], d.sold[q], price_range.scale[q])


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
    """Compute prices and sums of the free GPUs; nothing is sold.

    Parameters
    ----------
    d
        Free GPUs; ``d.free`` is given, the prices and sums are written.
    price_range
        Prices of the pools.
    """
    for q in range(d.sold.size):
        d.sold[q] = 0
        d.lots.by_price[q] = q
        _reprice(d, price_range, q)
        _summarise(d, q)
    _sort(d.lots.by_price, d.lots.price)


@njit(**NESTED)
def _sell(d: FreeDevices, price_range: PriceRange, take: Ints) -> None:
    for h in range(take.size):
        if take[h] > 0:
            d.free[h] -= take[h]
            d.sold[d.pool[h]] += take[h]
            _reprice(d, price_range, d.pool[h])
    for h in range(take.size):
        if take[h] > 0:
            _summarise(d, d.pool[h])
    _sort(d.lots.by_price, d.lots.price)


@njit(**NESTED)
def _place(d: FreeDevices, gang: int, several: bool, need: Ints, take: Ints) -> None:
    # Which machines, when all of a lot cost the same: unclaimed devices first; one machine: the fullest that holds it;
    # several: as few as possible.
    take[:] = 0
    for q in range(need.size):
        if need[q] > 0 and not several:
            best, least = -1, 0
            for h in range(d.pool.size):
                if d.pool[h] != q or d.free[h] < gang:
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
                for h in range(d.pool.size):
                    if d.pool[h] != q:
                        continue
                    room = min(d.free[h] - take[h], gang - 1 - take[h])
                    if claims:
                        room = min(room, d.free[h] - d.claimed[h] - take[h])
                    if room > most:
                        best, most = h, room
                if best < 0:
                    break
                given = min(left, most)
                take[best] += given
                left -= given


@njit(**NESTED)
def _best(
    jobs: RoundJobs, j: int, d: FreeDevices, price_range: PriceRange, scratch: Scratch, places: bool
) -> tuple[float, float, bool]:
    """Return payoff and rate of the best allocation of job j, and if it holds it; ``places``: write ``scratch.take``."""
    gang, terms, need, take = jobs.gang[j], jobs.terms[j], scratch.lots[0], scratch.take
    whole = price_range.whole[()]
    value, rate, several = find_allocation(
        gang, jobs.together[j], jobs.spread[j], terms, d.lots, whole, need, scratch.lots[1]
    )
    first, last = jobs.held_first[j], jobs.held_last[j]
    if last > first:
        held_rate, cost, free = np.inf, 0.0, True
        for e in range(first, last):
            h = jobs.held_machine[e]
            free = free and d.free[h] >= jobs.held_count[e]
            p = d.pool[h]
            held_rate = min(held_rate, jobs.together[j, p] if last - first == 1 else jobs.spread[j, p])
            cost += jobs.held_count[e] * d.lots.price[p]
        if free and held_rate > 0.0:
            payoff = payoff_of(terms, held_rate, cost, np.bool_(False), whole)
            if rate == NONE or payoff >= value:
                if places:
                    take[:] = 0
                    for e in range(first, last):
                        take[jobs.held_machine[e]] = jobs.held_count[e]
                return payoff, held_rate, True
    if places and rate != NONE and value > 0.0:
        _place(d, gang, several, need, take)
    return value, rate, False


@njit(**KERNEL)
def value_all(
    jobs: RoundJobs,
    who: Ints,
    d: FreeDevices,
    price_range: PriceRange,
    scratch: Scratch,
    payoff: Floats,
    density: Floats,
) -> None:
    """Compute the payoff of every job alone at the prices of ``d``, and that payoff for a GPU and round.

    Parameters
    ----------
    jobs
        Jobs.
    who
        Positions of the jobs that are valued, i64[k].
    d
        Free GPUs.
    price_range
        Prices of the pools.
    scratch
        Overwritten.
    payoff
        Payoffs, f64[m], written; -inf where there is no place for the job.
    density
        Payoffs for a GPU and round that the job pays for, f64[m], written.
    """
    for j in who:
        value, rate, _ = _best(jobs, j, d, price_range, scratch, np.bool_(False))
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
    jobs: RoundJobs, order: Ints, d: FreeDevices, price_range: PriceRange, scratch: Scratch, taken: Taken
) -> None:
    """Sell GPUs to one job after the other, as long as the payoff of a job is positive at the prices of that moment.

    Parameters
    ----------
    jobs
        The m active jobs.
    order
        Positions of the jobs in the order of service, i64[k].
    d
        Free GPUs; what is sold is taken away.
    price_range
        Prices of the pools.
    scratch
        Overwritten.
    taken
        Who gets what; entries are appended.
    """
    left = d.free.sum()
    for j in order:
        if left == 0:
            break
        for e in range(jobs.held_first[j], jobs.held_last[j]):
            d.claimed[jobs.held_machine[e]] -= jobs.held_count[e]
        if jobs.gang[j] > left:
            continue
        value, rate, kept = _best(jobs, j, d, price_range, scratch, np.bool_(True))
        if rate != NONE and value > 0.0:
            _sell(d, price_range, scratch.take)
            _record(j, kept, scratch.take, taken)
            left -= jobs.gang[j]
