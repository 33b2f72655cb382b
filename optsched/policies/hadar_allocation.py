"""FIND_ALLOC: the best GPUs for one job at given prices, by throughput thresholds, compiled.

**Problem.** W devices out of the free ones on machines h, each of one pool (GPU type) p(h). A gang on one machine of
pool p runs at ``together[p]``; on several machines at the smallest ``spread[p]`` of the pools that it uses (all tasks
synchronise). ``rate`` 0: it may not run there. A device of machine h costs ``price[h]`` a round. With x the rate:

    seconds = left / x (+ ``restart``),  rounds = ceil(seconds / length),  f = rounds * length after now
    payoff = U(age + f) - rounds * (sum of prices)

(the whole remaining schedule, the same allocation until done). U is non-increasing. With ``whole`` = False rounds are not
rounded up. Found: the largest payoff; the caller asks for > 0.

**Exact.** A set's value depends on it only through x and the sum of its prices; it grows in x and falls in the sum. *One
machine*: all W devices have one rate and one price, so the cheapest machine of every pool is enough. *Several machines*: let
th be the smallest spread rate in an optimal set. Among the devices with spread >= th the W cheapest that are not all of one
machine cost no more and run no slower, so trying each rate as th suffices. They are the W cheapest, unless these lie on one
machine; then its last device gives way to the cheapest elsewhere (of two sets that differ in more, the one that differs in
one device is cheaper). Measured rates may be larger spread out than consolidated; as the two cases are kept apart this does
no harm.

**Complexity** O(P^2) for P pools: all devices of a pool have one price.
**Reference** FIND_ALLOC of Sultana et al., Hadar, IPDPS 2024 (arXiv 2503.10918); the thresholds and the proof are our own.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import KERNEL, NESTED
from optsched.problem.arrays import Floats, Ints

NONE = -1.0  # no rate: there is no such allocation
SLACK = 1e-9  # rounds: what rounding alone adds to a whole number of rounds is no further round

# Terms of a job, f64[6]: what the value of an allocation depends on besides the allocation
LEFT, AGE, SCALE, SPAN, RESTART, LENGTH = range(6)
TERMS = 6


@njit(**KERNEL)
def utility(scale: float, span: float, age: float) -> float:
    """U at ``age`` seconds after the arrival: scale / age, or with a ``span`` > 0 scale * max(0, 1 - age / span)."""
    if span > 0.0:
        return scale * max(0.0, 1.0 - age / span)
    return scale / age


@njit(**NESTED)
def payoff_of(terms: Floats, rate: float, cost: float, restarts: bool, whole: bool) -> float:
    """What an allocation of this rate and price sum is worth; ``terms`` as listed in this module."""
    seconds = terms[LEFT] / rate
    if restarts:
        seconds += terms[RESTART]
    rounds = seconds / terms[LENGTH]
    if whole:
        rounds = max(1.0, np.ceil(rounds - SLACK))
    return utility(terms[SCALE], terms[SPAN], terms[AGE] + rounds * terms[LENGTH]) - cost * rounds


@njit(**NESTED)
def find_allocation(
    gang: int,
    together: Floats,
    spread: Floats,
    terms: Floats,
    price: Floats,
    by_price: Ints,
    free: Ints,
    largest: Ints,
    machines: Ints,
    whole: bool,
    take: Ints,
    trial: Ints,
) -> tuple[float, float, bool]:
    """(payoff, rate, on several machines) of the best allocation; rates ``together``, ``spread`` f64[P] of P pools.

    ``price`` f64[P], ``by_price`` i64[P] pools from the cheapest; ``free`` devices, ``largest`` free devices of one machine,
    ``machines`` with any free device, i64[P]. Writes the devices of every pool to ``take`` i64[P]; ``trial`` i64[P] is
    scratch. Rate `NONE`: there is none.
    """
    pools = price.size
    best, best_rate, several = -np.inf, NONE, False
    for p in range(pools):
        if together[p] > 0.0 and largest[p] >= gang:
            value = payoff_of(terms, together[p], gang * price[p], np.bool_(True), whole)
            if best_rate == NONE or value > best or (value == best and together[p] > best_rate):
                best, best_rate = value, together[p]
                take[:] = 0
                take[p] = gang
    if gang == 1:
        return best, best_rate, several
    for t in range(pools):
        if spread[t] <= 0.0 or free[t] == 0:
            continue
        need, used, last = gang, 0, -1
        trial[:] = 0
        for i in range(pools):
            q = by_price[i]
            if need == 0:
                break
            if spread[q] >= spread[t] and free[q] > 0:
                trial[q] = min(need, free[q])
                need -= trial[q]
                used += 1
                last = q
        if need > 0:
            continue
        if used == 1 and machines[last] < 2:
            # All on one machine: its last device gives way to the cheapest one elsewhere.
            other = -1
            for i in range(pools):
                q = by_price[i]
                if q != last and spread[q] >= spread[t] and free[q] > 0:
                    other = q
                    break
            if other < 0:
                continue
            trial[last] -= 1
            trial[other] += 1
        rate, cost = np.inf, 0.0
        for q in range(pools):
            if trial[q] > 0:
                rate = min(rate, spread[q])
                cost += trial[q] * price[q]
        value = payoff_of(terms, rate, cost, np.bool_(True), whole)
        if best_rate == NONE or value > best or (value == best and rate > best_rate):
            best, best_rate, several = value, rate, True
            for q in range(pools):
                take[q] = trial[q]
    return best, best_rate, several
