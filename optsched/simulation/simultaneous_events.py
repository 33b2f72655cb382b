"""What one instant is: times that differ by the rounding of a few sums are the same moment.

0.1 + 0.2 and 0.3 mean one moment and are two floats. Were they two events, a policy would be asked between them, and
could stop a job, or charge a restart, for an interval that is not there. So the instant that begins at t holds every event
up to t (1 + 2**-47): some forty units in the last place of a clock that counts from the first arrival. Each event happens at
its own time; who decides is asked once, after the last of them. In the same way keys that grow or fall with work are
compared on `KEY_BITS` significant bits. Both scale with the unit of time, and neither depends on jobs to come.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit

INSTANT = 2.0**-47  # relative
KEY_BITS = 32  # 53 less those that sums of times may have lost: equal up to 1e-10, relative
_SPLIT = 2.0 ** (53 - KEY_BITS) + 1.0
_HUGE = 2.0**990  # beyond it splitting a float overflows


def last_of_instant(t: float) -> float:
    """The last moment, in seconds >= 0, of the instant that begins at ``t``."""
    return t + t * INSTANT


end_of_instant = njit(forceinline=True)(last_of_instant)  # the same, for compiled loops


@njit(forceinline=True)
def next_tick(t: float, first: float, period: float) -> float:
    """The earliest of first, first + period, ... whose instant is not over before ``t`` >= first."""
    k = np.rint((t - first) / period)
    tick = first + k * period
    return tick if end_of_instant(tick) >= t else first + (k + 1.0) * period


@njit(forceinline=True)
def shortened(key: float) -> float:
    """``key`` rounded to `KEY_BITS` significant bits (Veltkamp's splitting): one number for keys that rounding tells apart.

    A tie that straddles the middle of two such numbers, one in some 10**5, stays broken.
    """
    if not abs(key) < _HUGE:
        return key
    c = _SPLIT * key
    return c - (c - key)


def shortened_keys(keys: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """`shortened` of every one of f64[n]."""
    small = np.abs(keys) < _HUGE
    c = _SPLIT * np.where(small, keys, 0.0)
    return np.where(small, c - (c - np.where(small, keys, 0.0)), keys)
