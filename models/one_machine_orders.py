"""Shared parts of the two order-based formulations of one machine: when they apply, and schedules from an order."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.models.formulation import objective_reason, size_reason
from optsched.models.latest_starts import starts_of
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import fixed_durations

TOLERANCE = 1e-9  # relative to the latest end: error of a solver's times


def one_machine_reason(instance: Instance, objective: str, known: frozenset[str], nonzeros: int) -> str | None:
    """Return why a formulation of one machine does not apply, or None.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective.
    known
        Names of the objectives that the formulation minimises.
    nonzeros
        Estimated nonzeros of the formulation.
    """
    reason = objective_reason(instance, objective, known)
    if reason is not None:
        return reason
    if instance.cluster.gpus > 1:
        return f"it is for one machine, not for {instance.cluster.gpus} GPUs"
    try:
        fixed_durations(instance)
    except InputError as error:
        return str(error)
    return size_reason(nonzeros)


def starts_in_order(
    order: Ints, release: Floats, duration: Floats, begin: Floats | None = None, near: float = 0.0
) -> Floats:
    """Return starts f64[n] of the jobs one after the other in an order, each as early as its release allows.

    Parameters
    ----------
    order
        The jobs in order, i64[n].
    release
        Releases in seconds, f64[n].
    duration
        Durations in seconds, f64[n].
    begin
        Time before which no job starts, f64[n]; None: the releases alone count.
    near
        Seconds: a ``begin`` that is at most this much later than the earliest start is ignored.
    """
    start, now = np.empty_like(release), -np.inf
    for j in order:
        start[j] = max(now, release[j])
        if begin is not None and begin[j] > start[j] + near:
            start[j] = begin[j]
        now = start[j] + duration[j]
    return start


def order_of(given: Schedule) -> Ints:
    """Return the jobs of a non-preemptive schedule, sorted by start.

    Parameters
    ----------
    given
        The schedule.
    """
    start = starts_of(given)
    return np.lexsort((np.arange(start.size), start))


def schedule_in_order(instance: Instance, order: Ints, policy: str, begin: Floats | None = None) -> Schedule:
    """Return the schedule of an order on the one machine.

    A time in ``begin`` that is within a solver's tolerances of a whole second becomes that second.

    Parameters
    ----------
    instance
        Jobs and cluster.
    order
        The jobs in order, i64[n].
    policy
        Name that the schedule records.
    begin
        Seconds after the first arrival before which no job starts, f64[n], from a solver; None: the releases alone
        count.
    """
    duration, release = fixed_durations(instance), instance.arrival
    near = TOLERANCE * (np.ptp(release) + duration.sum())
    if begin is not None:
        near = max(near, TOLERANCE * float(begin.max()))
        begin = release.min() + np.where(np.abs(begin - np.round(begin)) <= near, np.round(begin), begin)
    starts = starts_in_order(order, release, duration, begin, near)
    return Schedule.from_starts(instance, starts, duration=duration, policy=policy)
