"""Smith's ratio p_j / w_j, by which WSPT orders jobs with preemption and without."""

from __future__ import annotations

import numpy as np

from optsched.problem.arrays import Floats


def smith_ratio(length: Floats, weight: Floats) -> Floats:
    """``length`` / ``weight``, f64[n]; inf for jobs of weight 0, so that they come last."""
    ratio = np.full(length.size, np.inf)
    np.divide(length, weight, out=ratio, where=weight > 0)
    return ratio
