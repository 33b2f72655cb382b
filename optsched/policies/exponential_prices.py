"""What a device costs when z of the c devices of its resource are sold, and the constants of the theorem about it.

Of `hadar-commit` and the primal-dual algorithm. The rounds of `hadar` price by the same rule, in `hadar_round`.

A resource q is one GPU type (or one machine) in one round; c_q its devices, w_q the most that one job takes of it. The
price rises exponentially with what is sold, from Lo (``low``) to Up (``high``):

* **safe**: k_q(z) = Lo exp(a z / c~_q), c~_q = c_q - w_q + 1, a = ln(Up / Lo). When fewer than w_q devices are left
  the price is at least Up, more than any job pays, so that nothing needs to be filtered. No more than Up is ever charged:
  that too is more than any job pays, and keeps the numbers finite.
* **naive**: k_q(z) = Lo exp(a z / c_q). Infeasible choices must be filtered out, and the dual is then not feasible.

Constants (the assumptions are (A1) no schedule is worth more than Up a device of any resource that it uses, and
(A2) Lo sum_q c_q <= theta OPT): R_eff = max(1, max_{q, w <= w_q} (c_q / w)(e^{a w / c~_q} - 1)), and then
ALG >= (1 - theta) OPT / R_eff. As no price exceeds Up, e^{a min(1, w / c~_q)} does as well: `PriceFunction.charged_ratio`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Floats, Ints

THETA = 0.25  # the share of the optimum that the prices of an empty cluster may add up to
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
    def effective_ratio(self) -> float:
        """R_eff as in the theorem; inf where it is more than a float holds (w_q near c_q)."""
        return self._ratio(self.widest)

    @property
    def charged_ratio(self) -> float:
        """R_eff of prices that never exceed Up; at most `effective_ratio`, and what the theorem holds with.

        From z to z + w the price grows by e^{a min(1, w / c~)} at most; (c / w) times what that adds is largest at w = c~.
        """
        return self._ratio(np.minimum(self.widest, self.scale))

    def _ratio(self, worst: Ints) -> float:
        # (e^{bw} - 1) / w grows with w: the widest demand is the worst.
        with np.errstate(over="ignore"):
            ratio = self.capacity / worst * np.expm1(self.log_range * worst / self.scale)
        return float(np.max(ratio, initial=1.0))

    def charged_ratio_above(self) -> Fraction:
        """A fraction that is not below `charged_ratio`'s true value: for checks in exact arithmetic."""
        worst = Decimal(1)
        kinds = {(int(c), int(w), int(s)) for c, w, s in zip(self.capacity, self.widest, self.scale, strict=True)}
        a = _DIGITS.subtract(_ln(self.high, up=True), _ln(self.low, up=False))
        for c, w, s in kinds:
            w = min(w, s)
            grown = _DIGITS.multiply(_DIGITS.exp(_DIGITS.divide(_DIGITS.multiply(a, Decimal(w)), Decimal(s))), _ABOVE)
            one = _DIGITS.divide(_DIGITS.multiply(_DIGITS.subtract(grown, Decimal(1)), Decimal(c)), Decimal(w))
            worst = max(worst, one)
        return Fraction(worst)


def _ln(value: float, *, up: bool) -> Decimal:
    found = _DIGITS.ln(Decimal(value))
    margin = _DIGITS.multiply(_DIGITS.abs(found), Decimal("1e-40"))
    return _DIGITS.add(found, margin) if up else _DIGITS.subtract(found, margin)


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
