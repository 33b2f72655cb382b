"""How fast the segments of a schedule ran, from the nodes of their GPUs: what a second look at a schedule needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.job_speeds import Nodes


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
        pace[rows] = speeds.paces_on(job[rows], _nodes(rows, gpu_offset, gpu_node))
    return pace


def _nodes(rows: Ints, gpu_offset: Ints, gpu_node: Ints) -> Callable[[int], Nodes]:
    return lambda s: tuple(gpu_node[gpu_offset[rows[s]] : gpu_offset[rows[s] + 1]].tolist())
