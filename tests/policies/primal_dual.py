"""The primal-dual algorithm of `optsched.policies.exponential_prices` on packings whose schedules are listed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optsched.errors import InputError, check_legal
from optsched.models.hadar_packing import JobSchedule, Packing
from optsched.online.program_proof import ProgramProof, Row, prove
from optsched.policies.exponential_prices import ABOVE, PriceFunction
from optsched.problem.arrays import Floats, Ints

THETA = 0.25  # the share of the optimum that the prices of an empty cluster may add up to


class PrimalDual:
    """The algorithm on one stream of jobs: `offer` them in the order of their arrival.

    ``sold`` i64[Q], ``payoff`` mu_j of the jobs offered so far, ``value`` = P.
    """

    def __init__(self, prices: PriceFunction) -> None:
        self.price_of = prices
        self.sold: Ints = np.zeros(prices.capacity.size, dtype=np.int64)
        self.payoff: list[float] = []
        self.value = 0.0
        self._offered: list[tuple[Sequence[JobSchedule], int | None]] = []

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

    def offer(self, schedules: Sequence[JobSchedule]) -> int | None:
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

    def _fits(self, schedule: JobSchedule) -> bool:
        return all(self.sold[q] + w <= self.price_of.capacity[q] for q, w in schedule.demand)


@dataclass(frozen=True)
class Constants:
    """What the setting of the theorem makes of a set of schedules: ``low`` = Lo, ``high`` = Up, ``widest`` w_q i64[Q]."""

    low: float
    high: float
    widest: Ints


def constants(capacity: Ints, utilities: Sequence[float], demands: Sequence[Sequence[tuple[int, int]]]) -> Constants:
    """Up = max u / (smallest demand), Lo = min(THETA u_min / sum_q c_q, Up / e), w_q the largest demand of q (1: none).

    ``demands``: ((q, devices), ...) of every schedule. With them (A1) holds, and (A2) with theta = `THETA` because OPT is
    at least the smallest positive utility u_min. `InputError` when no schedule is worth anything.
    """
    worth = [u for u in utilities if u > 0]
    if not worth:
        raise InputError("no schedule is worth anything: there are no prices", field="utility", legal="one > 0")
    widest = np.ones(capacity.size, dtype=np.int64)
    high = 0.0
    for u, demand in zip(utilities, demands, strict=True):
        if not demand:
            raise InputError("a schedule that takes nothing has no price", field="demand", legal="some devices")
        high = max(high, u / min(w for _, w in demand))
        for q, w in demand:
            widest[q] = max(widest[q], w)
    high *= ABOVE
    low = min(THETA * min(worth) / float(capacity.sum()), high / math.e)
    return Constants(low, high, widest)


def whole_node_family(worth: float, devices: int = 1) -> Packing:
    """Two jobs that need all of one resource, worth 1 and then ``worth``: prices that let the first in lose the second.

    With `constants`: ALG = 1 and
    OPT = ``worth`` whatever the exponent, while 2 ln(Up / Lo) = 2 ln(4 ``worth``) stays far behind from ``worth`` = 10 on. A
    ratio logarithmic in Up / Lo needs jobs that are small beside a resource; the safe prices' R_eff is at least ``worth``.
    """
    check_legal(1 <= worth < float("inf"), "worth", worth, "a finite number >= 1")
    check_legal(devices >= 1, "devices", devices, "an integer >= 1")
    whole = ((0, devices),)
    return Packing((devices,), ((JobSchedule(1.0, whole),), (JobSchedule(worth, whole),)))
