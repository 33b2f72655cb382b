"""Step functions of time: how many GPUs are busy, how many jobs wait."""

from __future__ import annotations

import numpy as np

from optsched.problem.arrays import Floats, Ints


def levels(time: Floats, change: Floats) -> tuple[Floats, Floats]:
    """The step function that changes by ``change[k]`` at ``time[k]``: (its times, its value from each on).

    O(m log m); exact for integer changes.
    """
    when, position = np.unique(time, return_inverse=True)
    return when, np.cumsum(np.bincount(position, weights=change, minlength=when.size))


def bin_means(row: Ints, time: Floats, change: Floats, rows: int, start: float, end: float, bins: int) -> Floats:
    """Means of ``rows`` step functions over ``bins`` equal parts of [start, end], f64[rows, bins].

    Function ``row[k]`` changes by ``change[k]`` at ``time[k]``. The mean of a single step over a bin is 0 before the
    bin that holds it, the share of the bin that is left in it, and 1 after: hence two differences a step and one
    running sum, O(m + rows * bins), exact up to rounding whatever the width of a bin.
    """
    place = np.clip((time - start) / (end - start) * bins, 0.0, float(bins))
    at = np.minimum(place.astype(np.int64), bins)
    late = place - at
    width = bins + 2
    difference = np.bincount(row * width + at, weights=change * (1 - late), minlength=rows * width)
    difference += np.bincount(row * width + at + 1, weights=change * late, minlength=rows * width)
    return np.asarray(np.cumsum(difference.reshape(rows, width), axis=1)[:, :bins])
