"""Bounds that cost little: on queued GPU-hours, on mean bounded slowdown, and on the jobs of a group alone.

They use the certificates for rigid gangs that need well under a second for tens of thousands of jobs. Each is verified
from the instance.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl

from optsched.bounds.best_bound import BOUNDS
from optsched.bounds.certificate import rounded_down
from optsched.classes import PREEMPTIVE, usual_class
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.simulation.metrics import HOUR, SHORT
from optsched.speeds.duration import solo_times

SINGLE = ("release-plus-duration", "srpt", "typed-srpt")
TOGETHER = (*SINGLE, "split-busy-time", "typed-busy-time")


def quick_bound(instance: Instance, objective: str, names: tuple[str, ...] = TOGETHER) -> float | None:
    """Return the largest of a few verified lower bounds for rigid gangs, rounded down; None if none applies.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    objective
        Name of an objective whose values do not depend on the clock, such as ``total_flow_time``.
    names
        Names of the bounds.
    """
    if usual_class(instance).name != PREEMPTIVE:
        return None
    local, values = instance.relative, [Fraction(0)]
    for name in names:
        bound = BOUNDS.get(name)
        if objective not in bound.objectives or PREEMPTIVE not in bound.classes:
            continue
        certificate = bound.build(local, objective, PREEMPTIVE)
        if certificate is not None:
            certificate.verify(local)
            values.append(certificate.value)
    return rounded_down(max(values))


def least_queued_hours(instance: Instance) -> float | None:
    """Return a lower bound on the GPU-hours that gangs wait and restart in any schedule of rigid gangs.

    It is the bound on the total flow time, weighted by gangs, minus the GPU-hours of work. None if the work of a job
    depends on its placement, or GPUs are shared.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    """
    if instance.n == 0 or np.isnan(instance.duration).any():
        return None
    bound = _weighted(instance, instance.gpus.astype(np.float64))
    if bound is None:
        return None
    pairs = zip(instance.gpus.tolist(), instance.duration.tolist(), strict=True)
    work = sum((gang * Fraction(duration) for gang, duration in pairs), Fraction(0))
    return max(0.0, rounded_down((Fraction(bound) - work) / int(HOUR)))


def least_bounded_slowdown(instance: Instance) -> float:
    """Return a lower bound on the mean bounded slowdown in any schedule of rigid gangs; it is at least 1.

    The mean of max(1, F / max(p, 10 s)) is at least the mean of F / max(p, 10 s), a flow time weighted by jobs.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    """
    if instance.n == 0:
        return 1.0
    weights = np.nextafter(1 / np.maximum(solo_times(instance).seconds, SHORT), 0.0)  # never above the quotient
    bound = _weighted(instance, weights)
    return 1.0 if bound is None else max(1.0, rounded_down(Fraction(bound) / instance.n))


def _weighted(instance: Instance, weights: Floats) -> float | None:
    table = instance.table.with_columns(weight=pl.Series(weights, dtype=pl.Float64))
    return quick_bound(instance.replace(jobs=table), "total_weighted_flow_time")
