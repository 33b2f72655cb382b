"""The density by which random alpha points draw, integrated in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ExponentialDensity:
    """f(a) = e^a / (e^delta - 1) on [0, delta], ``delta`` the ``largest`` a."""

    largest: float

    @property
    def scale(self) -> float:
        """1 / (e^delta - 1): f at 0."""
        return 1.0 / math.expm1(self.largest)

    def mass(self, low: float, high: float) -> float:
        """int f(a) da over [low, high]."""
        low, high = min(low, self.largest), min(high, self.largest)
        return self.scale * (math.exp(high) - math.exp(low)) if high > low else 0.0

    def moment(self, low: float, high: float) -> float:
        """int f(a) (1 + a) da over [low, high]; a e^a is an antiderivative."""
        low, high = min(low, self.largest), min(high, self.largest)
        return self.scale * (high * math.exp(high) - low * math.exp(low))
