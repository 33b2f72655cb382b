"""FIND_ALLOC: the best GPUs for one job at given prices, by throughput thresholds, compiled.

**Problem.** W devices out of the free ones on machines h, each of one pool (GPU type) p(h). A gang on one machine of
pool p runs at ``together[p]``; on several machines at the smallest ``spread[p]`` of the pools that it uses (all tasks
synchronise). ``rate`` 0: it may not run there. A device of machine h costs ``price[h]`` a round. With x the rate:

    seconds = left / x (+ ``restart``),  rounds = ceil(seconds / length),  f = rounds * length after now
    payoff = U(age + f) - rounds * (sum of prices)

The job pays for all rounds until it is done, as if it kept the allocation. U is non-increasing. With ``whole`` = False
rounds are not rounded up. The result is the largest payoff; the caller asks for one > 0.

**Exact.** A set's value depends on it only through x, the sum of its prices, and whether it is one machine or several; it
grows in x and falls in the sum. *One machine*: all W devices have one rate and one price, so the cheapest machine of every
pool is enough. *Several machines*: let th be the smallest spread rate in an optimal set. Among the devices with
spread >= th the W cheapest that are not all of one machine cost no more and run no slower, so trying each rate as th
suffices. They are the W cheapest, unless these lie on one machine; then its last device gives way to the cheapest
elsewhere (of two sets that differ in more, the one that differs in one device is cheaper). Measured rates may be larger
spread out than consolidated; as the two cases are kept apart this does no harm.

**Complexity** O(P Q) for P pools and Q lots, each of one price and sorted by it.
**Reference** FIND_ALLOC of Sultana et al., Hadar, IPDPS 2024 (arXiv 2503.10918); the thresholds and the proof are our own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit
from optsched.problem.arrays import Floats, Ints

NONE = -1.0  # no rate: there is no such allocation
SLACK = 1e-9  # rounds: what rounding alone adds to a whole number of rounds is no further round

# Terms of a job, f64[6]: what the value of an allocation depends on besides the allocation
LEFT, AGE, SCALE, SPAN, RESTART, LENGTH = range(6)


class Lots(NamedTuple):
    """The Q lots of devices, each with one price; i64[Q] but for ``price`` f64[Q].

    ``pool`` of each lot, ``free`` devices, ``largest`` number of free devices on one machine, ``machines`` with free
    devices; ``by_price``: the lots from the cheapest to the dearest.
    """

    pool: Ints
    free: Ints
    largest: Ints
    machines: Ints
    price: Floats
    by_price: Ints


@njit(**KERNEL)
def utility(scale: float, span: float, age: float) -> float:
    """Return U, the value of a completion: scale / age, or with a ``span`` > 0 scale * max(0, 1 - age / span).

    Parameters
    ----------
    scale
        Value for a second, or at age 0 if there is a span.
    span
        Age in seconds from which the job is worth nothing; 0: none.
    age
        Seconds from the arrival to the completion.
    """
    return scale * max(0.0, 1.0 - age / span) if span > 0.0 else scale / age


@njit(**NESTED)
def payoff_of(terms: Floats, rate: float, cost: float, restarts: bool, whole: bool) -> float:
    """Return utility less price of an allocation.

    Parameters
    ----------
    terms
        The terms of the job, f64[6], as listed in this module.
    rate
        Units of work a second.
    cost
        Sum of the prices of the devices for one round.
    restarts
        If true, the job pays its restart.
    whole
        If true, rounds are rounded up.
    """
    seconds = terms[LEFT] / rate
    if restarts:
        seconds += terms[RESTART]
    rounds = seconds / terms[LENGTH]
    if whole:
        rounds = max(1.0, np.ceil(rounds - SLACK))
    worth = utility(terms[SCALE], terms[SPAN], terms[AGE] + rounds * terms[LENGTH])
    return worth - cost * rounds


@njit(**KERNEL)
def cheapest_apart(gang: int, least: float, spread: Floats, lots: Lots, take: Ints) -> float:
    """Return the price of the cheapest devices on several machines for a gang; infinite if there are too few.

    Parameters
    ----------
    gang
        Devices that the job needs.
    least
        Least rate that is allowed, in units of work a second.
    spread
        Rate of the gang on several machines by pool, f64[P].
    lots
        Free devices and their prices.
    take
        Devices of every lot, i64[Q], written.
    """
    need, used, last, cost = gang, 0, -1, 0.0
    take[:] = 0
    for i in range(lots.by_price.size):
        q = lots.by_price[i]
        if spread[lots.pool[q]] < least or lots.free[q] <= 0:
            continue
        if need == 0:  # all on one machine: its last device gives way to the cheapest one elsewhere
            take[last] -= 1
            take[q] = 1
            return cost + (lots.price[q] - lots.price[last])
        count = min(need, lots.free[q])
        take[q] = count
        cost += count * lots.price[q]
        need -= count
        used += 1
        last = q
        if need == 0 and (used > 1 or lots.machines[q] > 1):
            return cost
    return np.inf


@njit(**NESTED)
def find_allocation(
    gang: int,
    together: Floats,
    spread: Floats,
    terms: Floats,
    lots: Lots,
    whole: bool,
    take: Ints,
    trial: Ints,
) -> tuple[float, float, bool]:
    """Return payoff and rate of the best allocation of a job, and if it is on several machines.

    Parameters
    ----------
    gang
        Devices that the job needs.
    together
        Rate of the gang on one machine by pool, f64[P]; 0: it may not run there.
    spread
        Rate of the gang on several machines by pool, f64[P].
    terms
        The terms of the job, f64[6], as listed in this module.
    lots
        Free devices and their prices.
    whole
        If true, rounds are rounded up.
    take
        Devices of every lot, i64[Q], written.
    trial
        Scratch, i64[Q].

    Returns
    -------
    tuple of float, float, bool
        The rate is `NONE` if there is no allocation.
    """
    best, best_rate, several = -np.inf, NONE, False
    for p in range(together.size):
        if together[p] <= 0.0:
            continue
        for i in range(lots.by_price.size):
            q = lots.by_price[i]
            if lots.pool[q] == p and lots.largest[q] >= gang:
                cost = gang * lots.price[q]
                value = payoff_of(terms, together[p], cost, np.bool_(True), whole)
                if best_rate == NONE or value > best or (value == best and together[p] > best_rate):
                    best, best_rate = value, together[p]
                    take[:] = 0
                    take[q] = gang
                break
    if gang == 1:
        return best, best_rate, several
    for t in range(spread.size):
        if spread[t] <= 0.0 or cheapest_apart(gang, spread[t], spread, lots, trial) == np.inf:
            continue
        rate, cost = np.inf, 0.0
        for q in range(trial.size):
            if trial[q] > 0:
                rate = min(rate, spread[lots.pool[q]])
                cost += trial[q] * lots.price[q]
        value = payoff_of(terms, rate, cost, np.bool_(True), whole)
        if best_rate == NONE or value > best or (value == best and rate > best_rate):
            best, best_rate, several = value, rate, True
            for q in range(trial.size):
                take[q] = trial[q]
    return best, best_rate, several
