"""The best plan of a job over future rounds at given prices, exactly, compiled.

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

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import KERNEL, pop, push
from optsched.policies.hadar_allocation import SLACK, utility
from optsched.problem.arrays import Floats, Ints


@njit(**KERNEL)
def cheapest(
    gang: int, alone: Floats, shared: Floats, speed: float, price: Floats, order: Ints, room: Ints, take: Ints
) -> float:
    """The least price of W devices on which the gang runs at ``speed`` or faster, inf if there are none; ``take`` i64[H].

    ``order``: resources from the cheapest. One resource, or the cheapest of several (see `hadar_allocation`).
    """
    resources = price.size
    best, single = np.inf, -1
    for i in range(resources):
        h = order[i]
        if alone[h] >= speed and room[h] >= gang:
            best, single = gang * price[h], h
            break
    cost, need, used, last = 0.0, gang, 0, -1
    take[:] = 0
    if gang > 1:
        for i in range(resources):
            h = order[i]
            if shared[h] < speed or room[h] <= 0:
                continue
            if need == 0:
                if used > 1:
                    break
                take[last] -= 1
                take[h] = 1
                cost += price[h] - price[last]
                used = 2
                break
            here = min(need, room[h])
            take[h] = here
            cost += here * price[h]
            need -= here
            used += 1
            last = h
    if gang > 1 and need == 0 and used > 1 and cost < best:
        return cost
    take[:] = 0
    if single >= 0:
        take[single] = gang
    return best


@njit(**KERNEL)
def round_costs(
    gang: int,
    alone: Floats,
    shared: Floats,
    speed: float,
    prices: Floats,
    orders: Ints,
    room: Ints,
    take: Ints,
    cost: Floats,
) -> None:
    """The price of a round at ``speed``, f64[R], for R rounds with ``prices`` f64[R, H], ``room`` i64[R, H]."""
    for i in range(prices.shape[0]):
        cost[i] = cheapest(gang, alone, shared, speed, prices[i], orders[i], room[i], take)


@njit(**KERNEL)
def best_finish(
    cost: Floats, count: int, start: Floats, rest: float, scale: float, span: float, heap: Floats
) -> tuple[float, int]:
    """(payoff, position of the last round) of the best ``count`` rounds; ``start`` f64[R] ages at which rounds begin.

    ``rest``: seconds of the last round until the job ends, its restart included. -inf, -1: there are not so many rounds.
    ``heap`` f64[count] is room to work.
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


@njit(**KERNEL)
def rounds_needed(work: float, speed: float, seconds: float) -> float:
    """k rounds of ``seconds`` of work each."""
    return max(1.0, np.ceil(work / (speed * seconds) - SLACK))
