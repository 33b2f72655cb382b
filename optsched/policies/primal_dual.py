"""Online primal-dual packing: take the schedule of largest payoff at the present prices, if it is positive.

**Problem** (P) max sum u_js x_js over x in {0, 1}, sum_js w_q^js x_js <= c_q for every resource q, sum_s x_js <= 1 for
every job; jobs come one by one, S_j is known at arrival, and a choice is final. Its LP dual: min sum_j mu_j + sum_q c_q k_q,
mu_j >= u_js - sum_q k_q w_q^js.

**Method** At the arrival of j every s in S_j is valued at the prices of what is sold so far, m_s = u_js - sum_q k_q(z_q)
w_q^js. The best, if m_s > 0, is taken: mu_j = m_s, z_q += w_q^js. Prices: `optsched.policies.exponential_prices`.

**Guarantee** (safe prices) Let (A1) u_js <= Up w_q^js for every q that s uses, (A2) Lo sum_q c_q <= theta OPT_LP.

1. Capacity is kept without being looked at: where fewer than w_q devices are left the price is Up, so by (A1) no schedule
   that uses q has a positive payoff.
2. (mu, k final) is dual feasible: prices only rise, and a resource at Up alone outweighs any utility (A1).
3. An acceptance adds u to P and at most R_eff u to D = sum_j mu_j + sum_q c_q k_q, which begins as D_0 = Lo sum_q c_q.
4. OPT_LP <= D <= D_0 + R_eff P, so ALG = P >= (1 - theta) OPT_LP / R_eff.

Naive prices need the filter (what does not fit is not a choice); their dual is then not feasible and nothing is proved.
**Tight family** whole-node jobs show that nothing like 2 ln(Up / Lo) holds for jobs as large as a resource:
`optsched.guarantees.families.whole_node_family`. **Complexity** O(Q) for the prices and O(entries of S_j) an arrival.
**Reference** Buchbinder and Naor 2009 for the method; Bao, Peng, Wu and Li 2018 (OASiS) for jobs on learning clusters;
R_eff for jobs that are not small is this project's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from optsched.online.program_proof import ProgramProof, Row, prove
from optsched.policies.exponential_prices import PriceFunction
from optsched.problem.arrays import Floats, Ints


class PricedSchedule(Protocol):
    """A way to run a job; `optsched.models.hadar_packing.JobSchedule` is one."""

    @property
    def utility(self) -> float:
        """u_js >= 0."""

    @property
    def demand(self) -> tuple[tuple[int, int], ...]:
        """(q, devices w_q^js >= 1) of every resource that it uses."""


class PrimalDual:
    """The algorithm on one stream of jobs: `offer` them in the order of their arrival.

    ``sold`` i64[Q], ``payoff`` mu_j of the jobs offered so far, ``value`` = P.
    """

    def __init__(self, prices: PriceFunction) -> None:
        self.price_of = prices
        self.sold: Ints = np.zeros(prices.capacity.size, dtype=np.int64)
        self.payoff: list[float] = []
        self.value = 0.0
        self._offered: list[tuple[Sequence[PricedSchedule], int | None]] = []

    @property
    def prices(self) -> Floats:
        """k_q now, f64[Q]."""
        return self.price_of(self.sold)

    @property
    def initial(self) -> float:
        """D_0 = Lo sum_q c_q."""
        return self.price_of.low * float(self.price_of.capacity.sum())

    @property
    def dual_value(self) -> float:
        """D = sum_j mu_j + sum_q c_q k_q."""
        return float(np.dot(self.price_of.capacity, self.prices)) + sum(self.payoff)

    def offer(self, schedules: Sequence[PricedSchedule]) -> int | None:
        """The schedule taken, as its position; None: the job is rejected. Of equal payoffs the first wins."""
        k, best, mu = self.prices, None, 0.0
        for s, schedule in enumerate(schedules):
            if not (self.price_of.safe or self._fits(schedule)):
                continue
            payoff = schedule.utility - sum(float(k[q]) * w for q, w in schedule.demand)
            if payoff > mu:
                best, mu = s, payoff
        self.payoff.append(mu)
        if best is not None:
            self.value += schedules[best].utility
            for q, w in schedules[best].demand:
                self.sold[q] += w
        self._offered.append((schedules, best))
        return best

    def proof(self) -> ProgramProof:
        """What this run proves, in fractions: OPT_LP <= `upper`, and `packing_ratio` is upper / ALG.

        The prices of now, whichever they are, with mu_j = max(0, max_s u_js - sum_q k_q w_q^js) are the covering.
        """
        price = [Fraction(k) for k in self.prices.tolist()]
        payoff, rows, taken = [], list[Row](), list[Fraction]()
        for j, (schedules, chosen) in enumerate(self._offered):
            payoff.append(Fraction(0))
            for s, schedule in enumerate(schedules):
                held = {q: Fraction(w) for q, w in schedule.demand}
                worth = Fraction(schedule.utility)
                payoff[j] = max(payoff[j], worth - sum(w * price[q] for q, w in held.items()))
                rows.append(({**held, len(price) + j: Fraction(1)}, worth))
                taken.append(Fraction(s == chosen))
        cost = [*map(Fraction, self.price_of.capacity.tolist()), *(Fraction(1) for _ in payoff)]
        return prove(cost, rows, [*price, *payoff], taken)

    def _fits(self, schedule: PricedSchedule) -> bool:
        return all(self.sold[q] + w <= self.price_of.capacity[q] for q, w in schedule.demand)
