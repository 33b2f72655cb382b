"""Ties that rounding errors would break: equal keys whose floats differ in their last bits.

Where a policy orders jobs by values computed from times, the unit of the log must not decide: 1 s and 0.001 ks are the
same time, but values computed from them differ in the last bits. So keys are compared by their leading bits, and equal
keys go by index.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Floats

BITS = 40  # of 53; the others allow for some thousand roundings
TIE = 1e-9  # relative: results that differ by less are equal


def leading(values: Floats) -> Floats:
    """Round floats to `BITS` leading bits, in an array of the same shape; inf and nan stay. O(n).

    Parameters
    ----------
    values
        Floats of any shape.
    """
    mantissa, exponent = np.frexp(values)
    rounded: Any = np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS)
    return np.where(np.isfinite(values), rounded, values)


@njit
def leading_of(value: float) -> float:
    """Round one finite float as `leading` does, compiled.

    Parameters
    ----------
    value
        A finite float.
    """
    mantissa, exponent = math.frexp(value)
    return math.ldexp(np.rint(math.ldexp(mantissa, BITS)), exponent - BITS)
