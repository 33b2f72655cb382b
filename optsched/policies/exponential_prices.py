"""What a device costs when z of the c devices of its resource are sold, and the constants of the theorem about it.

For `hadar-commit`. The auctions of `hadar` price by the same rule, in `hadar_round`; its default has none.

A resource q is one GPU type (or one machine) in one round; c_q its devices, w_q the most that one job takes of it. The
price rises exponentially with what is sold, from Lo (``low``) to Up (``high``):

* **safe**: k_q(z) = Lo exp(a z / c~_q), c~_q = c_q - w_q + 1, a = ln(Up / Lo). When fewer than w_q devices are left
  the price is at least Up, more than any job pays, so that nothing needs to be filtered. No more than Up is ever charged:
  that too is more than any job pays, and keeps the numbers finite.
* **naive**: k_q(z) = Lo exp(a z / c_q). Infeasible choices must be filtered out, and the dual is then not feasible.

**Guarantee** (safe prices) Primal: max sum u_js x_js, one schedule s in S_j a job, w_q^js devices of q each; dual: min sum_j
mu_j + sum_q c_q k_q, mu_j >= u_js - sum_q k_q w_q^js. At the arrival of j the schedule of the largest payoff m_s = u_js -
sum_q k_q(z_q) w_q^js is taken if m_s > 0: mu_j = m_s, z_q += w_q^js. Let (A1) u_js <= Up w_q^js for every q that s uses,
(A2) Lo sum_q c_q <= theta OPT_LP, R_eff = max(1, max_{q, w <= w_q} (c_q / w)(e^{a min(1, w / c~_q)} - 1)).

1. Capacity is kept without being looked at: where fewer than w_q devices are left the price is Up, so by (A1) no schedule
   that uses q has a positive payoff.
2. (mu, k final) is dual feasible: prices only rise, and a resource at Up alone outweighs any utility (A1).
3. An acceptance adds u to P and at most R_eff u to D = sum_j mu_j + sum_q c_q k_q, which begins as D_0 = Lo sum_q c_q.
4. OPT_LP <= D <= D_0 + R_eff P, so ALG = P >= (1 - theta) OPT_LP / R_eff.

**Counterexample** to 2 ln(Up / Lo): two jobs that need all of one resource, worth 1 and then X; the first is let in and
the second lost, whatever the exponent. **Reference** Buchbinder and Naor 2009 for the method; Bao, Peng, Wu and Li 2018
(OASiS) for jobs on learning clusters; R_eff for jobs that are not small is this project's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Floats, Ints

ABOVE = 1 + 1e-9  # Up is so much more than any job pays: no sum of prices, however rounded, lets one in at Up
# 40 digits of the logarithm and the exponential are right; what is left is far below this.
_DIGITS = Context(prec=60, rounding=ROUND_CEILING, Emax=999_999_999, Emin=-999_999_999)
_ABOVE = _DIGITS.add(Decimal(1), Decimal("1e-30"))


@dataclass(frozen=True, eq=False)
class PriceFunction:
    """Prices between ``low`` = Lo and ``high`` = Up, 0 < Lo <= Up.

    ``capacity`` c, ``widest`` w: i64[Q], 1 <= w <= c. ``safe`` says which exponent. Values may have any leading axes
    (rounds) before the axis of the resources.
    """

    low: float
    high: float
    capacity: Ints
    widest: Ints
    safe: bool = True

    def __post_init__(self) -> None:
        check_legal(0 < self.low <= self.high < math.inf, "prices", (self.low, self.high), "0 < low <= high < inf")
        if bool(((self.widest < 1) | (self.widest > self.capacity)).any()):
            raise InputError("invalid", field="widest", legal="1 to the capacity of each resource")

    @property
    def log_range(self) -> float:
        """a = ln(Up / Lo), of the quotient: it does not depend on the unit in which utilities are counted."""
        quotient = self.high / self.low
        return math.log(quotient) if quotient < math.inf else math.log(self.high) - math.log(self.low)

    @property
    def scale(self) -> Ints:
        """What z is divided by, i64[Q]: c~ = c - w + 1 (safe) or c (naive)."""
        return self.capacity - self.widest + 1 if self.safe else self.capacity

    def __call__(self, sold: npt.NDArray[Any]) -> Floats:
        """Price of one device, f64[..., Q], when ``sold`` [..., Q] devices are sold."""
        share = np.minimum(1.0, sold / self.scale)
        # exactly Up where nothing may be sold any more: rounding must not open a gap below it
        return np.where(share < 1.0, np.minimum(self.high, self.low * np.exp(self.log_range * share)), self.high)

    @property
    def charged_ratio(self) -> float:
        """R_eff of prices that never exceed Up, what the theorem holds with; inf where it is more than a float holds.

        From z to z + w the price grows by e^{a min(1, w / c~)} at most; (c / w) times what that adds is largest at w = c~.
        """
        worst = np.minimum(self.widest, self.scale)  # (e^{bw} - 1) / w grows with w
        with np.errstate(over="ignore"):
            ratio = self.capacity / worst * np.expm1(self.log_range * worst / self.scale)
        return float(np.max(ratio, initial=1.0))

    def charged_ratio_above(self) -> Fraction:
        """A fraction that is not below `charged_ratio`'s true value: for checks in exact arithmetic."""
        kinds = {(int(c), int(w), int(s)) for c, w, s in zip(self.capacity, self.widest, self.scale, strict=True)}
        worst, margin = Decimal(1), Decimal("1e-40")
        with localcontext(_DIGITS):
            high, low = Decimal(self.high).ln(), Decimal(self.low).ln()
            a = (high + abs(high) * margin) - (low - abs(low) * margin)
            for c, w, s in kinds:
                grown = (a * min(w, s) / s).exp() * _ABOVE
                worst = max(worst, (grown - 1) * c / min(w, s))
        return Fraction(worst)
