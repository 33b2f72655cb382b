"""Confidence intervals of means over independent runs (seeds), within the range of the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
FEWEST = 3  # values that an interval is made of
LONGEST = 100.0  # ends stay finite: at most e^100 times the mean
Floats = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean of ``n`` values and its interval; ``low`` and ``high`` are None if it has none.

    ``equal``: several values are all the same. They do not show how far others may lie, so there is no interval.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    equal: bool


def estimate(values: Sequence[float] | Floats, least: float | None = None, most: float = math.inf) -> Estimate:
    """Return the mean of independent values and its 95 % interval on a log scale.

    For mean m, the interval is m exp(-+ t s / (m sqrt n)), limited to [least, most].

    Parameters
    ----------
    values
        At least one finite number, f64[n].
    least
        Lower limit of all such values, e.g. 1 for a ratio to a lower bound, 0 for a time. Default: 0, unless a value is
        negative: then the interval is the symmetric one.
    most
        Upper limit of all such values.

    Returns
    -------
    Estimate
        Without an interval for fewer than three values (for two the quantile is 12.7, and the ends differ by orders of
        magnitude), and for equal ones.

    Notes
    -----
    s is the standard deviation of the n values, t the quantile of Student's t with n - 1 degrees of freedom: by the delta
    method s / (m sqrt n) is the standard error of log m. Ratios, times and shares are bounded below and have a long tail
    above. Symmetric intervals m -+ t s / sqrt n go below zero, and miss the true mean on the other side. A bootstrap stays
    within the values, but for few seeds it is much too short. The table has the share of 2,000 samples whose interval
    contained the true mean, for 1 + an exponential variable and for a log-normal one with sigma = .5 (cutting at ``least``
    never excludes the mean):

    ==============  ====  ====  ====  ====
    seeds              3     5    10    20
    ==============  ====  ====  ====  ====
    this interval   .90   .89   .92   .93   1 + exponential
    bootstrap, BCa  .65   .81   .89   .93
    this interval   .94   .93   .94   .94   log-normal
    bootstrap, BCa  .65   .80   .89   .91
    ==============  ====  ====  ====  ====

    Complexity: O(n).
    """
    x = np.asarray(values, dtype=np.float64)
    mean, equal = float(x.mean()), bool(x.size > 1 and (x == x[0]).all())
    if x.size < FEWEST or equal:
        return Estimate(mean, None, None, x.size, equal)
    half = half_width(x)
    if x.min() < 0:
        low, high = mean - half, mean + half
    else:
        spread = min(half / mean, LONGEST)
        low, high = mean * math.exp(-spread), mean * math.exp(spread)
        least = 0.0 if least is None else least
    floor = -math.inf if least is None else float(least)
    return Estimate(mean, min(max(low, floor), mean), max(min(high, most), mean), x.size, equal)


def half_width(values: Floats) -> float:
    """Return half the width of the symmetric 95 % interval of the mean: t s / sqrt n, in O(n).

    Parameters
    ----------
    values
        At least two values, f64[n].
    """
    from scipy.special import stdtrit  # imported where it is used: it takes longer than most tables and pictures

    quantile = float(stdtrit(values.size - 1, (1 + CONFIDENCE) / 2))
    return quantile * float(values.std(ddof=1)) / math.sqrt(values.size)
