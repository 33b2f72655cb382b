"""Clock of an instance: time counts from the first arrival, whatever moment a log counts from.

A log that counts seconds from 1970 leaves a float64 a resolution of 2.4e-7 s, and every tolerance that is
relative to its times is worth seconds. So everything that computes (engines, solvers, bounds, theorems)
sees `Instance.relative`, whose first job arrives at 0. Results are put back on the log's clock for people
(`optsched.problem.schedule.Schedule.on_clock`, `optsched.problem.objectives.Objective.clock_part`,
`optsched.bounds.certificate.Certificate.on_clock`). They do not depend on the epoch, except for digits that
the clock of the log cannot hold.
"""

from __future__ import annotations

import math

import numpy as np

from optsched.problem.arrays import Floats


def epoch_of(arrival: Floats, due: Floats) -> float:
    """Return the first arrival, in seconds, if the times less it are floats without rounding.

    Otherwise return the last multiple of G before it, where G is the least power of two that is no less than
    the time between the first and the last of them, on the same condition; otherwise 0. No digit of the times
    between them is lost then. The result is 0 where the times are as far apart as they are late, since there is
    nothing to gain. If all times are given in a unit smaller by a power of two, the result is larger by the
    same factor.

    Parameters
    ----------
    arrival
        Arrivals in seconds, f64[n].
    due
        Due dates in seconds, f64[n]; infinite ones do not count.

    Notes
    -----
    O(n).
    """
    if arrival.size == 0:
        return 0.0
    first = float(arrival.min())
    if first == 0:
        return 0.0
    times = np.concatenate([arrival, due[np.isfinite(due)]])
    if _exactly_less(times, first):
        return first
    grid = 2.0 ** math.ceil(math.log2(float(np.ptp(times))))  # two times at least, or `first` were exact
    coarse = math.floor(first / grid) * grid
    return coarse if _exactly_less(times, coarse) else 0.0


def _exactly_less(times: Floats, epoch: float) -> bool:
    """Return True if ``times - epoch`` is free of rounding everywhere.

    The error of a difference of floats is itself a float (Knuth's TwoSum).
    """
    difference = times - epoch
    back = difference - times
    error = (times - (difference - back)) + (-epoch - back)
    return bool(np.isfinite(difference).all() and (error == 0).all())
