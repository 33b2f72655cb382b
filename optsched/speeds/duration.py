"""How long a job takes alone: its duration, or its iterations at the speed of its profile."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance


def paces(instance: Instance) -> tuple[Floats, Floats]:
    """(fastest, slowest) seconds a unit of work can take on this cluster, f64[n] each.

    1 and 1 for a job with a duration; alpha_min and alpha_max of a stage profile (alpha_min: no placement is
    faster, see `optsched.speeds.stage_graph`); for a job at the speeds of a table those of its best and its worst GPU type;
    for one at a scaling profile those of its best and its worst placement.
    For a job with tasks: an iteration alone, with an all-reduce only if no node could hold the gang; and inf, since it
    shares GPUs and network with any number of others.
    Raises `InputError` when a profile is not there, or needs bandwidths that the cluster does not state.
    """
    fastest, slowest = np.ones(instance.n), np.ones(instance.n)
    for speeds in instance.speeds:
        fastest[speeds.jobs], slowest[speeds.jobs] = speeds.paces()
    return fastest, slowest


def seconds_alone(instance: Instance) -> Floats:
    """The fewest seconds for which every job holds its gang, f64[n], on any placement: what bounds may count on.

    The duration, or iterations x alpha_min.
    """
    return instance.duration if not instance.profiled.any() else instance.work * paces(instance)[0]


def fixed_durations(instance: Instance) -> Floats:
    """Seconds that every job takes wherever it runs, f64[n]: for methods that know nothing of placements.

    Raises
    ------
    InputError
        For the first job whose speed depends on its placement.
    """
    if not instance.profiled.any():
        return instance.duration
    fastest, slowest = paces(instance)
    moving = np.flatnonzero(slowest > fastest * (1 + 1e-12))  # beyond rounding
    if moving.size:
        job = instance.job(int(moving[0]))
        raise InputError(
            f"the speed of job {job.id!r} ({moving.size} of {instance.n} jobs) depends on its placement",
            field="profile",
            value=job.profile,
            legal="jobs with durations, or profiles that run equally fast everywhere",
        )
    return instance.work * slowest
