"""Weights in layers: a weighted sum is at least a sum of unweighted sums over nested sets of jobs.

For levels 0 = theta_0 < theta_1 < ... let S_l be the jobs with w_j >= theta_l, and w'_j <= w_j the largest level not above
w_j. Then ``sum w_j x_j = sum_l (theta_l - theta_{l-1}) sum_{j in S_l} x_j + sum (w_j - w'_j) x_j`` for any x >= 0, so
bounds on the unweighted sums of the sets S_l add up. With a level at every weight the last sum is empty.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from optsched.problem.arrays import Floats

MAX_LEVELS = 4  # a run of the fast machine each


def levels_of(weight: Floats) -> list[float]:
    """Every positive weight while they are few, else the quartiles from below; ascending."""
    positive = weight[weight > 0]
    if positive.size == 0:
        return []
    if positive.min() == positive.max():
        return [float(positive[0])]
    distinct = np.unique(positive)
    if distinct.size > MAX_LEVELS:
        quartiles = np.quantile(positive, np.arange(MAX_LEVELS) / MAX_LEVELS, method="lower")
        distinct = np.unique(quartiles)
    return [float(level) for level in distinct]


def reduced(weight: Floats, levels: list[float]) -> Floats:
    """w'_j: the largest level <= w_j, 0 below them all; f64[n]."""
    if not levels:
        return np.zeros(weight.size)
    return np.array([0.0, *levels])[np.searchsorted(np.array(levels), weight, side="right")]


def steps(levels: list[float]) -> list[tuple[float, Fraction]]:
    """(level, its height above the one before) for every level."""
    return [(high, Fraction(high) - Fraction(low)) for low, high in pairwise([0.0, *levels])]
