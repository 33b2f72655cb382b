"""Where the clock of an instance begins: time is counted from the first arrival, whatever a log counts from.

A log that counts seconds from 1970 leaves a float64 a resolution of 2.4e-7 s, and every tolerance that is relative to its
times is worth seconds. So whatever computes (engines, solvers, bounds, theorems) sees `Instance.relative`, whose
first job arrives at 0, and its results are put back on the log's clock for people (`optsched.schedule.Schedule.on_clock`,
`optsched.objectives.Objective.clock_part`, `optsched.bounds.certificate.Certificate.on_clock`). Results therefore do not
depend on the epoch, but for what the clock of the log itself cannot hold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def epoch_of(arrival: Floats, due: Floats) -> float:
    """The first arrival, in seconds, if every arrival f64[n] and finite due date f64[n] less it is a float without rounding.

    Else the whole second before it, on the same condition, else 0: times as far apart as they are late have nothing to gain.
    O(n).
    """
    if arrival.size == 0:
        return 0.0
    first = float(arrival.min())
    times = np.concatenate([arrival, due[np.isfinite(due)]])
    for epoch in (first, float(np.floor(first))):
        if _exactly_less(times, epoch):
            return epoch
    return 0.0


def _exactly_less(times: Floats, epoch: float) -> bool:
    """Is ``times - epoch`` free of rounding everywhere? (The error of a difference of floats is a float: Knuth's TwoSum.)"""
    difference = times - epoch
    back = difference - times
    error = (times - (difference - back)) + (-epoch - back)
    return bool(np.isfinite(difference).all() and (error == 0).all())
