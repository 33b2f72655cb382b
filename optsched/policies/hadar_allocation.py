"""FIND_ALLOC: the best GPUs for one job at given prices, by throughput thresholds, compiled.

**Problem.** W devices out of the free ones on machines h, each of one pool (GPU type) p(h). A gang on one machine of
pool p runs at ``together[p]``; on several machines at the smallest ``spread[p]`` of the pools that it uses (all tasks
synchronise). ``rate`` 0: it may not run there. A device of machine h costs ``price[h]`` a round. With x the rate:

    seconds = left / x (+ ``restart``),  rounds = ceil(seconds / length),  f = rounds * length after now
    payoff = U(age + f) - charged * (sum of prices) - comm [more than one machine]

``charged`` = ``rounds`` (the whole remaining schedule, the same allocation until done) or 1 (this round alone). U is
non-increasing. With ``whole`` = False rounds are not rounded up. Found: the largest payoff; the caller asks for > 0.

**Exact.** A set's value depends on it only through x, the sum of its prices, and whether it is one machine or several; it
grows in x and falls in the sum. *One machine*: all W devices have one rate and one price, so the cheapest machine of every
pool is enough. *Several machines*: let th be the smallest spread rate in an optimal set. Among the devices with
spread >= th the W cheapest that are not all of one machine cost no more and run no slower, so trying each rate as th
suffices. They are the W cheapest, unless these lie on one machine; then its last device gives way to the cheapest
elsewhere (of two sets that differ in more, the one that differs in one device is cheaper). Measured rates may be larger
spread out than consolidated; as the two cases are kept apart this does no harm.

**Complexity** O(P Q) for P pools and Q lots, each of one price and sorted by it: the pools themselves, or the machines.
**Reference** FIND_ALLOC of Sultana et al., Hadar, IPDPS 2024 (arXiv 2503.10918); the thresholds and the proof are our own.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit
from optsched.problem.arrays import Floats, Ints

NONE = -1.0  # no rate: there is no such allocation
SLACK = 1e-9  # rounds: what rounding alone adds to a whole number of rounds is no further round

# Terms of a job, f64[7]: what the value of an allocation depends on besides the allocation
LEFT, AGE, SCALE, SPAN, RESTART, COMM, LENGTH = range(7)
# What is charged
THIS_ROUND, ALL_ROUNDS = 0, 1


@njit(**KERNEL)
def utility(scale: float, span: float, age: float) -> float:
    """U at ``age`` seconds after the arrival: scale / age, or with a ``span`` > 0 scale * max(0, 1 - age / span)."""
    return scale * max(0.0, 1.0 - age / span) if span > 0.0 else scale / age


@njit(**KERNEL)
def device_values(
    gang: Ints, together: Floats, spread: Floats, terms: Floats, all_rounds: bool, least: Floats, greatest: Floats
) -> None:
    """The least positive and the greatest value of a device among m jobs, written to f64[P] for every pool; inf, 0: none.

    A gang is worth its utility if it runs at its best rate, f64[m, P], on the pool to its end, in whole rounds: in equal
    parts that of its devices and, with ``all_rounds``, of their rounds. ``terms`` f64[m, 7]. O(m P).
    """
    least[:], greatest[:] = np.inf, 0.0
    for j in range(gang.size):
        length, scale, span = terms[j, LENGTH], terms[j, SCALE], terms[j, SPAN]
        for p in range(least.size):
            rate = max(together[j, p], spread[j, p])
            if rate <= 0.0:
                continue
            rounds = max(1.0, np.ceil((terms[j, LEFT] / rate + terms[j, RESTART]) / length - SLACK))
            x = terms[j, AGE] + rounds * length
            worth = scale * (max(0.0, 1.0 - x / span) if span > 0.0 else 1.0 / x)
            worth = worth / gang[j] / (rounds if all_rounds else 1.0)
            if worth > 0.0:
                least[p], greatest[p] = min(least[p], worth), max(greatest[p], worth)


@njit(**NESTED)
def payoff_of(
    terms: Floats, rate: float, cost: float, spread: bool, restarts: bool, charged: int, whole: bool
) -> float:
    """What an allocation of this rate and price sum is worth; ``terms`` as listed in this module."""
    seconds = terms[LEFT] / rate
    if restarts:
        seconds += terms[RESTART]
    rounds = seconds / terms[LENGTH]
    if whole:
        rounds = max(1.0, np.ceil(rounds - SLACK))
    worth = utility(terms[SCALE], terms[SPAN], terms[AGE] + rounds * terms[LENGTH])
    worth -= cost * rounds if charged == ALL_ROUNDS else cost
    return worth - terms[COMM] if spread else worth


@njit(**NESTED)
def find_allocation(
    by_machine: bool,
    gang: int,
    together: Floats,
    spread: Floats,
    terms: Floats,
    pool: Ints,
    price: Floats,
    by_price: Ints,
    free: Ints,
    largest: Ints,
    machines: Ints,
    charged: int,
    whole: bool,
    take: Ints,
    trial: Ints,
) -> tuple[float, float, bool]:
    """(payoff, rate, on several machines) of the best allocation; rates ``together``, ``spread`` f64[P] of P pools.

    What has one price is a *lot*: a machine (``by_machine``), lot q in ``pool[q]``; or all of a pool, lot q in pool q.
    ``price`` f64[Q], ``by_price`` i64[Q] lots from the cheapest; ``free`` devices, ``largest`` free devices of one machine,
    ``machines`` with any free device (not asked ``by_machine``), i64[Q]. Writes the devices of every lot to ``take`` i64[Q];
    ``trial`` i64[Q] is scratch. Rate `NONE`: there is none.
    """
    lots, pools = price.size, together.size
    best, best_rate, several = -np.inf, NONE, False
    for p in range(pools):
        if together[p] <= 0.0:
            continue
        for i in range(lots):
            q = by_price[i]
            if (pool[q] if by_machine else q) == p and largest[q] >= gang:
                value = payoff_of(terms, together[p], gang * price[q], np.bool_(False), np.bool_(True), charged, whole)
                if best_rate == NONE or value > best or (value == best and together[p] > best_rate):
                    best, best_rate = value, together[p]
                    take[:] = 0
                    take[q] = gang
                break
    if gang == 1:
        return best, best_rate, several
    for t in range(pools):
        if spread[t] <= 0.0 or (not by_machine and free[t] == 0):
            continue
        need, used, last = gang, 0, -1
        trial[:] = 0
        for i in range(lots):
            q = by_price[i]
            if need == 0:
                break
            if spread[pool[q] if by_machine else q] >= spread[t] and free[q] > 0:
                trial[q] = min(need, free[q])
                need -= trial[q]
                used += 1
                last = q
        if need > 0:
            continue
        if used == 1 and (by_machine or machines[last] < 2):
            # All on one machine: its last device gives way to the cheapest one elsewhere.
            other = -1
            for i in range(lots):
                q = by_price[i]
                if q != last and spread[pool[q] if by_machine else q] >= spread[t] and free[q] > 0:
                    other = q
                    break
            if other < 0:
                continue
            trial[last] -= 1
            trial[other] += 1
        rate, cost = np.inf, 0.0
        for q in range(lots):
            if trial[q] > 0:
                rate = min(rate, spread[pool[q] if by_machine else q])
                cost += trial[q] * price[q]
        value = payoff_of(terms, rate, cost, np.bool_(True), np.bool_(True), charged, whole)
        if best_rate == NONE or value > best or (value == best and rate > best_rate):
            best, best_rate, several = value, rate, True
            for q in range(lots):
                take[q] = trial[q]
    return best, best_rate, several
