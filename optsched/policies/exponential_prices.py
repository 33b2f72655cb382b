"""The price of a GPU when z of the c GPUs of its resource are sold, and the theorem about such prices.

`exponential_price` has the formula, which both forms of the auction use: `hadar` for plans over future rounds
(`PriceFunction`), `auction-rounds` within one round.

A resource q is one GPU type in one round; c_q is its number of GPUs, w_q the most that one job takes of it. The price rises
exponentially with what is sold, from Lo (``low``) to Up (``high``):

    k_q(z) = Lo exp(a min(1, z / c~_q)),    c~_q = c_q - w_q + 1,    a = ln(Up / Lo)

When fewer than w_q GPUs are left, the price is Up, which is more than any job pays. So nothing needs to be filtered.

**Guarantee** Primal: max sum u_js x_js, one schedule s in S_j a job, w_q^js GPUs of q each; dual: min sum_j mu_j + sum_q c_q
k_q, mu_j >= u_js - sum_q k_q w_q^js. At the arrival of j the schedule of the largest payoff m_s = u_js - sum_q k_q(z_q)
w_q^js is taken if m_s > 0: mu_j = m_s, z_q += w_q^js. Let (A1) u_js <= Up w_q^js for every q that s uses, (A2) Lo sum_q c_q
<= theta OPT_LP, R_eff = max(1, max_{q, w <= w_q} (c_q / w)(e^{a min(1, w / c~_q)} - 1)).

1. Capacity is kept without being looked at: where fewer than w_q GPUs are left the price is Up, so by (A1) no schedule that
   uses q has a positive payoff.
2. (mu, k final) is dual feasible: prices only rise, and a resource at Up alone outweighs any utility (A1).
3. An acceptance adds u to P and at most R_eff u to D = sum_j mu_j + sum_q c_q k_q, which begins as D_0 = Lo sum_q c_q.
4. OPT_LP <= D <= D_0 + R_eff P, so ALG = P >= (1 - theta) OPT_LP / R_eff.

As gangs become small compared with capacities, R_eff tends to max(1, ln(Up / Lo)), the factor that is
attributed to the paper.

**Counterexample** to 2 ln(Up / Lo) for every gang: two jobs that need all of one resource, worth 1 and then X. The first is
accepted and the second is lost, whatever the exponent. An exponent z / c_q, without c~_q, has no guarantee at all: its
prices let jobs in that do not fit, and the dual solution is not feasible.

**Reference** Buchbinder and Naor 2009 for the method; Bao, Peng, Wu and Li 2018 (OASiS) for jobs on learning clusters;
R_eff for jobs that are not small is this project's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.compiled import KERNEL, NESTED, njit
from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Floats, Ints

ABOVE = 1 + 1e-9  # Up over the most that any job pays: no sum of prices, however rounded, lets a job in at Up
# 40 digits of the logarithm and the exponential are right; what is left is far below this.
_DIGITS = Context(prec=60, rounding=ROUND_CEILING, Emax=999_999_999, Emin=-999_999_999)
_ABOVE = _DIGITS.add(Decimal(1), Decimal("1e-30"))


@njit(**NESTED)
def exponential_price(low: float, log_range: float, sold: int, scale: float) -> float:
    """Return the price of a GPU, k(z) = Lo (Up / Lo)^min(1, z / c~).

    Parameters
    ----------
    low
        Price Lo when nothing is sold.
    log_range
        a = ln(Up / Lo).
    sold
        GPUs z that are sold.
    scale
        GPUs c~ that must be sold for the price to be Up.
    """
    return low * math.exp(log_range * min(1.0, sold / scale))


@njit(**NESTED)
def price_below(low: float, high: float, log_range: float, sold: int, scale: int) -> float:
    """Return the price of a GPU, at most ``high`` = Up.

    It is exactly Up where nothing may be sold any more: rounding must not open a gap below it.

    Parameters
    ----------
    low, high
        Prices Lo and Up.
    log_range
        a = ln(Up / Lo).
    sold
        GPUs z that are sold.
    scale
        GPUs c~ that must be sold for the price to be Up.
    """
    return min(high, exponential_price(low, log_range, sold, float(scale))) if sold < scale else high


@njit(**KERNEL)
def _prices(low: float, high: float, log_range: float, scale: Ints, sold: Ints, price: Floats) -> None:
    for i in range(sold.shape[0]):
        for q in range(sold.shape[1]):
            price[i, q] = price_below(low, high, log_range, sold[i, q], scale[q])


@dataclass(frozen=True, eq=False)
class PriceFunction:
    """The prices of Q resources between ``low`` = Lo and ``high`` = Up, 0 < Lo <= Up.

    ``capacity`` c and ``widest`` w are i64[Q], 1 <= w <= c.
    """

    low: float
    high: float
    capacity: Ints
    widest: Ints

    def __post_init__(self) -> None:
        check_legal(0 < self.low <= self.high < math.inf, "prices", (self.low, self.high), "0 < low <= high < inf")
        if bool(((self.widest < 1) | (self.widest > self.capacity)).any()):
            raise InputError("invalid", field="widest", legal="1 to the capacity of each resource")

    @property
    def log_range(self) -> float:
        """The exponent a = ln(Up / Lo), of the quotient: it does not depend on the unit in which utilities are counted."""
        quotient = self.high / self.low
        return math.log(quotient) if quotient < math.inf else math.log(self.high) - math.log(self.low)

    @property
    def scale(self) -> Ints:
        """GPUs that must be sold for the price to be Up, c~ = c - w + 1, i64[Q]."""
        return self.capacity - self.widest + 1

    def __call__(self, sold: npt.NDArray[Any]) -> Floats:
        """Return the price of one GPU of every resource, f64[..., Q].

        Parameters
        ----------
        sold
            GPUs that are sold, i64[..., Q]; rounds, for example, may be the axes before the last one.
        """
        table = np.ascontiguousarray(sold, dtype=np.int64).reshape(-1, self.capacity.size)
        price = np.empty(table.shape)
        _prices(float(self.low), float(self.high), self.log_range, self.scale, table, price)
        return price.reshape(np.shape(sold))

    @property
    def charged_ratio(self) -> float:
        """The factor R_eff of the theorem, for prices that never exceed Up; infinite if a float cannot hold it.

        From z to z + w the price grows by e^{a min(1, w / c~)} at most; (c / w) times what that adds is largest at w = c~.
        """
        worst = np.minimum(self.widest, self.scale)  # (e^{bw} - 1) / w grows with w
        with np.errstate(over="ignore"):
            ratio = self.capacity / worst * np.expm1(self.log_range * worst / self.scale)
        return float(np.max(ratio, initial=1.0))

    def charged_ratio_above(self) -> Fraction:
        """Return a fraction that is not below the true R_eff (`charged_ratio`), for checks in exact arithmetic."""
        kinds = {(int(c), int(w), int(s)) for c, w, s in zip(self.capacity, self.widest, self.scale, strict=True)}
        worst, margin = Decimal(1), Decimal("1e-40")
        with localcontext(_DIGITS):
            high, low = Decimal(self.high).ln(), Decimal(self.low).ln()
            a = (high + abs(high) * margin) - (low - abs(low) * margin)
            for c, w, s in kinds:
                grown = (a * min(w, s) / s).exp() * _ABOVE
                worst = max(worst, (grown - 1) * c / min(w, s))
        return Fraction(worst)
