"""The optimum of Hadar's packing program over schedules that are listed."""

from __future__ import annotations

from loaded_optimum import loaded_optimum

from optsched.models import hadar_primal
from optsched.models.hadar_rounds import Packing


def packing_value(packing: Packing, *, integer: bool = False) -> float:
    """Of the LP, or with ``integer`` of the best choice of one schedule a job at most; 0 where there is none."""
    return loaded_optimum(hadar_primal.build(packing, integer=integer)) if packing.flat else 0.0
