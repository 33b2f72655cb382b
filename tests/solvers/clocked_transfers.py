"""A few transfers as logs have them, late clocks, ties and any unit; and the least sum of completions by exhaustion.

The exhaustion starts transfers at releases and completions, in every way there is, in fractions, and shares nothing with
`optsched.solvers.transfer_search`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from events import contended, least

from optsched.problem.contention import Contention
from optsched.problem.transfers import TransferProblem

CLOCKS = (0.0, 0.0, 1e6, 1.6e9, 1.7e9 + 0.25, 1e12)
UNITS = (1e-3, 0.025, 1.0, 1.0, 60.0, 1e3, 1e6)
BYTES = (1.0, 1.0, 1e6, 1e9)  # of a unit of size: seconds do not change


def clocked_transfers(seed: int) -> TransferProblem:
    """Two to four transfers, decided by the seed."""
    rng = np.random.default_rng([17, seed])
    n = int(rng.choice([2, 3, 3, 4], p=[0.4, 0.25, 0.25, 0.1]))
    clock, unit, byte = float(rng.choice(CLOCKS)), float(rng.choice(UNITS)), float(rng.choice(BYTES))
    whole, step = rng.random() < 0.5, max(unit, float(np.spacing(clock)))
    after = (rng.integers(0, 5, n) if whole else rng.random(n) * 5) * step * (rng.random(n) < 0.7)
    size = rng.integers(1, 9, n) if whole else rng.random(n) * 8 + 0.05
    if rng.random() < 0.5:  # short ones that come late, while a long one is on its way, move beside it
        size, after[0] = size * np.where(np.arange(n) > 0, rng.choice([1 / 16, 1 / 4, 1.0]), 4.0), 0.0
    if rng.random() < 0.15:
        size = size * 10.0 ** rng.integers(-3, 4, n)
    b = unit / byte
    contention = Contention(b, b * float(rng.choice([0.0, 0.25, 0.2745, 1.0, 3.0])))
    links = [(0,), (1,), (0, 1)]
    where = tuple(links[int(k)] for k in rng.integers(0, 3, n)) if rng.random() < 0.4 else ()
    return TransferProblem(clock + after, size * byte, contention, where)


def least_sum_of_completions(problem: TransferProblem) -> Fraction:
    """Over all starts at events; exponential, for four transfers at most."""
    release, size = (list(map(Fraction, each.tolist())) for each in (problem.release, problem.size))
    b, eta = Fraction(problem.contention.seconds_per_byte), Fraction(problem.contention.penalty)
    return least(release, size, lambda j, _: [problem.links[j]], contended(b, eta), fastest=[b] * problem.n)
