"""Iteration times by sub-batch, accumulation, replicas and placement: the formulas of `optsched.problem.scaling`."""

from __future__ import annotations

import math

from optsched.problem.scaling import Scaling


def network_seconds(scaling: Scaling, replicas: int, spans: bool) -> float:
    """N: seconds of communication of a step; ``spans``: the replicas are on several nodes."""
    if replicas == 1:
        return 0.0
    first, growth = (scaling.across, scaling.across_growth) if spans else (scaling.within, scaling.within_growth)
    return first + growth * max(replicas - 2, 0)


def computing_seconds(scaling: Scaling, size: int, steps: int) -> float:
    """s C(m): an iteration of ``steps`` sub-steps without communication; inf where a measured scaling has none to say it."""
    once = scaling.compute + scaling.per_sample * size
    return steps * once if once > 0 else math.inf


def iteration_seconds(scaling: Scaling, size: int, steps: int, replicas: int, spans: bool) -> float:
    """T(m, s, r): an iteration of ``steps`` sub-steps with ``size`` samples each, by the formula."""
    computing = scaling.compute + scaling.per_sample * size
    network = network_seconds(scaling, replicas, spans)
    larger, smaller = max(computing, network), min(computing, network)
    # scaled by the larger one: powers of small or large seconds leave the range of floats
    last = larger * (1.0 + (smaller / larger) ** scaling.overlap) ** (1.0 / scaling.overlap) if larger > 0 else 0.0
    return (steps - 1) * computing + last
