"""The sum of floats, rounded once: the same float as `math.fsum`, in compiled code.

**Algorithm** Shewchuk 1997: the sum is kept exactly as floats that do not overlap. **Complexity** O(n m) for n floats whose
exact sums need m floats: seldom more than three.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optsched.compiled import NESTED, njit


@njit(**NESTED)
def exact_sum(values: npt.NDArray[np.float64]) -> float:
    """Return the sum of finite floats, correctly rounded.

    Parameters
    ----------
    values
        The floats, f64[n]; overwritten.
    """
    count = 0  # of the partial sums, which are kept in ``values``: there are never more than floats so far
    for k in range(values.size):
        x, kept = values[k], 0
        for i in range(count):
            y = values[i]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                values[kept] = low
                kept += 1
            x = high
        values[kept] = x
        count = kept + 1
    return _rounded(values, count)


@njit(**NESTED)
def _rounded(partials: npt.NDArray[np.float64], count: int) -> float:
    # The sum of floats that do not overlap, the largest last.
    if count == 0:
        return 0.0
    n = count - 1
    high, low = partials[n], 0.0
    while n > 0 and low == 0.0:
        n -= 1
        x, y = high, partials[n]
        high = x + y
        low = y - (high - x)
    # Halfway between two floats: what is left decides.
    if n > 0 and ((low < 0.0 and partials[n - 1] < 0.0) or (low > 0.0 and partials[n - 1] > 0.0)):
        y = 2.0 * low
        x = high + y
        if y == x - high:
            high = x
    return float(high)
