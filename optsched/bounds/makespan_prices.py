"""Prices of GPU types and of jobs' own time bound the makespan: the dual of the fluid problem, from a moment on.

**Problem**: jobs with modes (`optsched.bounds.modes`): a speed on each GPU type, copies, any number of GPUs, or partners on
shared GPUs; preemption; C_max.
**Bound**: for a moment t0 at which some job cannot be done yet, prices q_t >= 0 of a second of a GPU of type t and
z_j >= 0 of a second of job j's own time (class ``forking``: z = 0),

    t0 + sum_j left_j u_j / (sum_t G_t q_t + sum_j z_j),   u_j = min_o a_o (z_j + n_o q_t(o)),

mode o of j taking a_o seconds a unit of work for n_o GPUs of type t(o). ``left_j`` is the work that is left at t0
whatever was done before: work_j for r_j >= t0, else ``work_j - (t0 - r_j) s_j`` where that is positive, s_j the fastest
rate that the class allows.
**Proof**: let L = C_max - t0 > 0 and y_jo the seconds, in parts, that j spends in its mode o after t0. They do its
work: left_j <= sum_o y_jo / a_o (copies add up in both). ``sum n_o y_jo <= G_t L`` over all modes of type t, and one
mode at a time: ``sum_o y_jo <= L``. Hence sum_j left_j u_j <= sum_jo u_j y_jo / a_o <= sum_jo y_jo (z_j + n_o q_t(o))
<= L (sum_j z_j + sum_t G_t q_t).
**Relations**: all q equal and z = 0 is `volume`, one z alone is `alone`. For up to 100 jobs released together it is
the optimum of Gavel's makespan LP, up to the rounding of prices; mixed gangs gain nothing in it (fluid limit).
**Complexity**: few LPs with (K + 100) rows a mode for K kinds of jobs; O(n) modes each to set up and to verify.
**Reference**: D. Narayanan et al., OSDI 2020 (the primal problem); the bound for all classes is derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.certificate import Proof, ratio_text
from optsched.bounds.exact_dot import exact_sum
from optsched.bounds.modes import Modes
from optsched.bounds.priced_machine import Priced, TypePrices, rough_costs, total_price, unit_cost
from optsched.bounds.relaxation import Theorem, theorem
from optsched.bounds.sum_costs import MAKESPAN
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance

OWN_PRICES = 100  # jobs that may get a price of their own
FINENESS = 40  # bits of the largest price
ROUNDS = 4  # of (moment, prices)


@dataclass(frozen=True)
class Dual:
    """t0, q, and for some jobs (positions) z_j > 0."""

    moment: float
    prices: TypePrices
    own: dict[int, int]

    def data(self, instance: Instance, modes: Modes) -> dict[str, Any]:
        """As a certificate states it."""
        return {
            "moment": ratio_text(Fraction(self.moment)),
            "prices": dict(zip(modes.types, self.prices, strict=True)),
            "own_prices": {instance.ids[j]: price for j, price in self.own.items()},
        }


def build(relaxed: Priced, objective: str) -> Proof:
    """The best moment and prices found; data: them, charges, and the prices of single jobs' time."""
    found = [(_value(modes, dual), modes, dual, more) for modes, more in relaxed.ways() for dual in _candidates(modes)]
    value, modes, dual, more = max(found, key=lambda each: each[0])
    return value, {**dual.data(relaxed.instance, modes), **more}


def _candidates(modes: Modes) -> list[Dual]:
    if not modes.work.size:
        return [Dual(0.0, (1,) * len(modes.types), {})]
    # Prices for a moment, then the release date from which on work costs most at these prices, and so on; beside it
    # the release of the job that ends last if none waits, and the last release of all.
    pace = np.array([float(seconds) for seconds in modes.fewest_seconds])[modes.kind]
    critical = float(modes.release[np.argmax(modes.release + modes.work * pace)])
    found = {moment: _dual_at(modes, moment, pace) for moment in {critical, float(modes.release.max())}}
    moment = float(modes.release.min())
    for _ in range(ROUNDS):
        if moment in found:
            break
        found[moment] = dual = _dual_at(modes, moment, pace)
        moment = _best_release(modes, dual.prices)
    return list(found.values())


def _dual_at(modes: Modes, moment: float, pace: Floats) -> Dual:
    from optsched.bounds.fluid_prices import fluid_prices  # scipy.optimize takes a while to import

    left = np.maximum(modes.work - np.maximum(moment - modes.release, 0.0) / pace, 0.0)
    longest = np.argsort(-left * pace, kind="stable")[: 0 if modes.adds else OWN_PRICES]
    longest = longest[left[longest] > 0]
    rest = left.copy()
    rest[longest] = 0.0
    q, z = fluid_prices(modes, modes.work_by_kind(rest), modes.kind[longest], left[longest])
    largest = max(float(q.max(initial=0.0)), float(z.max(initial=0.0)))
    scale = float(1 << FINENESS) / largest
    own = {int(j): int(price * scale) for j, price in zip(longest, z, strict=True) if int(price * scale) > 0}
    prices = tuple(round(float(price) * scale) for price in q)
    return Dual(moment, prices, own)


def _best_release(modes: Modes, prices: TypePrices) -> float:
    order = np.argsort(modes.release, kind="stable")
    cost = rough_costs(modes, prices)[order] / max(total_price(modes, prices), 1)
    release = modes.release[order]
    return float(release[np.argmax(release + np.cumsum(cost[::-1])[::-1])])


def _value(modes: Modes, dual: Dual) -> Fraction:
    # Sums of works by kind; one by one only jobs released before the moment, and those with a price of their own.
    moment, alone = Fraction(dual.moment), modes.fewest_seconds
    came, single = modes.release >= dual.moment, np.zeros(modes.work.size, dtype=bool)
    single[list(dual.own)] = True
    whole = came & ~single
    unit = [unit_cost(modes, kind, dual.prices) for kind in range(len(modes.by_kind))]
    worth = sum((unit[k] * exact_sum(modes.work[whole & (modes.kind == k)]) for k in range(len(unit))), Fraction(0))
    some = bool(whole.any())
    for j in np.flatnonzero(~whole).tolist():
        kind, left = int(modes.kind[j]), Fraction(float(modes.work[j]))
        if not came[j]:
            left -= (moment - Fraction(float(modes.release[j]))) / alone[kind]
        if left > 0:
            worth += left * unit_cost(modes, kind, dual.prices, dual.own.get(j, 0))
            some = True
    return moment + worth / (total_price(modes, dual.prices) + sum(dual.own.values())) if some else Fraction(0)


STATEMENT = "a moment plus the work left, GPUs and own time at prices"
theorem(Theorem("makespan", (MAKESPAN,), STATEMENT, build, modes=True))
