"""Moving a schedule to the left until nothing moves: jobs in order of start, each as early as it fits.

Serial generation with the schedule's own order. No job starts later than before: when job j is placed, the jobs before it
started no later than they did and hold their GPUs no longer after s_j, so s_j itself still fits. Repeated until nothing
changes, which is the property that `latest_starts` builds on. O(n H) a pass, H slots.
"""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.schedule import Schedule


def starts_of(schedule: Schedule) -> Floats:
    """Starts in seconds, f64[n]; `InputError` unless every job runs once and without interruption."""
    if not np.array_equal(np.sort(schedule.job), np.arange(schedule.instance.n)):
        raise InputError("a start needs a schedule in which every job runs once, without preemption", field="schedule")
    starts = np.empty(schedule.instance.n)
    starts[schedule.job] = schedule.start
    return starts


def left_shift(start: Ints, release: Ints, duration: Ints, size: Ints, capacity: Ints) -> Ints:
    """Starts moved to the left, i64[n], never later than ``start``.

    ``size`` i64[n, R] and ``capacity`` i64[R]: GPUs a job holds of each of R pools (one pool, or the nodes).
    Raises `InputError` when the given starts exceed a capacity.
    """
    while True:
        held = np.zeros((int((start + duration).max()), capacity.size), dtype=np.int64)
        placed = np.empty_like(start)
        for j in np.lexsort((np.arange(start.size), start)):
            first, last = release[j], start[j] + duration[j]
            full = np.flatnonzero(np.any(held[first:last] + size[j] > capacity, axis=1)) + first
            # starts right after a full slot (or at the release) that leave p_j slots before the next full slot
            begin = np.concatenate([[first], full + 1])
            room = np.concatenate([full, [last]]) - begin
            fits = np.flatnonzero(room >= duration[j])
            if fits.size == 0:
                raise InputError(f"the schedule does not fit: job {j} (0-based) exceeds a capacity", field="schedule")
            placed[j] = begin[fits[0]]
            held[placed[j] : placed[j] + duration[j]] += size[j]
        if np.array_equal(placed, start):
            return placed
        start = placed


def in_sequence(order: Ints, release: Ints, duration: Ints, size: Ints, capacity: Ints) -> Ints:
    """The list schedule of an order: serial generation from one job after the other. i64[n] starts in slots."""
    start = np.empty_like(release)
    start[order] = release.max() + np.cumsum(duration[order]) - duration[order]
    return left_shift(start, release, duration, size, capacity)
