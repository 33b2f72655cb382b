"""Bounds that cost little: on queued GPU-hours, on mean bounded slowdown, and on the jobs of a group alone.

They use the certificates for rigid gangs that need about a second for tens of thousands of jobs. The best one is verified
from the instance.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from optsched.bounds.best_bound import BOUNDS
from optsched.bounds.certificate import rounded_down
from optsched.classes import CLASSES, usual_class
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.simulation.metrics import HOUR, SHORT
from optsched.speeds.duration import solo_times

SINGLE = ("release-plus-duration", "srpt", "typed-srpt")
TOGETHER = (*SINGLE, "split-busy-time", "typed-busy-time")
LATE = ("srpt-due-dates", "split-busy-time", "typed-due-dates", "typed-busy-time")
PRICED = ("priced-time", "priced-log")  # some seconds


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
    kind = usual_class(instance)
    if not kind.rigid:
        return None
    local, served = instance.relative, CLASSES.get(kind.certified)
    serving = ((bound, served.bounded_by(bound.classes)) for bound in map(BOUNDS.get, names))
    certificates = [
        bound.build(local, objective, larger)
        for bound, larger in serving
        if larger is not None and objective in bound.objectives
    ]
    best = max(filter(None, certificates), key=lambda certificate: certificate.value, default=None)
    if best is None:
        return None
    best.verify(local)
    return best.exact_float


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
    work = math.fsum((instance.gpus * instance.duration).tolist()) * (1 + 2**-51)  # not below the sum of exact products
    return max(0.0, rounded_down((Fraction(bound) - Fraction(work)) / int(HOUR)))


def least_bounded_slowdown(instance: Instance, *, strong: bool = False) -> float:
    """Return a lower bound on the mean bounded slowdown in any schedule of rigid gangs; it is at least 1.

    Let b = max(p, 10 s). The mean of max(1, F / b) is at least the mean of F / b, a flow time weighted by jobs. It is 1
    plus the mean of max(0, C - (r + b)) / b, a tardiness weighted by jobs.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    strong
        Also compute prices of GPUs over time, which takes up to a minute.
    """
    if instance.n == 0:
        return 1.0
    local = instance.relative
    shortest = np.maximum(solo_times(local).seconds, SHORT)
    weights = np.nextafter(1 / shortest, 0.0)  # never above the quotient
    flow = _weighted(local, weights)
    due = np.nextafter(local.arrival + shortest, np.inf)  # never below the sum
    names = (*LATE, *PRICED) if strong else LATE
    late = quick_bound(local.weighted_by(weights, due), "total_weighted_tardiness", names)
    means = [Fraction(flow) / local.n] if flow is not None else []
    means += [1 + Fraction(late) / local.n] if late is not None else []
    return max([1.0, *map(rounded_down, means)])


def _weighted(instance: Instance, weights: Floats) -> float | None:
    return quick_bound(instance.relative.weighted_by(weights), "total_weighted_flow_time")
