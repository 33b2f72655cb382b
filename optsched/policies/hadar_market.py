"""What a device is worth to those who bid for it, compiled: the range in which Hadar's prices lie."""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import KERNEL
from optsched.policies.hadar_allocation import SLACK
from optsched.problem.arrays import Floats, Ints


@njit(**KERNEL)
def device_values(
    gang: Ints,
    together: Floats,
    spread: Floats,
    left: Floats,
    age: Floats,
    scale: Floats,
    span: Floats,
    restart: Floats,
    length: float,
    by_round: bool,
    least: Floats,
    greatest: Floats,
) -> None:
    """The least positive and the greatest value of a device among m bidders, written to f64[P] for every pool; inf, 0: none.

    A gang is worth its utility (`optsched.policies.hadar_allocation.utility`) if it runs at its best rate on the pool to
    its end, in whole rounds of ``length`` seconds: in equal parts that of its devices and, with ``by_round``, of their
    rounds. The bidders' arrays are those of `optsched.policies.hadar_auction.Bidders`. O(m P).
    """
    least[:], greatest[:] = np.inf, 0.0
    for j in range(gang.size):
        for p in range(least.size):
            rate = max(together[j, p], spread[j, p])
            if rate <= 0.0:
                continue
            rounds = max(1.0, np.ceil((left[j] / rate + restart[j]) / length - SLACK))
            x = age[j] + rounds * length
            worth = scale[j] * (max(0.0, 1.0 - x / span[j]) if span[j] > 0.0 else 1.0 / x)
            worth = worth / gang[j] / (rounds if by_round else 1.0)
            if worth > 0.0:
                least[p], greatest[p] = min(least[p], worth), max(greatest[p], worth)
