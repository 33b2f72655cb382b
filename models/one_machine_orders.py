"""What the two order-based formulations of one machine share: who they are for, and schedules from an order."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.models.formulation import objective_reason, size_reason
from optsched.models.latest_starts import starts_of
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import fixed_durations

TOLERANCE = 1e-9  # of the latest end: what a solver's times may be off


def one_machine_reason(instance: Instance, objective: str, known: frozenset[str], nonzeros: int) -> str | None:
    """Why a formulation of one machine does not apply; ``nonzeros`` is its estimated size."""
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
    """Starts f64[n] of the jobs one after the other in an order, each as early as its release allows.

    With ``begin`` not before ``begin[j]``, unless that is no more than ``near`` later.
    """
    start, now = np.empty_like(release), -np.inf
    for j in order:
        start[j] = max(now, release[j])
        if begin is not None and begin[j] > start[j] + near:
            start[j] = begin[j]
        now = start[j] + duration[j]
    return start


def order_of(given: Schedule) -> Ints:
    """The jobs of a non-preemptive schedule by start."""
    start = starts_of(given)
    return np.lexsort((np.arange(start.size), start))


def schedule_in_order(instance: Instance, order: Ints, policy: str, begin: Floats | None = None) -> Schedule:
    """The schedule of an order, on the one machine; ``begin`` f64[n]: seconds after the first arrival, no job starts before.

    These are a solver's, so a time that is within its tolerances of a whole second is that second.
    """
    duration, release = fixed_durations(instance), instance.arrival
    near = TOLERANCE * (np.ptp(release) + duration.sum())
    if begin is not None:
        near = max(near, TOLERANCE * float(begin.max()))
        begin = release.min() + np.where(np.abs(begin - np.round(begin)) <= near, np.round(begin), begin)
    starts = starts_in_order(order, release, duration, begin, near)
    return Schedule.from_starts(instance, starts, duration=duration, policy=policy)
