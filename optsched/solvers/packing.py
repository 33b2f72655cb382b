"""`packing_bound`: the packing LP solved once, and its value proved from both sides in fractions; `packing_optimum`: the
best choice of schedules."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optsched.models import hadar_primal
from optsched.models.hadar_packing import Packing
from optsched.models.packing_certificate import (
    PriceCertificate,
    ShareCertificate,
    price_certificate,
    share_certificate,
)
from optsched.problem.arrays import Floats
from optsched.solvers.compile_model import solved


@dataclass(frozen=True)
class PackingBound:
    """The optimum of the packing LP lies in [``shares.value``, ``prices.value``], both proved and verified.

    ``prices.value`` bounds every integral choice too. ``value`` is the solver's float.
    """

    value: float
    shares: ShareCertificate
    prices: PriceCertificate

    @property
    def width(self) -> Fraction:
        """Relative width of the interval, 0 when the LP's optimum is known as a fraction."""
        upper = self.prices.value
        return (upper - self.shares.value) / upper if upper else Fraction(0)


def packing_bound(packing: Packing) -> PackingBound:
    """Solve the LP of `hadar_primal` and prove its value; the prices are the duals of its capacity rows."""
    if not packing.flat:
        return _proved(packing, 0.0, np.zeros(0), np.zeros(packing.resources))
    model = hadar_primal.build(packing)
    value = solved(model, "packing LP").value
    price, _ = hadar_primal.row_duals(model, packing)
    return _proved(packing, float(value or 0.0), hadar_primal.shares(model), price)


def packing_optimum(packing: Packing) -> tuple[float, tuple[int | None, ...]]:
    """The best total utility of one schedule a job at most, and that schedule of every job (None: left out).

    Exact (gap 0) up to rounding of the utilities' sum; the value is recomputed from the schedules chosen. For small
    packings: the problem is NP-hard.
    """
    if not packing.flat:
        return 0.0, (None,) * packing.jobs
    model = hadar_primal.build(packing, integer=True)
    solved(model, "packing program")
    chosen: list[int | None] = [None] * packing.jobs
    for (j, s), variable in model.x.items():
        if (variable.value or 0.0) > 0.5:
            chosen[j] = s
    return packing.value(chosen), tuple(chosen)


def _proved(packing: Packing, value: float, share: Floats, price: Floats) -> PackingBound:
    bound = PackingBound(value, share_certificate(packing, share.tolist()), price_certificate(packing, price.tolist()))
    bound.shares.verify(packing)
    bound.prices.verify(packing)
    return bound
