"""What jobs are alone: how long each takes, at least, at most and on the best placement; which of them communicate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats
from optsched.problem.instance import Instance


def paces(instance: Instance) -> tuple[Floats, Floats]:
    """(fastest, slowest) seconds a unit of work can take on this cluster, f64[n] each.

    1 and 1 for a job with a duration; alpha_min and alpha_max of a stage profile (`optsched.speeds.stage_graph`); the best
    and the worst GPU type of a job at the speeds of a table, the best and the worst placement of one at a scaling profile.
    For a job with tasks: an iteration alone, with an all-reduce only if no node could hold the gang; and inf, since it
    shares GPUs and network with any number of others. `InputError` when a profile is not there, or needs bandwidths that
    the cluster does not state.
    """
    fastest, slowest = np.ones(instance.n), np.ones(instance.n)
    for speeds in instance.speeds:
        fastest[speeds.jobs], slowest[speeds.jobs] = speeds.paces()
    return fastest, slowest


def seconds_alone(instance: Instance) -> Floats:
    """The fewest seconds for which every job holds its gang, f64[n], on any placement: what bounds may count on."""
    return instance.duration if not instance.profiled.any() else instance.work * paces(instance)[0]


@dataclass(frozen=True, eq=False)
class SoloTimes:
    """``seconds`` f64[n] alone; where ``exact`` bool[n] is false, no placement is faster and perhaps none as fast."""

    seconds: Floats
    exact: Bools


def solo_times(instance: Instance) -> SoloTimes:
    """Seconds alone on the best placement that there is, for every job's own gang: unlike `seconds_alone` some has them.

    Tables: the best of one node, and of several with the rate of the slowest type used. Scaling profiles: the fastest split
    of the gang. Tasks: one node where one holds the gang, else an all-reduce an iteration. Stage profiles: the fastest
    mapping of replicas to nodes (`optsched.speeds.stage_graph.best_pace`), or the bound where there are too many of them.

    Complexity O(n), O(T log T) for each class of jobs at table rates, and a search of bounded length for each different
    (profile, nodes it may use), which is remembered between calls. `InputError` as `seconds_alone`.
    """
    seconds, exact = np.zeros(instance.n), np.ones(instance.n, dtype=np.bool_)
    for speeds in instance.speeds:
        seconds[speeds.jobs], exact[speeds.jobs] = speeds.solo()
    return SoloTimes(seconds, exact)


def fixed_durations(instance: Instance) -> Floats:
    """Seconds that every job takes wherever it runs, f64[n]: for methods that know nothing of placements.

    `InputError` for the first job whose speed depends on its placement.
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


def communicating(instance: Instance, *, elastic: bool = False) -> Bools:
    """Which jobs may have communication that contends at the job level, bool[n]: none without a `Contention`.

    ``elastic``: who can may have other gangs than its own, also where that is one GPU.
    `InputError` where contention is a table of measured ratios, which only the task level knows.
    """
    if instance.contention is None or instance.cluster.node_count == 1:
        return np.zeros(instance.n, dtype=bool)
    found = instance.gpus > 1
    for speeds in instance.speeds:
        if not speeds.communicates:
            found[speeds.jobs] = False
        elif elastic and speeds.elastic:
            found[speeds.jobs] = True
    if instance.contention.measured and found.any():
        raise InputError(
            "whole jobs contend by the linear model, not by measured ratios",
            field="contention.ratios",
            legal="seconds_per_byte and penalty",
        )
    return found
