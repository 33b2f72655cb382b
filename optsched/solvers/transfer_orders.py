"""All orders of the 2n events, a linear program each: the optimum of very few transfers, with starts anywhere in time.

**Problem**: `optsched.problem.transfers`, minimise sum C_j. **Method**: `optsched.solvers.event_orders` over the (2n)!
/ 2^n orders of starts and ends (6, 90, 2,520, 113,400 for n = 2..5), any set of transfers active: e_j = b M_j seconds,
and in a set where k is the largest count on the links of j its rate is 1 / (k + (k - 1) eta / b).

**Guarantee**: exact, to the tolerance of the LP solver; with ``certify`` a bound proved in fractions. **Complexity**: about
0.15 ms an order. **Reference**: 4.1 (A) of the AdaDUAL sheet of this project.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

from optsched.errors import InputError
from optsched.problem.transfers import TransferProblem
from optsched.solvers.event_orders import EventOrders, LeastOrder

MOST = 5  # transfers; 7,484,400 orders for 6


def best_event_order(problem: TransferProblem, *, certify: bool = False) -> LeastOrder:
    """Solve the program of every order; ``certify``: also prove a bound in fractions, some milliseconds more an order.

    Raises `InputError` for no transfers and for more than `MOST`.
    """
    if not 1 <= problem.n <= MOST:
        raise InputError("not a number of transfers to enumerate", field="n", value=problem.n, legal=f"1 to {MOST}")
    epoch = problem.epoch
    found = transfer_orders(problem.relative).least(certify=certify)
    bound = None if found.bound is None else found.bound + problem.n * Fraction(epoch)
    return replace(found, value=found.value + problem.n * epoch, start=found.start + epoch, bound=bound)


def transfer_orders(problem: TransferProblem) -> EventOrders:
    """The orders of the problem's events; O(2^n n)."""
    b = Fraction(problem.contention.seconds_per_byte)
    eta = Fraction(problem.contention.penalty) / b
    rates = {}
    for active in range(1 << problem.n):
        inside = [j for j in range(problem.n) if active >> j & 1]
        carried = Counter(link for j in inside for link in problem.links[j])
        row = [Fraction(0)] * problem.n
        for j in inside:
            k = max(carried[link] for link in problem.links[j])
            row[j] = 1 / (k + (k - 1) * eta)
        rates[active] = row
    sizes = [b * Fraction(size) for size in problem.size.tolist()]
    return EventOrders(sizes, [Fraction(r) for r in problem.release.tolist()], rates)
