"""The GPUs of future rounds that `hadar` has sold, their prices, and the best plan of a job at these prices.

**S_j**, the plans of job j: choose a speed x among the rates that the job can have, k = ceil(work / (x * (length -
restart))) different rounds from ``first`` on, and in each of them W devices on which the gang runs at x or faster. The plan
ends in its last round, after the seconds that are left over when the k - 1 others are full; it is worth U of that age.
Rounds need not be neighbours: the job is preempted between them. The restart is set aside in every round, so that a plan
holds in any case.

**Exact argmax of U - prices**: for every x the k rounds are independent but for the last one. So for every possible last
round f the k cheapest of the rounds up to f are best, each with its cheapest W devices of rate >= x; U falls with f, so
that it does not matter whether f itself is among them. One pass over the rounds with a heap of the k cheapest finds them.
Rounds from ``tail`` on are unsold and all alike, so no f beyond tail + k - 1 is better.

Devices: H resources with ``room`` devices each. On one resource the gang runs at ``alone[h]``, on several at the slowest
``shared[h]``. **Complexity** O(X R (H + log k)) for X speeds and R rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit
from optsched.compiled.heap import pop, push
from optsched.errors import InputError
from optsched.policies.exponential_prices import PriceFunction
from optsched.policies.hadar_allocation import SLACK, Lots, cheapest_apart, utility
from optsched.problem.arrays import Floats, Ints
from optsched.registry import Seconds


@njit(**NESTED)
def lots_of(rounds: Lots, i: int) -> Lots:
    """Return the resources of one round.

    Parameters
    ----------
    rounds
        The offers of R rounds: ``free``, ``price`` and ``by_price`` are [R, H].
    i
        Number of the round, from 0.
    """
    return Lots(rounds.pool, rounds.free[i], rounds.free[i], rounds.machines, rounds.price[i], rounds.by_price[i])


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
    if gang > 1:
        cost = cheapest_apart(gang, speed, shared, lots, take)
        if cost < best:
            return cost
    take[:] = 0
    if single >= 0:
        take[single] = gang
    return best


@njit(**KERNEL)
def round_costs(gang: int, alone: Floats, shared: Floats, speed: float, rounds: Lots, take: Ints, cost: Floats) -> None:
    """Compute the least price of a gang in every round.

    Parameters
    ----------
    gang, alone, shared, speed
        As in `cheapest`.
    rounds
        The offers of R rounds.
    take
        Scratch, i64[H].
    cost
        Prices, f64[R], written.
    """
    for i in range(cost.size):
        cost[i] = cheapest(gang, alone, shared, speed, lots_of(rounds, i), take)


@njit(**KERNEL)
def round_devices(
    gang: int, alone: Floats, shared: Floats, speed: float, rounds: Lots, chosen: Ints, take: Ints
) -> None:
    """Compute the devices that are cheapest in k rounds.

    Parameters
    ----------
    gang, alone, shared, speed
        As in `cheapest`.
    rounds
        The offers of R rounds.
    chosen
        Numbers of the rounds, i64[k].
    take
        Devices of every resource, i64[k, H], written.
    """
    for k in range(chosen.size):
        cheapest(gang, alone, shared, speed, lots_of(rounds, chosen[k]), take[k])


@njit(**KERNEL)
def best_finish(
    cost: Floats, count: int, start: Floats, rest: float, scale: float, span: float, heap: Floats
) -> tuple[float, int]:
    """Return the payoff of the best ``count`` rounds and the position of the last of them.

    Parameters
    ----------
    cost
        Price of every round, f64[R]; infinite where the gang does not fit.
    count
        Rounds that the job needs.
    start
        Ages in seconds at which the rounds begin, f64[R].
    rest
        Seconds of the last round until the job ends, its restart included.
    scale, span
        Terms of the utility (`optsched.policies.hadar_allocation.utility`).
    heap
        Scratch, f64[count].

    Returns
    -------
    tuple of float, int
        -inf and -1 if there are fewer than ``count`` rounds.
    """
    best, last, size, total = -np.inf, -1, 0, 0.0
    for i in range(cost.size):
        if cost[i] == np.inf:
            continue
        if size < count:
            total += cost[i]
        elif -cost[i] > heap[0]:  # the dearest of the cheapest so far is on top, as minus its cost
            total += cost[i] + heap[0]
            pop(heap, 0, size)
            size -= 1
        else:
            continue  # not later for nothing
        size = push(heap, 0, size, -cost[i])
        if size == count:
            value = utility(scale, span, start[i] + rest) - total
            if value > best:
                best, last = value, i
    return best, last


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
    return max(1.0, float(np.ceil(work / (speed * seconds) - SLACK)))


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
        return float(utility(self.scale, self.span, age))

    @property
    def least(self) -> int:
        """The fewest devices of one resource that the gang may take: one if it may be on several."""
        return 1 if self.gang > 1 and np.count_nonzero(self.shared) > 1 else self.gang

    @property
    def speeds(self) -> list[float]:
        """The rates that it can have, the largest first."""
        return sorted({float(x) for x in (*self.alone, *self.shared) if x > 0}, reverse=True)


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
        widest = np.minimum(self.capacity, gang)
        if self.price_of is None:
            self.price_of = PriceFunction(min(low, high / math.e), high, self.capacity, widest)
            return
        old = self.price_of
        new = replace(old, high=max(old.high, high), widest=np.maximum(old.widest, widest))
        if new.high > old.high or (new.widest > old.widest).any():
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
        offers = self._offers(first, rounds)
        start = request.age + self.length * np.arange(rounds)
        cost, take = np.empty(rounds), np.zeros(self.capacity.size, dtype=np.int64)
        gang, alone, shared = request.gang, request.alone, request.shared
        most, speed, left, prices = 0.0, 0.0, 0.0, cost[:0]
        for x, k in counts.items():
            end = min(rounds, tail + k)
            round_costs(gang, alone, shared, x, offers, take, cost[:end])
            rest = request.restart + request.work / x - (k - 1) * seconds
            payoff, last = best_finish(cost[:end], k, start[:end], rest, request.scale, request.span, np.empty(k))
            if payoff > most:
                most, speed, left, prices = payoff, x, rest, cost[: last + 1].copy()
        if not prices.size:
            return None
        chosen = np.sort(np.argsort(prices, kind="stable")[: counts[speed]])
        devices = np.zeros((chosen.size, self.capacity.size), dtype=np.int64)
        round_devices(gang, alone, shared, speed, offers, chosen, devices)
        age = request.age + self.length * float(chosen[-1]) + left
        worth = request.worth(age)
        return Plan(first + chosen, devices, speed, age, worth, worth - math.fsum(prices[chosen].tolist()))

    def _offers(self, first: int, rounds: int) -> Lots:
        assert self.price_of is not None
        if first + rounds > self.sold.shape[0]:
            if (first + rounds) * self.capacity.size > MOST_ROUNDS:
                legal = (
                    f"longer rounds: at most {MOST_ROUNDS // self.capacity.size} of them up to the end of the last plan"
                )
                raise InputError(f"{first + rounds} rounds are too many to plan", field="hadar: round", legal=legal)
            more = np.zeros((max(first + rounds, 2 * self.sold.shape[0]), self.capacity.size), dtype=np.int64)
            more[: self.sold.shape[0]] = self.sold
            self.sold = more
        sold, resources = self.sold[first : first + rounds], np.arange(self.capacity.size)
        prices = self.price_of(sold)
        orders = np.argsort(prices, axis=1, kind="stable").astype(np.int64)
        room = np.tile(self.capacity, (rounds, 1))  # prices alone keep what is sold within the capacity
        return Lots(resources, room, room, np.ones_like(resources), prices, orders)

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
