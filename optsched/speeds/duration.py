"""How long a job takes alone: its duration, or its iterations at the speed of its profile."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.job_table import LONGEST, SHORTEST
from optsched.speeds.network import Network
from optsched.speeds.scaled_jobs import reached, scaled_jobs
from optsched.speeds.stage_graph import alpha_max, alpha_min
from optsched.speeds.type_speeds import type_speeds


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
    if instance.tabled.any():
        speeds, jobs = type_speeds(instance), np.flatnonzero(instance.tabled)
        with np.errstate(over="ignore"):  # inf is out of range, see below
            fastest[jobs], slowest[jobs] = 1.0 / speeds.fastest[jobs], 1.0 / speeds.slowest[jobs]
        names = instance.table["profile"].to_list()
        _check_seconds(instance, jobs, [names[j] for j in jobs.tolist()], fastest, slowest)
    if instance.scaled.any():
        scaled = scaled_jobs(instance)
        every = [together + spread for together, spread in reached(instance, scaled)]
        fastest[scaled.jobs], slowest[scaled.jobs] = [min(each) for each in every], [max(each) for each in every]
        names = instance.table["profile"].gather(scaled.jobs).to_list()
        _check_seconds(instance, scaled.jobs, names, fastest, slowest)
    if instance.at_task_level:
        fastest, slowest = _of_tasks(instance), np.full(instance.n, np.inf)
        _check_tasks(instance, fastest)
    rows = np.flatnonzero(instance.staged)
    if rows.size:
        used, network = instance.profiles_used(), Network.of(instance.cluster)
        names = instance.table["profile"].gather(rows).to_list()
        bounds = {name: (alpha_min(each, network), alpha_max(each, network)) for name, each in used.items()}
        fastest[rows] = [bounds[name][0] for name in names]
        slowest[rows] = [bounds[name][1] for name in names]
        _check_seconds(instance, rows, names, fastest, slowest)
    return fastest, slowest


def _check_tasks(instance: Instance, fastest: Floats) -> None:
    alone = instance.work * fastest
    for j in np.flatnonzero(~((alone >= SHORTEST) & (alone <= LONGEST)))[:1].tolist():
        raise InputError(
            f"job {instance.ids[j]!r} takes {alone[j]:g} s when nothing is in its way",
            field="tasks",
            value=instance.table["profile"][j],
            legal=f"iterations that take {SHORTEST:g} to {LONGEST:g} seconds, also where the gang is on one node",
        )


def _of_tasks(instance: Instance) -> Floats:
    """t_j, plus a + b M_j where the gang is wider than every node it may use: seconds an iteration takes at least."""
    seconds = instance.forward + instance.backward
    if instance.contention is None:
        return seconds
    cost, widest = instance.contention, (instance.class_eligible * instance.cluster.node_gpus).max(axis=1)
    spans = (instance.gpus > widest[instance.job_class]) & (instance.message > 0)
    return seconds + np.where(spans, cost.latency + cost.seconds_per_byte * instance.message, 0.0)


def _check_seconds(instance: Instance, rows: Ints, names: list[str], fastest: Floats, slowest: Floats) -> None:
    # The same range as that of durations: beyond it floats lose a job beside the clock, or overflow.
    least = instance.work[rows] * fastest[rows]
    most = instance.work[rows] * slowest[rows]
    for k in np.flatnonzero(~((least >= SHORTEST) & (most <= LONGEST)))[:1].tolist():
        job = instance.ids[int(rows[k])]
        raise InputError(
            f"job {job!r} takes from {least[k]:g} to {most[k]:g} s at the speed of its profile",
            field="profile",
            value=names[k],
            legal=f"{SHORTEST:g} to {LONGEST:g} seconds on every placement",
        )


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
