"""The GPUs of future rounds that `hadar` has sold, their prices, and the best plan of a job at these prices.

**S_j**, the plans of job j: choose a speed x among the rates that the job can have, k = ceil(work / (x * (length -
restart))) different rounds from ``first`` on, and in each of them W devices on which the gang runs at x or faster. The plan
ends in its last round, after the seconds that are left over when the k - 1 others are full; it is worth U of that age.
Rounds need not be neighbours: the job is preempted between them. The restart is set aside in every round, so that a plan
holds in any case.

**Exact argmax of U - prices**: for every x the k rounds are independent but for the last one. So for every possible last
round f the k cheapest of the rounds up to f are best, each with its cheapest W devices of rate >= x; U falls with f, so
that it does not matter whether f itself is among them. One pass over the rounds with a heap of the k cheapest finds them.
Rounds from ``tail`` on are unsold and all alike, so no f beyond tail + k - 1 is better. The pass ends when the utility
less the lowest price is no better than the best payoff so far.

Devices: H resources with ``room`` devices each. On one resource the gang runs at ``alone[h]``, on several at the slowest
``shared[h]``. **Complexity** O(X R (H + log k)) for X speeds and R rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from optsched.compiled import KERNEL, NESTED, entry, njit, types, worked
from optsched.compiled.heap import pop, push
from optsched.errors import InputError
from optsched.policies.exponential_prices import PriceFunction, price_below
from optsched.policies.hadar_allocation import SLACK, Lots, cheapest_apart, utility
from optsched.problem.arrays import Floats, Ints
from optsched.registry import Seconds


class Offers(NamedTuple):
    """Prices in the rounds from the first one that a job may use to the first one that is unsold: row ``tail``, the last.

    All later rounds are like ``tail``. ``sold`` i64[tail + 1, H]; ``room`` devices and ``scale`` (`PriceFunction`), i64[H];
    ``range`` f64[3]: Lo, Up and ln(Up / Lo). Written on demand: ``price`` f64[tail + 1, H]; ``by_price`` i64[tail + 1, H],
    resources from the cheapest to the dearest; ``known`` i64[tail + 1], 1 if these of a round are computed; ``cost``
    f64[rounds], the least prices of a gang.
    """

    sold: Ints
    room: Ints
    scale: Ints
    range: Floats
    resource: Ints  # 0 to H - 1
    machines: Ints  # 1 each
    price: Floats
    by_price: Ints
    known: Ints
    cost: Floats


_I, _F = types.int64, types.float64
_OFFERS = types.NamedTuple(
    (_I[:, ::1], _I[::1], _I[::1], _F[::1], _I[::1], _I[::1], _F[:, ::1], _I[:, ::1], _I[::1], _F[::1]), Offers
)


@njit(**NESTED)
def lots_of(o: Offers, i: int) -> Lots:
    """Return the resources of one round.

    Parameters
    ----------
    o
        The offers, with known prices.
    i
        Number of the round, from 0.
    """
    row = min(i, o.sold.shape[0] - 1)
    return Lots(o.resource, o.room, o.room, o.machines, o.price[row], o.by_price[row])


@njit(**NESTED)
def _price(o: Offers, i: int) -> None:
    # Prices in round ``i``; equal ones by the number of the resource.
    for h in range(o.room.size):
        price, k = price_below(o.range[0], o.range[1], o.range[2], o.sold[i, h], o.scale[h]), h
        while k > 0 and o.price[i, o.by_price[i, k - 1]] > price:
            o.by_price[i, k] = o.by_price[i, k - 1]
            k -= 1
        o.price[i, h], o.by_price[i, k] = price, h
    o.known[i] = 1


@njit(**KERNEL)
def cheapest(gang: int, alone: Floats, shared: Floats, speed: float, lots: Lots, take: Ints) -> float:
    """Return the least price of W devices on which the gang runs at ``speed`` or faster; infinite if there are too few.

    The devices are of one resource, or the cheapest of several (see `hadar_allocation`).

    Parameters
    ----------
    gang
        Devices W that the job needs.
    alone
        Rate of the gang on one resource, f64[H].
    shared
        Rate of the gang on several resources, f64[H].
    speed
        Least rate, in units of work a second.
    lots
        Devices and prices of the resources in one round.
    take
        Devices of every resource, i64[H], written.
    """
    best, single = np.inf, -1
    for h in lots.by_price:
        if alone[h] >= speed and lots.free[h] >= gang:
            best, single = gang * lots.price[h], h
            break
    if gang > 1 and take.size > 1:
        cost = cheapest_apart(gang, speed, shared, lots, take)
        if cost < best:
            return cost
    take[:] = 0
    if single >= 0:
        take[single] = gang
    return best


@njit(**NESTED)
def _fill(heap: Floats, cost: Floats, count: int) -> None:
    # A heap of the first finite costs, as minus a cost each.
    size = 0
    for price in cost:
        if price < np.inf and size < count:
            size = push(heap, 0, size, -price)


@njit(
    signature=types.Tuple((_F, _I))(_OFFERS, _I, _F[::1], _F[::1], _F, _I, _F[::1], _F, _F[::1], _I[::1], _I), **KERNEL
)
def best_finish(
    o: Offers,
    gang: int,
    alone: Floats,
    shared: Floats,
    speed: float,
    count: int,
    terms: Floats,
    enough: float,
    heap: Floats,
    take: Ints,
    rounds: int,
) -> tuple[float, int]:
    """Return the payoff of the best ``count`` rounds and the position of the last of them.

    Parameters
    ----------
    o
        The offers; prices are written.
    gang, alone, shared, speed
        As in `cheapest`.
    count
        Rounds that the job needs.
    terms
        f64[5]: the age at the beginning of the first round, the seconds of a round, the seconds of the last round until the
        job ends (its restart included), and scale and span of the utility (`optsched.policies.hadar_allocation.utility`).
    enough
        A payoff that is not more than this does not matter.
    heap
        Scratch, f64[count].
    take
        Scratch, i64[H].
    rounds
        Rounds that are looked at.

    Returns
    -------
    tuple of float, int
        A payoff of at most ``enough`` if there is none above it.

    Notes
    -----
    It stops where the utility, less the lowest price for the whole job, is no better than the best so far. ``margin`` is
    more than what rounding can change in the sum of the cheapest rounds. The heap is made when the first of the rounds that
    it holds gives way to a cheaper one.
    """
    tail = o.sold.shape[0] - 1
    best, last, size, total, dearest, top, heaped = -np.inf, -1, 0, 0.0, 0.0, 0.0, False
    for i in range(rounds):
        if i <= tail:
            if o.known[i] == 0:
                _price(o, i)
            o.cost[i] = cheapest(gang, alone, shared, speed, lots_of(o, i), take)
        else:
            o.cost[i] = o.cost[tail]
        cost = o.cost[i]
        if size == count:
            if i > tail and cost >= top:
                break  # all that is left is like this round
            worth = utility(terms[3], terms[4], (terms[0] + terms[1] * i) + terms[2])
            margin = ROUNDING * (rounds + gang) * count * dearest
            if worth - count * (gang * o.range[0]) + margin <= max(best, enough):
                break
        if cost == np.inf:
            continue
        dearest = max(dearest, cost)
        if size < count:
            total += cost
            top = max(top, cost)
            size += 1
        elif cost < top:  # the dearest of the cheapest so far is on top of the heap, as minus its cost
            if not heaped:
                heaped = True
                _fill(heap, o.cost[:i], count)
            total += cost - top
            pop(heap, 0, size)
            push(heap, 0, size - 1, -cost)
            top = -heap[0]
        else:
            continue  # not later for nothing
        if size == count:
            value = utility(terms[3], terms[4], (terms[0] + terms[1] * i) + terms[2]) - total
            if value > best:
                best, last = value, i
    return best, last


@njit(signature=types.void(_OFFERS, _I, _F[::1], _F[::1], _F, _I[::1], _I[:, ::1]), **KERNEL)
def round_devices(o: Offers, gang: int, alone: Floats, shared: Floats, speed: float, chosen: Ints, take: Ints) -> None:
    """Compute the devices that are cheapest in k rounds.

    Parameters
    ----------
    o
        The offers, with known prices.
    gang, alone, shared, speed
        As in `cheapest`.
    chosen
        Numbers of the rounds, i64[k].
    take
        Devices of every resource, i64[k, H], written.
    """
    for k in range(chosen.size):
        cheapest(gang, alone, shared, speed, lots_of(o, chosen[k]), take[k])


def rounds_needed(work: float, speed: float, seconds: float) -> float:
    """Return the number of rounds that a job needs, a whole float.

    Parameters
    ----------
    work
        Units of work.
    speed
        Units of work a second.
    seconds
        Seconds of work in a round.
    """
    rounds = work / (speed * seconds) - SLACK
    return max(1.0, float(math.ceil(rounds))) if math.isfinite(rounds) else rounds


ROUNDS = 16  # of `best_finish`, that are as much work as an event
ROUNDING = 1e-14  # relative, of a sum of two terms a round: some ulps
MOST_ROUNDS = 20_000_000  # rounds x resources whose sales are kept
LONGEST = 20_000  # rounds that a plan may look ahead: longer jobs make no plan


@dataclass(frozen=True, eq=False)
class Request:
    """A job that has arrived; ``work`` in units, ``age`` in seconds at the beginning of the first round that it may use.

    ``alone``, ``shared`` f64[H]: units of work a second on one resource, and on several; ``scale``, ``span``: its utility;
    ``restart`` seconds of each round are set aside.
    """

    gang: int
    work: float
    age: float
    alone: Floats
    shared: Floats
    scale: float
    span: float
    restart: Seconds = 0.0

    def worth(self, age: float) -> float:
        """Return the utility of a completion.

        Parameters
        ----------
        age
            Seconds from the arrival to the completion.
        """
        # as `utility` has it, without a call of compiled code
        return self.scale * max(0.0, 1.0 - age / self.span) if self.span > 0.0 else self.scale / age

    @property
    def least(self) -> int:
        """The fewest devices of one resource that the gang may take: one if it may be on several."""
        return 1 if self.gang > 1 and np.count_nonzero(self.shared) > 1 else self.gang

    @cached_property
    def speeds(self) -> list[float]:
        """The rates that it can have, the largest first."""
        return sorted({x for x in self.alone.tolist() + self.shared.tolist() if x > 0}, reverse=True)


@dataclass(frozen=True, eq=False)
class Plan:
    """A schedule of a job: k ``rounds`` by number, increasing; ``take`` i64[k, H] devices; ``age`` in seconds at its end."""

    rounds: Ints
    take: Ints
    speed: float
    age: float
    utility: float
    payoff: float


class Reservations:
    """The H resources in rounds 0, 1, 2, ...: ``sold`` i64[rounds looked at, H], at the prices of a `PriceFunction`.

    ``length`` is the seconds of a round. ``jumps`` is what raising the constants has added to the dual value; 0 if they
    were right from the beginning.
    """

    def __init__(self, capacity: Ints, length: float) -> None:
        self.capacity, self.length = capacity, length
        self.sold: Ints = np.zeros((64, capacity.size), dtype=np.int64)
        self.used = 0  # devices were sold in rounds before this one only
        self.jumps = 0.0
        self.price_of: PriceFunction | None = None
        self._gang = 0  # the widest so far
        self._resource, self._machines = np.arange(capacity.size), np.ones(capacity.size, dtype=np.int64)

    @property
    def prices(self) -> Floats:
        """The prices of the rounds up to the last one of which devices were sold, f64[used, H]."""
        return np.zeros((0, self.capacity.size)) if self.price_of is None else self.price_of(self.sold[: self.used])

    def raise_to(self, low: float, high: float, gang: int) -> None:
        """Raise the constants so that they suit a job; prices never fall.

        Parameters
        ----------
        low
            Price of a device of which nothing is sold; counts only the first time.
        high
            The most that the schedules of the job are worth for a device.
        gang
            Devices that the job needs.
        """
        if self.price_of is not None and high <= self.price_of.high and gang <= self._gang:
            return  # as for an earlier job
        self._gang = max(self._gang, gang)
        widest = np.minimum(self.capacity, gang)
        if self.price_of is None:
            self.price_of = PriceFunction(min(low, high / math.e), high, self.capacity, widest)
            return
        old = self.price_of
        if high > old.high or (widest > old.widest).any():
            new = replace(old, high=max(old.high, high), widest=np.maximum(old.widest, widest))
            rise = new(self.sold[: self.used]) - old(self.sold[: self.used])
            self.jumps += math.fsum((rise * self.capacity).ravel().tolist())
            self.price_of = new

    def best(self, request: Request, first: int) -> Plan | None:
        """Return the plan of largest payoff if that is positive, else None; nothing is sold.

        Parameters
        ----------
        request
            The job.
        first
            Number of the first round that it may use.
        """
        tail = max(0, self.used - first)
        seconds = self.length - request.restart
        needed = {x: rounds_needed(request.work, x, seconds) for x in request.speeds}
        counts = {x: int(k) for x, k in needed.items() if k <= LONGEST}
        if not counts:
            return None
        rounds = min(LONGEST, tail + max(counts.values()))
        offers = self._offers(first, tail, rounds)
        gang, alone, shared = request.gang, request.alone, request.shared
        take = np.zeros(self.capacity.size, dtype=np.int64)
        find, find_devices = entry(best_finish), entry(round_devices)
        most, speed, left, prices = 0.0, 0.0, 0.0, offers.cost[:0]
        for x, k in counts.items():
            rest, end = request.restart + request.work / x - (k - 1) * seconds, min(rounds, tail + k)
            terms = np.array([request.age, self.length, rest, request.scale, request.span])
            payoff, last = find(offers, gang, alone, shared, x, k, terms, most, np.empty(k), take, end)
            worked(best_finish, end // ROUNDS)
            if payoff > most:
                most, speed, left, prices = payoff, x, rest, offers.cost[: last + 1].copy()
        if not prices.size:
            return None
        count = counts[speed]
        chosen = np.arange(count) if count == prices.size else np.sort(np.argsort(prices, kind="stable")[:count])
        devices = np.zeros((count, self.capacity.size), dtype=np.int64)
        find_devices(offers, gang, alone, shared, speed, chosen, devices)
        age = request.age + self.length * float(chosen[-1]) + left
        worth = request.worth(age)
        return Plan(first + chosen, devices, speed, age, worth, worth - math.fsum(prices[chosen].tolist()))

    def make_room(self, rounds: int) -> None:
        """Enlarge ``sold`` if it has fewer rows.

        Parameters
        ----------
        rounds
            Rounds that plans may use, from round 0 on.

        Raises
        ------
        InputError
            There are too many.
        """
        have, count = self.sold.shape
        if rounds > have:
            if rounds * count > MOST_ROUNDS:
                legal = f"longer rounds: at most {MOST_ROUNDS // count} of them up to the end of the last plan"
                raise InputError(f"{rounds} rounds are too many to plan", field="hadar: round", legal=legal)
            more = np.zeros((max(rounds, 2 * have), count), dtype=np.int64)
            more[:have] = self.sold
            self.sold = more

    def _offers(self, first: int, tail: int, rounds: int) -> Offers:
        assert self.price_of is not None
        count, price_of = self.capacity.size, self.price_of
        self.make_room(first + rounds)
        rows = min(tail + 1, rounds)
        return Offers(
            sold=self.sold[first : first + rows],
            room=self.capacity,  # prices alone keep what is sold within the capacity
            scale=price_of.scale,
            range=np.array([price_of.low, price_of.high, price_of.log_range]),
            resource=self._resource,
            machines=self._machines,
            price=np.empty((rows, count)),
            by_price=np.empty((rows, count), dtype=np.int64),
            known=np.zeros(rows, dtype=np.int64),
            cost=np.empty(rounds),
        )

    def alone(self, request: Request) -> tuple[float, int]:
        """Return the greatest utility of any plan of a job and the rounds of its fastest plan: those in an empty cluster.

        Parameters
        ----------
        request
            The job.
        """
        x, seconds = request.speeds[0], self.length - request.restart
        count = int(rounds_needed(request.work, x, seconds))
        age = request.age + self.length * (count - 1) + request.restart + request.work / x - (count - 1) * seconds
        return request.worth(age), count

    def sell(self, plan: Plan) -> None:
        """Sell the devices of a plan.

        Parameters
        ----------
        plan
            The plan that a job buys.
        """
        self.sold[plan.rounds] += plan.take
        self.used = max(self.used, int(plan.rounds[-1]) + 1)
