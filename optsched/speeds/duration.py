"""Speeds of jobs that run alone: bounds on durations, best durations, those in a schedule, communication."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.job_speeds import Nodes


def paces(instance: Instance) -> tuple[Floats, Floats]:
    """Return the fewest and most seconds that a unit of work takes on the cluster, f64[n] each.

    For a job with a duration: 1 and 1. For others: alpha_min and alpha_max of a stage profile
    (`optsched.speeds.stage_graph`); the best and the worst GPU type of a job at the speeds of a table; the best and
    the worst placement of a job at a scaling profile. For a job with tasks: an iteration alone, with an all-reduce
    only if no node could hold the gang; and inf, since it shares GPUs and network with any number of other jobs.

    Parameters
    ----------
    instance
        Jobs and a cluster.

    Raises
    ------
    InputError
        A profile is missing, or needs bandwidths that the cluster does not state.
    """
    fastest, slowest = np.ones(instance.n), np.ones(instance.n)
    for speeds in instance.speeds:
        fastest[speeds.jobs], slowest[speeds.jobs] = speeds.paces()
    return fastest, slowest


def seconds_alone(instance: Instance) -> Floats:
    """Return the fewest seconds for which every job holds its gang on any placement, f64[n]; bounds may rely on them.

    Parameters
    ----------
    instance
        Jobs and a cluster.

    Raises
    ------
    InputError
        As in `paces`.
    """
    return instance.duration if not instance.profiled.any() else instance.work * paces(instance)[0]


@dataclass(frozen=True, eq=False)
class SoloTimes:
    """Seconds of every job alone, f64[n], and whether they are exact, bool[n].

    If ``exact`` is false, no placement is faster, but perhaps none is as fast.
    """

    seconds: Floats
    exact: Bools


def solo_times(instance: Instance) -> SoloTimes:
    """Return the seconds alone on the best placement of every job's own gang.

    Unlike `seconds_alone`, some placement attains them.

    Tables: the best rate of one node, and of several nodes with the rate of the slowest type used. Scaling profiles:
    the fastest split of the gang. Tasks: one node if one holds the gang, else an all-reduce an iteration. Stage
    profiles: the fastest mapping of replicas to nodes (`optsched.speeds.stage_graph.best_pace`), or the bound if there
    are too many mappings.

    Complexity O(n), O(T log T) for each class of jobs at table rates, and a search of bounded length for each
    different (profile, nodes it may use), which is cached between calls.

    Parameters
    ----------
    instance
        Jobs and a cluster.

    Raises
    ------
    InputError
        As in `paces`.
    """
    seconds, exact = np.zeros(instance.n), np.ones(instance.n, dtype=np.bool_)
    for speeds in instance.speeds:
        seconds[speeds.jobs], exact[speeds.jobs] = speeds.solo()
    return SoloTimes(seconds, exact)


def fixed_durations(instance: Instance) -> Floats:
    """Return the seconds that every job takes on any placement, f64[n], for methods that do not model placements.

    Parameters
    ----------
    instance
        Jobs and a cluster.

    Raises
    ------
    InputError
        The speed of a job depends on its placement (the first such job is named), or as in `paces`.
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
    """Return which jobs may have communication that contends at the job level, bool[n]; none without a `Contention`.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    elastic
        Elastic jobs may have other gangs than their own, so they count even if their gang is one GPU.

    Raises
    ------
    InputError
        Contention is a table of measured ratios, which only the task level models.
    """
    if instance.contention is None or instance.cluster.node_count == 1:
        return np.zeros(instance.n, dtype=bool)
    contends = instance.gpus > 1
    for speeds in instance.speeds:
        if not speeds.communicates:
            contends[speeds.jobs] = False
        elif elastic and speeds.elastic:
            contends[speeds.jobs] = True
    if instance.contention.measured and contends.any():
        raise InputError(
            "whole jobs contend by the linear model, not by measured ratios",
            field="contention.ratios",
            legal="seconds_per_byte and penalty",
        )
    return contends


# --- in the segments of a schedule, from the nodes of their GPUs -----------------------------------------------------------


def segment_paces(instance: Instance, job: Ints, gpu_offset: Ints, gpu_node: Ints) -> Floats:
    """Return the seconds that a unit of work took in every segment, f64[S].

    nan where the GPUs are no placement of the job, 1 for jobs with durations, otherwise alpha of the placement. For a
    job at the speeds of a table: that of the slowest type of its GPUs; at a scaling profile: T of its largest
    sub-batch on these nodes; with tasks: its compute alone. Computed by the readable formulas, not by those that the
    engine compiles. Complexity O(S) plus one evaluation a different placement.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    job
        Job of every segment, i64[S]; -1: none.
    gpu_offset
        First GPU of every segment, i64[S + 1].
    gpu_node
        Node of every GPU of the segments, i64[]; a segment's GPUs hold the replicas in this order.

    Raises
    ------
    InputError
        A profile is missing.
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
    """Memory and time of S segments with gradient accumulation.

    ``legal`` bool[S]: the steps are those of a sub-batch of the job. ``first`` i64[S]: the steps of its largest
    sub-batch. ``memory`` f64[S]: bytes on each GPU. ``stretch`` f64[S]: seconds of an iteration, divided by those with
    the largest sub-batch, T(m, s, r) / T(m_0, s_0, r) on one node or over several (`optsched.problem.scaling`). If the
    steps are invalid, or the segment has no job, the values are those of the largest sub-batch.
    """

    legal: Bools
    first: Ints
    memory: Floats
    stretch: Floats


def segment_sub_steps(instance: Instance, job: Ints, steps: Ints, gpu_offset: Ints, gpu_node: Ints) -> SubSteps:
    """Return the memory and time of the sub-steps of segments.

    A job without a scaling profile has one way to run: 1 step, its ``gpu_memory``. O(K + n B) for batches of B
    samples.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    job
        Job of every segment, i64[S]; -1: none.
    steps
        Sub-steps of every segment, i64[S].
    gpu_offset
        First GPU of every segment, i64[S + 1].
    gpu_node
        Node of every GPU of the segments, i64[].
    """
    legal, first, stretch = steps == 1, np.ones(job.size, dtype=np.int64), np.ones(job.size)
    memory = np.append(instance.gpu_memory, 0.0)[job]
    for s, (j, count) in enumerate(zip(job.tolist(), steps.tolist(), strict=True)):
        chain = () if j < 0 else instance.sub_batches(j)
        if not chain:
            continue
        largest, chosen = chain[0], next((option for option in chain if option.steps == count), None)
        legal[s], first[s] = chosen is not None, largest.steps
        if chosen is None:
            continue
        memory[s] = chosen.memory
        if chosen is not largest:
            spans = np.unique(gpu_node[gpu_offset[s] : gpu_offset[s + 1]]).size > 1
            seconds = [instance.speeds_of(j).split_seconds(j, option, spans) for option in (chosen, largest)]
            stretch[s] = seconds[0] / seconds[1]
    return SubSteps(legal, first, memory, stretch)
