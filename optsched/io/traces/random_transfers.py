"""`random_transfers`: problems on which communication rules are compared with the exact optimum.

The law: sizes log-uniform on [0.01, 10] units; each release is 0 with probability 0.3, else uniform on [0, 0.7 W] with
W = b sum M_j, the seconds of all transfers one after the other. Own design of this project.
"""

from __future__ import annotations

import numpy as np

from optsched.errors import check_legal
from optsched.problem.arrays import is_whole
from optsched.problem.contention import Contention
from optsched.problem.transfers import TransferProblem

SMALLEST, LARGEST = 0.01, 10.0  # units of bytes
AT_ZERO, SPAN = 0.3, 0.7


def random_transfers(
    n: int,
    seed: int,
    eta_ratio: float = 0.2745,
    *,
    seconds_per_byte: float = 1.0,
    unit: float = 1.0,
    links: int = 1,
) -> TransferProblem:
    """n >= 1 transfers with penalty eta = ``eta_ratio`` b; the same arguments give the same problem.

    ``unit``: bytes of a size of 1. ``links`` > 1: each transfer uses a uniform random nonempty set of them; the law of
    sizes and releases stays as it is. Raises `InputError` for n, links or seed that are invalid.
    """
    for name, value, least in (("n", n, 1), ("links", links, 1), ("seed", seed, 0)):
        check_legal(is_whole(value) and value >= least, name, value, f"an integer >= {least}")
    rng = np.random.default_rng(int(seed))
    size = unit * np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), n))
    late = rng.random(n) >= AT_ZERO
    release = late * rng.uniform(0.0, SPAN * seconds_per_byte * float(size.sum()), n)
    chosen = tuple(_some(rng, links) for _ in range(n)) if links > 1 else ()
    return TransferProblem(release, size, Contention(seconds_per_byte, eta_ratio * seconds_per_byte), chosen)


def _some(rng: np.random.Generator, links: int) -> tuple[int, ...]:
    while True:
        used = np.flatnonzero(rng.random(links) < 0.5)
        if used.size:
            return tuple(used.tolist())
