"""The rounds of `hadar` in arrays over all jobs, compiled: which plans are due, who keeps GPUs, who stops and who starts.

`survey` reads a round, and says when nothing changes. Otherwise `deal` sells the GPUs that no plan uses, by the auction of
`auction-rounds` (`optsched.policies.hadar_auction`), and writes the moves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optsched.compiled import NESTED, njit
from optsched.policies.arrived_jobs import LONGEST, ArrivedJobs
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_allocation import AGE, LEFT, LENGTH, RESTART, SCALE, SLACK, SPAN, Lots
from optsched.policies.hadar_auction import CHEAPEST
from optsched.policies.hadar_round import (
    FreeDevices,
    PriceRange,
    RoundJobs,
    Scratch,
    Taken,
    open_round,
    serve,
    value_all,
)
from optsched.policies.ties import leading_of
from optsched.problem.arrays import Bools, Floats, Ints

OTHER, KEEPS, STARTS, GRANTED = range(4)  # parts that a job plays in a round
ENDING, SAME, MOVED, OPEN = range(4)  # results of a survey
BUYERS, ENTRIES, OTHERS, DUE, NEW, STOPS, MOVES, NAMED, AHEAD, BEST = range(10)  # of ``counts``


class Books(NamedTuple):
    """Everything that `hadar` keeps of n jobs, P pools and H nodes; ``counts`` i64[10] has the counters above.

    ``rate`` (0: does not run), ``fastest`` units of work a second, ``lost`` seconds, ``arrival`` f64[n]; ``scale``, ``span``
    of the utility; ``restart`` seconds of a job that has run. ``at`` <= s < ``until``: the segments of its plan that are
    left, of rounds ``first`` to ``last`` with ``take`` i64[S, P] GPUs; ``buyer`` jobs with such segments in the order in
    which they bought; ``gone`` jobs have completed. ``size`` i64[H]. Of the round: the number of
    the round in which a job was last ``seen``, its ``part``; ``who`` takes part in the auction, ``sale``; ``stop`` and
    ``start`` move; start k is on the entries ``begins[k]`` to ``begins[k + 1]`` of ``node`` and ``gpus``.
    """

    counts: Ints
    jobs: RoundJobs
    rate: Floats
    fastest: Floats
    lost: Floats
    arrival: Floats
    scale: Floats
    span: Floats
    restart: Floats
    ran: Bools
    gone: Bools
    at: Ints
    until: Ints
    buyer: Ints
    first: Ints
    last: Ints
    take: Ints
    size: Ints
    seen: Ints
    part: Ints
    who: Ints
    spare: Ints
    payoff: Floats
    density: Floats
    devices: FreeDevices
    scratch: Scratch
    taken: Taken
    stop: Ints
    start: Ints
    begins: Ints
    node: Ints
    gpus: Ints
    sale: PriceRange
    gift: PriceRange


def books(pools: GpuPools, arrived: ArrivedJobs) -> Books:
    """Return books without plans and moves.

    Parameters
    ----------
    pools
        The pools of the cluster.
    arrived
        The jobs that have arrived; the books share its arrays.
    """
    n, count, nodes, total = arrived.gang.size, pools.type.size, pools.pool.size, int(pools.size.sum())

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    def prices(whole: bool) -> PriceRange:
        return PriceRange(np.zeros(count), np.zeros(count), np.ones(count), np.array(whole))

    rates = arrived.together, arrived.spread
    jobs = RoundJobs(arrived.gang, *rates, np.zeros((n, 6)), ints(n), ints(n), ints(4 * total), ints(4 * total))
    lots = Lots(np.arange(count), ints(count), ints(count), ints(count), np.zeros(count), ints(count))
    at, until, buyer, part, who, spare = ints(6, n)
    return Books(
        counts=ints(10), jobs=jobs, rate=arrived.rate, fastest=arrived.fastest, lost=arrived.lost, arrival=arrived.arrival,
        scale=arrived.scale, span=arrived.span, restart=arrived.restart, ran=arrived.ran, gone=np.zeros(n, dtype=bool),
        at=at, until=until, buyer=buyer, first=ints(64), last=ints(64), take=ints(64, count), size=pools.size.copy(),
        seen=ints(n) - 1, part=part, who=who, spare=spare, payoff=np.zeros(n),
        density=np.zeros(n), devices=FreeDevices(pools.pool.copy(), ints(nodes), ints(nodes), lots, ints(count)),
        scratch=Scratch(ints(2, count), ints(nodes)),
        taken=Taken(ints(2), ints(total), ints(total), ints(total + 1), ints(total), ints(total)),
        stop=ints(total), start=ints(total), begins=ints(total + 1), node=ints(total), gpus=ints(total),
        sale=prices(True), gift=prices(False),
    )  # fmt: skip


def with_segments(b: Books, least: int) -> Books:
    """Return the same books with room for more segments of plans.

    Parameters
    ----------
    b
        The books.
    least
        Number of segments for which there must be room.
    """
    more, count = least + b.first.size, b.take.shape[1]
    rows = np.resize(b.first, more), np.resize(b.last, more), np.resize(b.take, (more, count))
    return b._replace(first=rows[0], last=rows[1], take=rows[2])


def with_entries(b: Books) -> Books:
    """Return the same books with twice the room for GPUs that jobs hold.

    Parameters
    ----------
    b
        The books.
    """
    size = 2 * b.jobs.held_machine.size
    machine, count = np.resize(b.jobs.held_machine, size), np.resize(b.jobs.held_count, size)
    return b._replace(jobs=b.jobs._replace(held_machine=machine, held_count=count))


@njit(**NESTED)
def _holds(b: Books, j: int, take: Ints) -> bool:
    # Does it hold what the plan says? By pool any nodes will do.
    need = b.scratch.lots[0]
    for p in range(need.size):
        need[p] = take[p]
    for e in range(b.jobs.held_first[j], b.jobs.held_last[j]):
        need[b.devices.pool[b.jobs.held_machine[e]]] -= b.jobs.held_count[e]
    for p in range(need.size):
        if need[p] != 0:
            return False
    return True


@njit(**NESTED)
def _name(b: Books, h: int, count: int) -> None:
    e = b.counts[NAMED]
    b.node[e], b.gpus[e] = h, count
    b.counts[NAMED] = e + 1


@njit(**NESTED)
def _start(b: Books, j: int) -> None:
    # The job starts on the GPUs that have been named since the last start.
    b.start[b.counts[MOVES]] = j
    b.counts[MOVES] += 1
    b.begins[b.counts[MOVES]] = b.counts[NAMED]


@njit(**NESTED)
def _place(b: Books, j: int, take: Ints) -> None:
    # Start job ``j`` on the GPUs of its plan: the fullest node that holds all of a pool, else few nodes, the emptiest first.
    free, pool = b.devices.free, b.devices.pool
    for p in range(take.size):
        need, best = take[p], -1
        if need > 0:
            for h in range(free.size):
                if pool[h] == p and free[h] >= need and (best < 0 or free[h] < free[best]):
                    best = h
        while need > 0:
            if best < 0:
                for h in range(free.size):
                    if pool[h] == p and free[h] > 0 and (best < 0 or free[h] > free[best]):
                        best = h
                if best < 0:
                    break
            given = min(need, free[best])
            _name(b, best, given)
            free[best] -= given
            need -= given
            best = -1
    _start(b, j)


@njit(**NESTED)
def _ends(b: Books, active: Ints, left: Floats, wait: float, moment: float, length: float) -> bool:
    for i in range(active.size):
        j = active[i]
        if b.rate[j] > 0.0 and left[i] / b.rate[j] <= wait + min(moment + b.lost[j], LONGEST * length):
            return True
    return False


@njit(**NESTED)
def _find_due(b: Books, number: int) -> None:
    # Plans that are due are carried out: first those of jobs that hold their GPUs. Others are put into ``spare``.
    buyers, new, ahead = 0, 0, False
    for i in range(b.counts[BUYERS]):
        j = b.buyer[i]
        while b.at[j] < b.until[j] and b.last[b.at[j]] < number:
            b.at[j] += 1
        if b.gone[j] or b.at[j] == b.until[j]:
            continue
        b.buyer[buyers] = j
        buyers += 1
        ahead = ahead or b.last[b.until[j] - 1] > number
        if b.seen[j] == number and b.first[b.at[j]] <= number:
            b.counts[DUE] += 1
            if b.rate[j] > 0.0 and _holds(b, j, b.take[b.at[j]]):
                b.part[j] = KEEPS
                for e in range(b.jobs.held_first[j], b.jobs.held_last[j]):
                    b.devices.free[b.jobs.held_machine[e]] -= b.jobs.held_count[e]
            else:
                b.part[j] = STARTS
                b.spare[new] = j
                new += 1
    b.counts[BUYERS], b.counts[AHEAD], b.counts[NEW] = buyers, ahead, new


@njit(**NESTED)
def _bid(b: Books, j: int, left: float, now: float, length: float, restart: float) -> None:
    terms = b.jobs.terms[j]
    terms[LEFT], terms[AGE], terms[SCALE], terms[SPAN] = left, now - b.arrival[j], b.scale[j], b.span[j]
    own = b.restart[j]
    terms[RESTART] = (restart if np.isnan(own) else own) if b.ran[j] else 0.0
    terms[LENGTH] = length


@njit(**NESTED)
def _range(b: Books) -> None:
    # The prices of a GPU of each pool for a round, between a part of its least value and its greatest one
    # (`Auction.price_range`); the price is highest when the widest gang finds one GPU too few.
    least, greatest, capacity, widest = b.sale.low, b.sale.log_range, b.scratch.lots[0], 1
    least[:], greatest[:], capacity[:] = np.inf, 0.0, 0
    for h in range(b.size.size):
        capacity[b.devices.pool[h]] += b.devices.free[h]
    for k in range(b.counts[OTHERS]):
        j = b.who[k]
        terms, gang = b.jobs.terms[j], b.jobs.gang[j]
        widest = max(widest, gang)
        for p in range(capacity.size):
            best = max(b.jobs.together[j, p], b.jobs.spread[j, p])
            if best <= 0.0:
                continue
            rounds = max(1.0, np.ceil((terms[LEFT] / best + terms[RESTART]) / terms[LENGTH] - SLACK))
            x = terms[AGE] + rounds * terms[LENGTH]
            worth = terms[SCALE] * (max(0.0, 1.0 - x / terms[SPAN]) if terms[SPAN] > 0.0 else 1.0 / x)
            worth = worth / gang / rounds
            if worth > 0.0:
                least[p] = min(least[p], worth)
                greatest[p] = max(greatest[p], worth)
    for p in range(capacity.size):
        b.sale.scale[p] = capacity[p] - min(capacity[p], widest) + 1
        low, high = least[p] / CHEAPEST, greatest[p]
        least[p], greatest[p] = (low, math.log(high) - math.log(low)) if high > 0.0 else (0.0, 0.0)


@njit(**NESTED)
def _at_best(b: Books, active: Ints) -> bool:
    for j in active:
        if b.rate[j] < b.fastest[j]:
            return False
    return True


@njit(**NESTED)
def survey(b: Books, active: Ints, left: Floats, number: int, now: float, terms: Floats, fill: bool) -> int:
    """Read a round that begins, and return what it needs.

    Parameters
    ----------
    b
        The books; plans that are due and have other GPUs than they hold are started.
    active
        The m active jobs in order of arrival, i64[m].
    left
        Units of work that they have left, f64[m].
    number
        Number of the round.
    now
        Time in seconds.
    terms
        f64[4]: seconds from now until the boundary (at most 0), the moment within which a job is about to end, the length of
        a round and the usual restart, all in seconds.
    fill
        If true, there is an auction in any case; if false, only when no plan is due.

    Returns
    -------
    int
        ENDING: a job is about to end. SAME: nothing moves. MOVED: there is no auction, and `deal` writes the moves. OPEN:
        there is one.

    Notes
    -----
    With one pool a job that holds GPUs of one node, at its best rate, keeps them in every auction in which all the others
    do: its payoff there falls with no other allocation's, restart and price included.
    """
    if _ends(b, active, left, terms[0], terms[1], terms[2]):
        return ENDING
    for h in range(b.size.size):
        b.devices.free[h] = b.size[h]
    b.counts[OTHERS:AHEAD] = 0
    for j in active:
        b.seen[j], b.part[j] = number, OTHER
    _find_due(b, number)
    same, others = b.counts[NEW] == 0, 0
    for k in range(b.counts[NEW]):
        _place(b, b.spare[k], b.take[b.at[b.spare[k]]])
    for i in range(active.size):
        j = active[i]
        if b.part[j] == OTHER:
            b.who[others] = j
            others += 1
            one = b.sale.low.size == 1 and b.jobs.held_last[j] - b.jobs.held_first[j] == 1
            same = same and one and b.rate[j] >= b.fastest[j]
            _bid(b, j, left[i], now, terms[2], terms[3])
    b.counts[OTHERS] = others
    sells = others > 0 and b.devices.free.sum() > 0 and (fill or b.counts[DUE] == 0)
    if same and (sells or others == 0):
        b.counts[BEST] = _at_best(b, active)
        return SAME
    if sells:
        _range(b)
        return OPEN
    return MOVED


@njit(**NESTED)
def _before(b: Books, i: int, j: int) -> bool:
    return b.density[i] > b.density[j] or (b.density[i] == b.density[j] and b.jobs.gang[i] <= b.jobs.gang[j])


@njit(**NESTED)
def _sort(b: Books, n: int) -> None:
    # Merge ``who`` by falling density, then by gang; equal ones stay in order.
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for k in range(begin, end):
                if i < middle and (j >= end or _before(b, b.who[i], b.who[j])):
                    b.spare[k] = b.who[i]
                    i += 1
                else:
                    b.spare[k] = b.who[j]
                    j += 1
        for k in range(n):
            b.who[k] = b.spare[k]
        width *= 2


@njit(**NESTED)
def _claim(b: Books, who: Ints) -> None:
    b.devices.claimed[:] = 0
    for j in who:
        for e in range(b.jobs.held_first[j], b.jobs.held_last[j]):
            b.devices.claimed[b.jobs.held_machine[e]] += b.jobs.held_count[e]


@njit(**NESTED)
def _sell(b: Books) -> None:
    # The auction: jobs buy by payoff, then the others get what is left.
    n, taken = b.counts[OTHERS], b.taken
    who = b.who[:n]
    _claim(b, who)
    open_round(b.devices, b.sale)
    value_all(b.jobs, who, b.devices, b.sale, b.scratch, b.payoff, b.density)
    for j in who:
        if np.isfinite(b.density[j]):
            b.density[j] = leading_of(b.density[j])
    _sort(b, n)
    paying = 0
    for j in who:
        if b.payoff[j] > 0.0:
            b.spare[paying] = j
            paying += 1
    taken.size[:] = 0
    serve(b.jobs, b.spare[:paying], b.devices, b.sale, b.scratch, taken)
    for k in range(taken.size[0]):
        b.part[taken.job[k]] = GRANTED
    rest = 0
    for j in who:
        if b.part[j] == OTHER:
            b.spare[rest] = j
            b.jobs.terms[j, SCALE], b.jobs.terms[j, SPAN] = 1.0, 0.0
            rest += 1
    if rest > 0 and b.devices.free.sum() > 0:
        _claim(b, b.spare[:rest])
        open_round(b.devices, b.gift)
        serve(b.jobs, b.spare[:rest], b.devices, b.gift, b.scratch, taken)


@njit(**NESTED)
def _granted(b: Books) -> None:
    taken = b.taken
    for k in range(taken.size[0]):
        j = taken.job[k]
        b.part[j] = KEEPS if taken.kept[k] else STARTS
        if not taken.kept[k]:
            for e in range(taken.first[k], taken.first[k + 1]):
                _name(b, taken.machine[e], taken.amount[e])
            _start(b, j)


@njit(**NESTED)
def _note(b: Books, k: int, late: float) -> None:
    # Start number ``k`` of the round: what the job holds from now on, and its rate there.
    j, e = b.start[k], b.counts[ENTRIES]
    first, last = b.begins[k], b.begins[k + 1]
    rate = b.jobs.together[j, b.devices.pool[b.node[first]]]
    if last - first > 1:
        rate = np.inf
        for i in range(first, last):
            rate = min(rate, b.jobs.spread[j, b.devices.pool[b.node[i]]])
    b.jobs.held_first[j] = e
    for i in range(first, last):
        b.jobs.held_machine[e], b.jobs.held_count[e] = b.node[i], b.gpus[i]
        e += 1
    b.jobs.held_last[j] = b.counts[ENTRIES] = e
    b.lost[j] += late
    b.ran[j], b.rate[j] = True, rate


@njit(**NESTED)
def deal(b: Books, active: Ints, late: float, sells: bool) -> None:
    """Sell the GPUs that no plan uses, and write the moves of a round after its `survey`.

    Parameters
    ----------
    b
        The books; `Books.sale` has its prices.
    active
        The active jobs, i64[m].
    late
        Seconds that a start may cost because of the clock.
    sells
        If false, there is no auction.
    """
    b.taken.size[:] = 0
    if sells:
        _sell(b)
        _granted(b)
    for j in active:
        if b.rate[j] > 0.0 and b.part[j] != KEEPS:
            b.stop[b.counts[STOPS]] = j
            b.counts[STOPS] += 1
            b.rate[j], b.jobs.held_last[j] = 0.0, b.jobs.held_first[j]
    for k in range(b.counts[MOVES]):
        _note(b, k, late)
    b.counts[BEST] = _at_best(b, active)
