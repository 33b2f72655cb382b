"""What jobs are alone: how long each takes, at least, at most, at best and in a schedule; which of them communicate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.job_speeds import Nodes


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


# --- in the segments of a schedule, from the nodes of their GPUs -----------------------------------------------------------


def segment_paces(instance: Instance, job: Ints, gpu_offset: Ints, gpu_node: Ints) -> Floats:
    """Seconds a unit of work took in every segment, f64[S]: 1 for jobs with durations, else alpha of the placement.

    For a job at the speeds of a table: that of the slowest type of its GPUs; for one at a scaling profile: T of its largest
    sub-batch on these nodes; for one with tasks: its compute alone. Segment s runs ``job[s]`` (-1: none) on GPUs
    of the nodes ``gpu_node[gpu_offset[s] : gpu_offset[s + 1]]``, which hold the replicas in this order. nan where that is
    not a placement of the job. By the readable formulas, not by those that the engine compiles. `InputError` when a profile
    is missing. Complexity O(S) plus one evaluation a different placement.
    """
    pace = np.ones(job.size)
    for speeds in instance.speeds:
        is_one = np.zeros(instance.n + 1, dtype=np.bool_)  # at its end: no job
        is_one[speeds.jobs] = True
        rows = np.flatnonzero(is_one[job])

        def nodes(k: int, rows: Ints = rows) -> Nodes:
            return tuple(gpu_node[gpu_offset[rows[k]] : gpu_offset[rows[k] + 1]].tolist())

        pace[rows] = speeds.paces_on(job[rows], nodes)
    return pace


@dataclass(frozen=True, eq=False)
class SubSteps:
    """What gradient accumulation costs S segments: memory and time.

    ``legal`` bool[S]: the steps are those of a sub-batch of the job; ``first`` i64[S]: those of its largest. ``memory``
    f64[S] bytes on each GPU; ``stretch`` f64[S]: seconds of an iteration by those with the largest sub-batch, T(m, s, r) /
    T(m_0, s_0, r) on one node or over several (`optsched.problem.scaling`). Where the steps are invalid, or the segment
    names no job, those of the largest sub-batch.
    """

    legal: Bools
    first: Ints
    memory: Floats
    stretch: Floats


def segment_sub_steps(instance: Instance, job: Ints, steps: Ints, gpu_offset: Ints, gpu_node: Ints) -> SubSteps:
    """The costs of ``steps`` i64[S] of segments of ``job`` i64[S] (-1: none) on GPUs as in `segment_paces`.

    A job without a scaling profile has one way to run: 1 step, its ``gpu_memory``. O(K + n B) for batches of B samples.
    """
    legal, first, stretch = steps == 1, np.ones(job.size, dtype=np.int64), np.ones(job.size)
    memory = np.append(instance.gpu_memory, 0.0)[job]
    for s, (j, count) in enumerate(zip(job.tolist(), steps.tolist(), strict=True)):
        chain = () if j < 0 else instance.sub_batches(j)
        if not chain:
            continue
        largest, chosen = chain[0], next((each for each in chain if each.steps == count), None)
        legal[s], first[s] = chosen is not None, largest.steps
        if chosen is None:
            continue
        memory[s] = chosen.memory
        if chosen is not largest:
            spans = np.unique(gpu_node[gpu_offset[s] : gpu_offset[s + 1]]).size > 1
            seconds = [instance.speeds_of(j).split_seconds(j, each, spans) for each in (chosen, largest)]
            stretch[s] = seconds[0] / seconds[1]
    return SubSteps(legal, first, memory, stretch)
