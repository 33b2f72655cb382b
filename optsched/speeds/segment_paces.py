"""How fast the segments of a schedule ran, from the nodes of their GPUs: what a second look at a schedule needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.speed_model import Nodes


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
