"""The state of a compiled run of Hadar, and the purchase of a plan: `optsched.policies.hadar` has both in plain Python.

`HadarTurns` is what that form keeps in its objects: the books, the GPUs of future rounds that are sold, and the clock of
the rounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import INNER, NESTED, njit, record
from optsched.compiled.exact_sum import exact_sum
from optsched.compiled.heap import pop, push
from optsched.policies.arrived_jobs import ArrivedJobs
from optsched.policies.exponential_prices import ABOVE
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_allocation import SLACK, utility
from optsched.policies.hadar_deal import BUYERS, Books, books
from optsched.policies.hadar_reservations import (
    LONGEST,
    ROUNDS as ROUNDS_A_UNIT,
    Offers,
    Reservations,
    best_finish,
    round_devices,
)
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.simulation.policy_loop import UNITS

HEADROOM = 4.0  # Up at first, in units of what the first job pays at most: so that others seldom raise it
FLOOR = 1e-3  # Lo, if not given: this part of what the first job pays for a GPU and round

NOTHING, TERMS, RAISE, ROUNDS, SEGMENTS, HELD, WEIGH = range(7)  # steps that are left to Python

# The parameters of a run, then the state of the clock, of the auction and of the loop.
TURNS = record(
    length="real",  # seconds of a round
    restart="real",
    low="real",  # 0: from the first job
    high="real",  # 0: from the jobs
    fill="int",
    counting="int",  # 1: utilities depend on the number of active jobs
    zero="real",  # when round 0 began, nan: not yet
    number="int",  # of the next round
    asked="int",  # the last round whose beginning was asked to be woken at
    late="int",  # 1: its beginning is put off by a moment
    wake="real",  # when to be woken, inf: never
    priced="int",  # 1: prices have constants
    price_low="real",
    price_high="real",
    log_range="real",
    widest="int",  # gang so far
    used="int",  # devices were sold in rounds before this one only
    segments="int",  # of plans
    heard="int",  # arrivals
    listed="int",  # jobs in ``active``
    phase="int",
    asks="int",  # the step that Python does next
    job="int",  # of the step
    want_low="real",
    want_high="real",
    want="int",  # rows of rounds or segments that are needed
    work="int",  # units of work since Python last weighed it
    limit="int",  # of them, at which Python weighs it again
)


class HadarTurns(NamedTuple):
    """A run of n jobs on P pools; the loop changes it, and Python replaces arrays that are too small.

    Plans of R rounds are kept in ``sold``; plans look at most L rounds ahead.
    """

    facts: Any  # TURNS[1]
    books: Books
    work: Floats  # f64[n]
    valued: Bools  # bool[n]: scale and span of the utility are computed
    alike: Bools  # bool[P]: the pool is one node
    largest: Ints  # i64[P]: GPUs of its largest node
    payoff: Floats  # f64[n]
    utility: Floats  # f64[n]
    end: Floats  # f64[n]
    first: Floats  # f64[n]
    alone: Floats  # f64[n, P]
    shared: Floats  # f64[n, P]
    sold: Ints  # i64[R, P]
    room: Ints  # i64[P]
    scale: Ints  # i64[P]: of prices
    active: Ints  # i64[n]: jobs that have arrived, and of which some may be finished
    left: Floats  # f64[n], scratch: units of work
    resource: Ints  # i64[P]: 0 to P - 1
    machines: Ints  # i64[P]: 1 each
    terms: Floats  # f64[5], scratch
    range: Floats  # f64[3], scratch: Lo, Up, ln(Up / Lo)
    rates: Floats  # f64[3, 2 P], scratch: on one resource, on several, all different ones
    take: Ints  # i64[P], scratch
    price: Floats  # f64[R, P]
    by_price: Ints  # i64[R, P]: pools from the cheapest to the dearest
    known: Ints  # i64[R]: 1 if these of a round are computed
    cost: Floats  # f64[L], scratch
    best: Floats  # f64[L], scratch
    heap: Floats  # f64[L], scratch
    chosen: Ints  # i64[L], scratch
    devices: Ints  # i64[L, P], scratch


def new_turns(pools: GpuPools, arrived: ArrivedJobs, reservations: Reservations, **notes: Floats) -> HadarTurns:
    """Return the state of a run before the first event.

    Parameters
    ----------
    pools
        Pools of the cluster.
    arrived
        All jobs.
    reservations
        Rounds of which nothing is sold.
    **notes
        Arrays of the policy that the run writes: ``payoff``, ``utility``, ``end``, ``first``, ``alone``, ``shared``.
    """
    n, count = arrived.gang.size, pools.capacity.size
    facts = np.zeros(1, dtype=TURNS)
    facts["zero"], facts["asked"], facts["wake"], facts["limit"] = np.nan, -1, np.inf, UNITS
    room = np.ones(count, dtype=np.int64)
    turns = HadarTurns(
        facts, books(pools, arrived), work=arrived.work, valued=np.zeros(n, dtype=bool),
        alike=np.bincount(pools.pool) == 1, largest=pools.largest, sold=reservations.sold, room=pools.capacity,
        scale=room.copy(), active=np.zeros(n, dtype=np.int64), left=np.zeros(n), resource=np.arange(count), machines=room,
        terms=np.zeros(5), range=np.zeros(3), rates=np.zeros((3, 2 * count)), take=room.copy(),
        payoff=notes["payoff"], utility=notes["utility"], end=notes["end"], first=notes["first"], alone=notes["alone"],
        shared=notes["shared"], **_scratch(reservations.sold),
    )  # fmt: skip
    return turns


def _scratch(sold: Ints) -> dict[str, Any]:
    rows, count = min(sold.shape[0], LONGEST + 1), sold.shape[1]
    return {
        "price": np.zeros(sold.shape), "by_price": np.zeros_like(sold), "known": np.zeros(sold.shape[0], dtype=np.int64),
        "cost": np.zeros(rows), "best": np.zeros(rows), "heap": np.zeros(rows), "chosen": np.zeros(rows, dtype=np.int64),
        "devices": np.zeros((rows, count), dtype=np.int64),
    }  # fmt: skip


def with_sold(t: HadarTurns, sold: Ints) -> HadarTurns:
    """Return the same state with another table of sales, which has more rows.

    Parameters
    ----------
    t
        State of the policy.
    sold
        Devices that are sold, i64[R, P].
    """
    return t._replace(sold=sold, **_scratch(sold))


# --- the clock --------------------------------------------------------------------------------------------------------


@njit(**INNER)
def begins(t: HadarTurns, number: int) -> float:
    """Return the time at which a round begins, in seconds.

    Parameters
    ----------
    t
        State of the policy.
    number
        Number of the round.
    """
    return t.facts[0].zero + number * t.facts[0].length


# --- the purchase of a plan -------------------------------------------------------------------------------------------


@njit(**NESTED)
def _rates(t: HadarTurns, j: int) -> int:
    # The rates that a plan counts on, and the different ones from the largest on; their number.
    jobs, gang, pools = t.books.jobs, t.books.jobs.gang[j], t.room.size
    alone, shared, speeds, count = t.rates[0], t.rates[1], t.rates[2], 0
    for p in range(pools):
        one, several = jobs.together[j, p], jobs.spread[j, p]
        shared[p] = several
        # A plan knows no nodes: where a type has several, it counts on the slower of the two rates.
        alone[p] = one
        if gang > 1 and not t.alike[p]:
            alone[p] = min(one, several) if t.largest[p] >= gang else several
    for i in range(2 * pools):
        rate = alone[i] if i < pools else shared[i - pools]
        k = count
        while k > 0 and speeds[k - 1] < rate:
            k -= 1
        if rate > 0.0 and (k == 0 or speeds[k - 1] != rate):
            for m in range(count, k, -1):
                speeds[m] = speeds[m - 1]
            speeds[k] = rate
            count += 1
    return count


@njit(**INNER)
def _rounds_needed(work: float, speed: float, seconds: float) -> float:
    return max(1.0, np.ceil(work / (speed * seconds) - SLACK))


@njit(**NESTED)
def _least(t: HadarTurns, gang: int) -> int:
    # The fewest devices of one resource that the gang may take.
    several = 0
    for p in range(t.room.size):
        several += t.rates[1, p] > 0.0
    return 1 if gang > 1 and several > 1 else gang


@njit(**NESTED)
def _choose(t: HadarTurns, count: int, size: int) -> None:
    # The ``count`` cheapest of the ``size`` rounds whose prices are in ``best``, in order; of equal ones the first.
    if count == size:
        for i in range(count):
            t.chosen[i] = i
        return
    heap, prices, held = t.heap, t.best, 0
    for i in range(size):
        if held == count:
            if -prices[i] <= heap[0]:  # the dearest of the cheapest so far is on top, as minus its price
                continue
            pop(heap, 0, held)
            held -= 1
        held = push(heap, 0, held, -prices[i])
    dearest, cheaper, chosen = -heap[0], 0, 0
    for i in range(size):
        cheaper += prices[i] < dearest
    for i in range(size):
        if prices[i] < dearest or (prices[i] == dearest and cheaper < count):
            cheaper += prices[i] == dearest
            t.chosen[chosen] = i
            chosen += 1


@njit(**NESTED)
def _keep(t: HadarTurns, j: int, first: int, count: int) -> None:
    # Write down the plan of a job: neighbouring rounds with the same GPUs are one segment.
    b, w = t.books, t.facts[0]
    b.at[j] = w.segments
    for k in range(count):
        same = k > 0 and t.chosen[k] == t.chosen[k - 1] + 1
        for p in range(t.room.size):
            same = same and t.devices[k, p] == t.devices[k - 1, p]
            t.sold[first + t.chosen[k], p] += t.devices[k, p]
        t.known[first + t.chosen[k]] = 0
        if not same:
            b.first[w.segments] = first + t.chosen[k]
            for p in range(t.room.size):
                b.take[w.segments, p] = t.devices[k, p]
            w.segments += 1
        b.last[w.segments - 1] = first + t.chosen[k]
    w.used = max(w.used, first + t.chosen[count - 1] + 1)
    b.until[j] = w.segments
    b.buyer[b.counts[BUYERS]] = j
    b.counts[BUYERS] += 1


@njit(**NESTED)
def buy(t: HadarTurns, j: int) -> int:
    """Buy the plan of largest payoff at the prices of what is sold so far: the paper's step.

    Parameters
    ----------
    t
        State of the policy.
    j
        Job that has arrived.

    Returns
    -------
    int
        `NOTHING`, or the step that Python must do before.
    """
    w, b, length = t.facts[0], t.books, t.facts[0].length
    if w.counting == 1 and not t.valued[j]:
        w.job = j
        return TERMS
    first, own = w.number + int(b.arrival[j] > begins(t, w.number)), b.restart[j]
    restart = w.restart if np.isnan(own) else own
    if restart >= length:  # a round that it pays for may do nothing: there are no plans for it
        return NOTHING
    speeds, gang, work, seconds = _rates(t, j), b.jobs.gang[j], t.work[j], length - restart
    age = max(0.0, first * length - (b.arrival[j] - w.zero))  # without the rounding of late clocks
    needed = _rounds_needed(work, t.rates[2, 0], seconds)
    done = age + length * (needed - 1.0) + restart + work / t.rates[2, 0] - (needed - 1.0) * seconds
    worth = utility(b.scale[j], b.span[j], done)
    if worth <= 0.0:
        return NOTHING
    w.want_high = max(w.high, ABOVE * worth / _least(t, gang) * (1.0 if w.priced == 1 else HEADROOM))
    if w.priced == 0 or w.want_high > w.price_high or gang > w.widest:
        w.job = j
        w.want_low = w.low if w.low > 0.0 else FLOOR * worth / (gang * needed)
        return RAISE
    return _take(t, j, first, speeds, age, restart)


@njit(**NESTED)
def _take(t: HadarTurns, j: int, first: int, speeds: int, age: float, restart: float) -> int:
    # Buy the plan of largest payoff from round ``first`` on, if that is positive.
    w, b, gang, work, pools = t.facts[0], t.books, t.books.jobs.gang[j], t.work[j], t.room.size
    seconds, tail, widest = w.length - restart, max(0, w.used - first), 0
    for i in range(speeds):
        needed = _rounds_needed(work, t.rates[2, i], seconds)
        if needed <= LONGEST:
            widest = max(widest, int(needed))
    rounds = min(LONGEST, tail + widest)
    if widest > 0 and first + rounds > t.sold.shape[0]:
        w.want = first + rounds
        return ROUNDS
    if w.segments + widest > b.first.size:
        w.want = widest
        return SEGMENTS
    t.first[j] = first
    alone, shared = t.rates[0, :pools], t.rates[1, :pools]
    for p in range(pools):
        t.alone[j, p], t.shared[j, p] = alone[p], shared[p]
    if widest == 0:
        return NOTHING
    t.range[0], t.range[1], t.range[2] = w.price_low, w.price_high, w.log_range
    end = first + min(tail + 1, rounds)
    offers = Offers(
        t.sold[first:end], t.room, t.scale, t.range, t.resource, t.machines, t.price[first:end], t.by_price[first:end],
        t.known[first:end], t.cost[:rounds],
    )  # fmt: skip
    most, speed, left, count, size = 0.0, 0.0, 0.0, 0, 0
    for i in range(speeds):
        x = t.rates[2, i]
        needed = _rounds_needed(work, x, seconds)
        if needed > LONGEST:
            continue
        k = int(needed)
        rest, looked = restart + work / x - (k - 1) * seconds, min(rounds, tail + k)
        t.terms[0], t.terms[1], t.terms[2], t.terms[3], t.terms[4] = age, w.length, rest, b.scale[j], b.span[j]
        payoff, last = best_finish(offers, gang, alone, shared, x, k, t.terms, most, t.heap, t.take, looked)
        w.work += looked // ROUNDS_A_UNIT
        if payoff > most:
            most, speed, left, count, size = payoff, x, rest, k, last + 1
            for r in range(size):
                t.best[r] = t.cost[r]
    if size == 0:
        return NOTHING
    _choose(t, count, size)
    chosen = t.chosen[:count]
    round_devices(offers, gang, alone, shared, speed, chosen, t.devices[:count])
    for i in range(count):
        t.heap[i] = t.best[chosen[i]]
    age = age + w.length * float(chosen[count - 1]) + left
    worth = utility(b.scale[j], b.span[j], age)
    t.payoff[j], t.utility[j], t.end[j] = worth - exact_sum(t.heap[:count]), worth, b.arrival[j] + age
    _keep(t, j, first, count)
    return NOTHING
