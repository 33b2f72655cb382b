"""Random transfers for tests: the law of the suite of transfers, in other units and on several links."""

from __future__ import annotations

import numpy as np

from optsched.classes.task_sharing.evaluation.transfer_suite import AT_ZERO, LARGEST, SMALLEST, SPAN
from optsched.classes.task_sharing.problem.transfers import TransferProblem
from optsched.problem.contention import Contention


def random_transfers(
    n: int, seed: int, eta_ratio: float = 0.2745, *, seconds_per_byte: float = 1.0, unit: float = 1.0, links: int = 1
) -> TransferProblem:
    """``unit``: bytes of a size of 1. ``links`` > 1: each transfer uses a uniform random nonempty set of them."""
    rng = np.random.default_rng(seed)
    size = unit * np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), n))
    late = rng.random(n) >= AT_ZERO
    release = late * rng.uniform(0.0, SPAN * seconds_per_byte * float(size.sum()), n)

    def some() -> tuple[int, ...]:
        while not (used := np.flatnonzero(rng.random(links) < 0.5)).size:
            pass
        return tuple(used.tolist())

    chosen = tuple(some() for _ in range(n)) if links > 1 else ()
    return TransferProblem(release, size, Contention(seconds_per_byte, eta_ratio * seconds_per_byte), chosen)
