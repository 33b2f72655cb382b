"""How fast the segments of a schedule ran, from the nodes of their GPUs: what a second look at a schedule needs."""

from __future__ import annotations

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.network import Network
from optsched.speeds.scaled_jobs import scaled_jobs
from optsched.speeds.stage_graph import iteration_time
from optsched.speeds.type_speeds import type_speeds


def segment_paces(instance: Instance, job: Ints, gpu_offset: Ints, gpu_node: Ints) -> Floats:
    """Seconds a unit of work took in every segment, f64[S]: 1 for jobs with durations, else alpha of the placement.

    For a job at the speeds of a table: that of the slowest type of its GPUs; for one at a scaling profile: T of its largest
    sub-batch on these nodes; for one with tasks: its compute alone. Segment s runs ``job[s]`` (-1: none) on GPUs
    of the nodes ``gpu_node[gpu_offset[s] : gpu_offset[s + 1]]``, which hold the replicas in this order. nan where that is
    not a placement of the job. By the readable formulas, not by those that the engine compiles. `InputError` when a profile
    is missing. Complexity O(S) plus one evaluation a different placement.
    """
    pace = np.ones(job.size)
    if instance.at_task_level:  # of an iteration's compute: how long its all-reduce takes, no placement says
        return np.where(job >= 0, (instance.forward + instance.backward)[job], 1.0)
    if instance.tabled.any():
        _at_table(instance, job, gpu_offset, gpu_node, pace)
    if instance.scaled.any():
        _at_scaling(instance, job, gpu_offset, gpu_node, pace)
    if not instance.staged.any():
        return pace
    used, network = instance.profiles_used(), Network.of(instance.cluster)
    names = instance.table["profile"].to_list()
    known: dict[tuple[str, tuple[int, ...]], float] = {}
    for s in np.flatnonzero((job >= 0) & instance.staged[job]).tolist():
        name, nodes = names[job[s]], tuple(gpu_node[gpu_offset[s] : gpu_offset[s + 1]].tolist())
        profile = used[name]
        if len(nodes) != profile.gpus or not all(0 <= node < network.gpus.size for node in nodes):
            pace[s] = np.nan
            continue
        if (name, nodes) not in known:
            known[name, nodes] = iteration_time(profile, network, nodes)
        pace[s] = known[name, nodes]
    return pace


def _at_table(instance: Instance, job: Ints, gpu_offset: Ints, gpu_node: Ints, pace: Floats) -> None:
    speeds = type_speeds(instance)
    known: dict[tuple[int, tuple[int, ...]], float] = {}
    for s in np.flatnonzero((job >= 0) & instance.tabled[job]).tolist():
        j, nodes = int(job[s]), gpu_node[gpu_offset[s] : gpu_offset[s + 1]]
        if nodes.size != instance.gpus[j] or not ((nodes >= 0) & (nodes < speeds.node_type.size)).all():
            pace[s] = np.nan
            continue
        key = j, tuple(np.unique(nodes).tolist())
        if key not in known:
            rate = speeds.rate(j, key[1])
            known[key] = 1.0 / rate if rate > 0 else np.inf
        pace[s] = known[key]


def _at_scaling(instance: Instance, job: Ints, gpu_offset: Ints, gpu_node: Ints, pace: Floats) -> None:
    scaled = scaled_jobs(instance)
    kind_of = dict(zip(scaled.jobs.tolist(), scaled.kind.tolist(), strict=True))
    known: dict[tuple[int, tuple[int, ...]], float] = {}
    for s in np.flatnonzero((job >= 0) & instance.scaled[job]).tolist():
        kind = kind_of[int(job[s])]
        nodes = tuple(sorted(gpu_node[gpu_offset[s] : gpu_offset[s + 1]].tolist()))
        if len(nodes) != scaled.kinds[kind].gang or not (nodes[0] >= 0 and nodes[-1] < instance.cluster.node_count):
            pace[s] = np.nan
            continue
        if (kind, nodes) not in known:
            known[kind, nodes] = scaled.kinds[kind].seconds(nodes)
        pace[s] = known[kind, nodes]
