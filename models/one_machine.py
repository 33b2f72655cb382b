"""What the two order-based formulations of one machine share: who they are for, and schedules from an order."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.models.formulation import objective_reason, size_reason
from optsched.models.left_shift import starts_of
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import fixed_durations


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


def starts_in_order(order: Ints, release: Floats, duration: Floats) -> Floats:
    """Starts f64[n] of the jobs one after the other in an order, each as early as its release allows."""
    start, now = np.empty_like(release), -np.inf
    for j in order:
        start[j] = max(now, release[j])
        now = start[j] + duration[j]
    return start


def order_of(given: Schedule) -> Ints:
    """The jobs of a non-preemptive schedule by start."""
    start = starts_of(given)
    return np.lexsort((np.arange(start.size), start))


def schedule_in_order(instance: Instance, order: Ints, policy: str) -> Schedule:
    """The schedule of an order, on the one machine."""
    duration = fixed_durations(instance)
    starts = starts_in_order(order, instance.arrival, duration)
    return Schedule.from_starts(instance, starts, duration=duration, policy=policy)
