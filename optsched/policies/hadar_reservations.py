"""What `hadar-commit` has sold of the GPUs of future rounds, at which prices, and the best plan of a job at them.

**The best plan of a job over future rounds at given prices**, exactly, compiled.

**S_j**: choose a speed x among the rates that the job can have, k = ceil(work / (x * (length - restart))) different rounds
from ``first`` on, and in each of them W devices on which the gang runs at x or faster. The plan ends in its last round
after the seconds that are left over when the k - 1 others are full; it is worth U of that age. (Rounds need not be
neighbours: the job is preempted between them. The restart is set aside in every round, so that a plan holds in any case.)

**Exact argmax of U - prices**: for every x the k rounds are independent but for the last one, so for every possible last
round f the k cheapest of the rounds up to f are best, each with its cheapest W devices of rate >= x; U falls with f, so
that it does not matter whether f itself is among them. One pass over the rounds with a heap of the k cheapest.
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
    """The resources in round i, of the offers of R rounds: ``free``, ``price`` and ``by_price`` [R, H]."""
    return Lots(rounds.pool, rounds.free[i], rounds.free[i], rounds.machines, rounds.price[i], rounds.by_price[i])


@njit(**KERNEL)
def cheapest(gang: int, alone: Floats, shared: Floats, speed: float, lots: Lots, take: Ints) -> float:
    """The least price of W devices on which the gang runs at ``speed`` or faster, inf if there are none; ``take`` i64[H].

    One resource, or the cheapest of several (see `hadar_allocation`).
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
    """The price of a round at ``speed``, f64[R], for R rounds (`lots_of`); ``take`` is scratch."""
    for i in range(cost.size):
        cost[i] = cheapest(gang, alone, shared, speed, lots_of(rounds, i), take)


@njit(**KERNEL)
def round_devices(
    gang: int, alone: Floats, shared: Floats, speed: float, rounds: Lots, chosen: Ints, take: Ints
) -> None:
    """The devices that are cheapest in the ``chosen`` rounds, i64[k, H]."""
    for k in range(chosen.size):
        cheapest(gang, alone, shared, speed, lots_of(rounds, chosen[k]), take[k])


@njit(**KERNEL)
def best_finish(
    cost: Floats, count: int, start: Floats, rest: float, scale: float, span: float, heap: Floats
) -> tuple[float, int]:
    """(payoff, position of the last round) of the best ``count`` rounds; ``start`` f64[R] ages at which rounds begin.

    ``rest``: seconds of the last round until the job ends, its restart included. -inf, -1: there are not so many rounds.
    ``heap`` f64[count] is scratch.
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
    """k rounds of ``seconds`` of work each."""
    return max(1.0, float(np.ceil(work / (speed * seconds) - SLACK)))


MOST_ROUNDS = 20_000_000  # rounds x resources whose sales are kept
LONGEST = 20_000  # rounds that a plan may look ahead: longer jobs make no plan


@dataclass(frozen=True, eq=False)
class Request:
    """A job that has arrived: ``work`` units, ``age`` seconds at the beginning of the first round that it may use.

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
        """U of a completion at ``age``."""
        return float(utility(self.scale, self.span, age))

    @property
    def least(self) -> int:
        """The fewest devices of one resource that a gang may take: one where it may be on several."""
        return 1 if self.gang > 1 and np.count_nonzero(self.shared) > 1 else self.gang

    @property
    def speeds(self) -> list[float]:
        """The rates that it can have, the largest first."""
        return sorted({float(x) for x in (*self.alone, *self.shared) if x > 0}, reverse=True)


@dataclass(frozen=True, eq=False)
class Plan:
    """Rounds (absolute, increasing) and the devices of each resource in them, i64[k, H]; seconds after the arrival."""

    rounds: Ints
    take: Ints
    speed: float
    age: float
    utility: float
    payoff: float


