"""Latest starts of jobs: the proof that a short horizon loses no optimum.

Setting: regular objective, jobs that hold ``g_j`` of G GPUs from start to end. Among the optimal schedules take one with
the smallest sum of starts and number its jobs by start. Then every job is at the **earliest** time at which it fits
together with the jobs before it. (Otherwise place the jobs in this order, each as early as it fits, as `left_shift` does:
in this schedule no job starts later and one starts earlier.) Write ``b_j`` for the least number
of GPUs that must be busy for j not to fit (count model: G - g_j + 1), ``V_j = sum_{i != j} g_i p_i``, P = max p, R = max r.

**A. After the last release some waiting job is always blocked.** Let R <= t < s_j and let k be the first job in order that
starts after t. All jobs before k have started by t, so what they hold only shrinks. Job k does not fit, hence at least
b_k GPUs are busy at t. As k fits once they have all ended, it is blocked for at most P in this way. So the interval
[R, s_j) consists of times at which a job k is blocked, at most P for each k, and each second of them uses at least b_k
of the V_j GPU-seconds of the other jobs. The longest interval that this allows is a fractional knapsack (least b_k
first). At least one job runs at any moment of it, so it is also at most ``sum_{i != j} p_i``.

**B. A job that does not start is blocked again and again.** Every window of length p_j that starts in [r_j, s_j)
contains a moment at which at least b_j GPUs are busy with jobs before j. Those moments last at most V_j / b_j in total.
The pauses between them are shorter than p_j, and each ends with the start of another job, so there are at most n - 1
pauses (and on a grid no more than there are blocked slots).

**C. A known value U.** If all other jobs pay the least that they can, job j pays at most U minus that.

`latest_starts` is the minimum of A and B (one schedule has both properties); `latest_completions` is C.
References: A is Graham's argument for list schedules; B says that the schedule is active (Giffler and Thompson 1960).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import seconds_alone

# the knapsack is computed in float64: rounding must not make a bound one slot too low
_SLACK = 1e-6
_ROUNDING = 1e-12  # relative, for a difference of sums in float64, so that a completion is never too early


def latest_starts(release: Ints, duration: Ints, gpus: Ints, blocked: Ints) -> Ints:
    """Return the latest start of every job in some optimal schedule (A and B above), in slots, i64[n].

    All times are in slots of a grid on which the schedule lies. O(n log n).

    Parameters
    ----------
    release
        Releases in slots, i64[n].
    duration
        Durations in slots, i64[n].
    gpus
        GPUs of each gang, i64[n].
    blocked
        b_j >= 1, the least number of busy GPUs that blocks job j, i64[n].
    """
    area = (gpus * duration).astype(np.float64)
    others = area.sum() - area
    # the knapsack of A: np.interp on the concave curve (GPU-seconds spent, longest time that can be blocked)
    heads, count = np.unique(blocked, return_counts=True)
    time = np.concatenate([[0.0], np.cumsum(count * float(duration.max()))])
    spent = np.concatenate([[0.0], np.cumsum(heads * count * float(duration.max()))])
    longest_wait = np.minimum(np.interp(others, spent, time), duration.sum() - duration)
    after_last = release.max() + np.floor(longest_wait + _SLACK)
    busy = np.floor(others / blocked + _SLACK)
    pauses = np.minimum(busy, release.size - 1)
    latest: Ints = np.minimum(after_last, release + busy + (duration - 1) * pauses).astype(np.int64)
    return latest


def latest_completions(instance: Instance, objective: str, value: float) -> Floats:
    """Return the latest completion of every job in schedules not worse than ``value`` (C above), in seconds, f64[n].

    It is inf where the value gives no limit (weight 0, no due date). Pass it as ``horizon=`` to a formulation.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    value
        Value of a known schedule.
    """
    goal = get_objective(objective)
    earliest = instance.arrival + seconds_alone(instance)
    if goal.maximum:
        begin = -goal.term(np.zeros(instance.n), instance.arrival, instance.weight, instance.due)
        return np.asarray(value + begin + np.where(begin > 0, _ROUNDING * (value + begin), 0.0))
    least = goal.term(earliest, instance.arrival, instance.weight, instance.due)
    total = float(np.sum(least))
    spare = max(value - total, 0.0) + _ROUNDING * (abs(value) + abs(total))
    weight = instance.weight if goal.weighted else np.ones(instance.n)
    slope_starts = np.maximum(earliest, instance.due) if objective == "total_weighted_tardiness" else earliest
    with np.errstate(divide="ignore", invalid="ignore"):
        latest: Any = slope_starts + np.where(weight > 0, spare / weight, np.inf)
    return np.asarray(latest, dtype=np.float64)


# Moving a schedule to the left until nothing moves: jobs in order of start, each as early as it fits.
#
# This is serial generation with the schedule's own order. No job starts later than before: when job j is placed, the
# jobs before it started no later than they did and hold their GPUs no longer after s_j, so s_j itself still fits. It is
# repeated until nothing changes, which is the property that `latest_starts` needs. O(n H) a pass, H slots.


def starts_of(schedule: Schedule) -> Floats:
    """Return the starts of the jobs in seconds, f64[n].

    Parameters
    ----------
    schedule
        A schedule in which every job runs once, without interruption.

    Raises
    ------
    InputError
        If a job runs more or less than once, or is preempted.
    """
    if not np.array_equal(np.sort(schedule.job), np.arange(schedule.instance.n)):
        raise InputError("a start needs a schedule in which every job runs once, without preemption", field="schedule")
    starts = np.empty(schedule.instance.n)
    starts[schedule.job] = schedule.start
    return starts


def left_shift(start: Ints, release: Ints, duration: Ints, size: Ints, capacity: Ints) -> Ints:
    """Return starts moved to the left, i64[n], never later than ``start``.

    Parameters
    ----------
    start
        Starts in slots, i64[n].
    release
        Releases in slots, i64[n].
    duration
        Durations in slots, i64[n].
    size
        GPUs that a job holds of each of R pools (one pool, or the nodes), i64[n, R].
    capacity
        GPUs of each pool, i64[R].

    Raises
    ------
    InputError
        If the given starts exceed a capacity.
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
    """Return the list schedule of an order, i64[n] starts in slots.

    It starts from the schedule that runs one job after the other and moves it to the left.

    Parameters
    ----------
    order
        The jobs in order, i64[n].
    release
        Releases in slots, i64[n].
    duration
        Durations in slots, i64[n].
    size
        GPUs that a job holds of each of R pools, i64[n, R].
    capacity
        GPUs of each pool, i64[R].
    """
    start = np.empty_like(release)
    start[order] = release.max() + np.cumsum(duration[order]) - duration[order]
    return left_shift(start, release, duration, size, capacity)