class Reservations:
    """H resources in rounds 0, 1, 2, ...: ``sold`` i64[rounds looked at, H]. Prices as in `PriceFunction`.

    ``length`` seconds a round. ``jumps``: what raising the constants has added to the
    dual value; 0 when they were right from the beginning.
    """

    def __init__(self, capacity: Ints, length: float, *, safe: bool) -> None:
        self.capacity, self.length, self.safe = capacity, length, safe
        self.sold: Ints = np.zeros((64, capacity.size), dtype=np.int64)
        self.used = 0  # rounds before this one are all that anything was sold of
        self.jumps = 0.0
        self.price_of: PriceFunction | None = None

    @property
    def prices(self) -> Floats:
        """k of the rounds up to the last one sold, f64[used, H]."""
        return np.zeros((0, self.capacity.size)) if self.price_of is None else self.price_of(self.sold[: self.used])

    def raise_to(self, low: float, high: float, gang: int) -> None:
        """Constants that suit a job of this gang whose schedules are worth up to ``high`` a device.

        ``low`` counts only the first time. Prices never fall.
        """
        widest = np.minimum(self.capacity, gang)
        if self.price_of is None:
            self.price_of = PriceFunction(min(low, high / math.e), high, self.capacity, widest, self.safe)
            return
        old = self.price_of
        new = replace(old, high=max(old.high, high), widest=np.maximum(old.widest, widest))
        if new.high > old.high or (new.widest > old.widest).any():
            rise = new(self.sold[: self.used]) - old(self.sold[: self.used])
            self.jumps += math.fsum((rise * self.capacity).ravel().tolist())
            self.price_of = new

    def best(self, request: Request, first: int) -> Plan | None:
        """The plan of largest payoff from round ``first`` on if that is positive, else None. Nothing is sold yet."""
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
        most, speed, left, kept = 0.0, 0.0, 0.0, cost[:0]
        for x, k in counts.items():
            here = slice(0, min(rounds, tail + k))
            round_costs(gang, alone, shared, x, offers, take, cost[here])
            rest = request.restart + request.work / x - (k - 1) * seconds
            payoff, last = best_finish(cost[here], k, start[here], rest, request.scale, request.span, np.empty(k))
            if payoff > most:
                most, speed, left, kept = payoff, x, rest, cost[: last + 1].copy()
        if not kept.size:
            return None
        chosen = np.sort(np.argsort(kept, kind="stable")[: counts[speed]])
        devices = np.zeros((chosen.size, self.capacity.size), dtype=np.int64)
        round_devices(gang, alone, shared, speed, offers, chosen, devices)
        age = request.age + self.length * float(chosen[-1]) + left
        worth = request.worth(age)
        return Plan(first + chosen, devices, speed, age, worth, worth - math.fsum(kept[chosen].tolist()))

    def _offers(self, first: int, rounds: int) -> Lots:
        assert self.price_of is not None
        if first + rounds > self.sold.shape[0]:
            if (first + rounds) * self.capacity.size > MOST_ROUNDS:
                legal = (
                    f"longer rounds: at most {MOST_ROUNDS // self.capacity.size} of them up to the end of the last plan"
                )
                raise InputError(
                    f"{first + rounds} rounds are too many to plan", field="hadar-commit: round", legal=legal
                )
            more = np.zeros((max(first + rounds, 2 * self.sold.shape[0]), self.capacity.size), dtype=np.int64)
            more[: self.sold.shape[0]] = self.sold
            self.sold = more
        sold, resources = self.sold[first : first + rounds], np.arange(self.capacity.size)
        prices = self.price_of(sold)
        orders = np.argsort(prices, axis=1, kind="stable").astype(np.int64)
        room = np.tile(self.capacity, (rounds, 1)) if self.safe else self.capacity - sold
        return Lots(resources, room, room, np.ones_like(resources), prices, orders)

    def alone(self, request: Request) -> tuple[float, int]:
        """(greatest utility of any plan of a job, rounds of its fastest one): in an empty cluster, at top speed."""
        x, seconds = request.speeds[0], self.length - request.restart
        count = int(rounds_needed(request.work, x, seconds))
        age = request.age + self.length * (count - 1) + request.restart + request.work / x - (count - 1) * seconds
        return request.worth(age), count

    def sell(self, plan: Plan) -> None:
        """The plan is carried out: its devices are gone."""
        self.sold[plan.rounds] += plan.take
        self.used = max(self.used, int(plan.rounds[-1]) + 1)
