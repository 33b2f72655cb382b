"""The profiles of an instance as arrays, and the iteration time of a placement from them, compiled.

The terms are those of `optsched.speeds.stage_graph`, taken for the replicas of a stage on one node together, since they are
alike. A placement is a list of entries (node, GPUs) that hold the replicas in order, stage after stage: the first
k_0 GPUs hold stage 0, and so on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.heap import KERNEL
from optsched.problem.arrays import Floats, Ints
from optsched.problem.profile import Profile
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import alpha_min, pair_bytes, pipeline_factor, ring_bytes


class StageTables(NamedTuple):
    """n jobs, P profiles, S stages and E edges of all profiles, N nodes; seconds and bytes."""

    profile: Ints  # of job j, -1 where it has none
    fastest: Floats  # alpha_min of a profile, f64[P]
    factor: Floats  # 1 + (S-1)/m
    stage_first: Ints  # i64[P + 1]
    replicas: Ints
    compute: Floats
    ring: Floats  # V_s
    inner: Floats  # 4 h/k: the tie of two replicas of a stage
    edge_first: Ints  # i64[P + 1]
    tail: Ints  # stage of the profile, from 0
    head: Ints
    pair: Floats  # w_uv
    intra: Floats
    cross: Floats
    # where groups (replicas of one stage on one node) are written while a placement is timed
    group_first: Ints
    group_node: Ints
    group_size: Ints
    # room for placement rules: `room(...)` says how much
    scratch: Ints
    scratch_seconds: Floats


def room(stages: int, nodes: int, replicas: int) -> tuple[int, int]:
    """Shape of the scratch arrays for profiles of at most so many stages and replicas on so many nodes."""
    return stages + 24, max(nodes, replicas + 1)


def tables(profiles: list[Profile], of_job: Ints, network: Network | None) -> StageTables:
    """The tables of ``profiles``; ``of_job`` i64[n] says which of them a job has, -1 for none.

    ``network`` may be None where there are no profiles.
    """
    stages = [stage for profile in profiles for stage in profile.stages]
    edges = [(profile, edge) for profile in profiles for edge in profile.edges]
    nodes = 0 if network is None else int(network.gpus.size)
    widest = max((profile.gpus for profile in profiles), default=0)
    deepest = max((len(profile.stages) for profile in profiles), default=0)
    shape = room(deepest, nodes, widest) if profiles else (1, 1)
    return StageTables(
        profile=np.ascontiguousarray(of_job, dtype=np.int64),
        fastest=_floats(alpha_min(profile, network) for profile in profiles if network),
        factor=_floats(pipeline_factor(profile.depth, profile.micro_batches) for profile in profiles),
        stage_first=_firsts(len(profile.stages) for profile in profiles),
        replicas=np.array([stage.replicas for stage in stages], dtype=np.int64),
        compute=_floats(stage.compute for stage in stages),
        ring=_floats(ring_bytes(stage.parameters, stage.replicas) for stage in stages),
        inner=_floats(4.0 * stage.parameters / stage.replicas for stage in stages),
        edge_first=_firsts(len(profile.edges) for profile in profiles),
        tail=np.array([edge[0] for _, edge in edges], dtype=np.int64),
        head=np.array([edge[1] for _, edge in edges], dtype=np.int64),
        pair=_floats(
            pair_bytes(edge[2], profile.stages[edge[0]].replicas, profile.stages[edge[1]].replicas)
            for profile, edge in edges
        ),
        intra=np.zeros(0) if network is None else np.ascontiguousarray(network.intra),
        cross=np.zeros(0) if network is None else np.ascontiguousarray(network.cross),
        group_first=np.zeros(deepest + 1, dtype=np.int64),
        group_node=np.zeros(widest, dtype=np.int64),
        group_size=np.zeros(widest, dtype=np.int64),
        scratch=np.zeros(shape, dtype=np.int64),
        scratch_seconds=np.zeros(shape),
    )


def _floats(values: Any) -> Floats:
    return np.array(list(values), dtype=np.float64)


def _firsts(counts: Any) -> Ints:
    return np.concatenate([[0], np.cumsum(list(counts))]).astype(np.int64)


@njit(**KERNEL)
def _groups(t: StageTables, p: int, node: Any, count: Any) -> None:
    # Cut the entries at the borders of stages; entries of one stage and node that follow each other become one group.
    entry, left, groups = 0, count[0], 0
    for s in range(t.stage_first[p + 1] - t.stage_first[p]):
        t.group_first[s] = groups
        need = t.replicas[t.stage_first[p] + s]
        while need > 0:
            if left == 0:
                entry += 1
                left = count[entry]
            taken = min(need, left)
            if groups > t.group_first[s] and t.group_node[groups - 1] == node[entry]:
                t.group_size[groups - 1] += taken
            else:
                t.group_node[groups] = node[entry]
                t.group_size[groups] = taken
                groups += 1
            need -= taken
            left -= taken
    t.group_first[t.stage_first[p + 1] - t.stage_first[p]] = groups


@njit(**KERNEL)
def _wait(t: StageTables, p: int, s: int, m: int) -> float:
    # comm_v of a replica of stage s on node m.
    total = 0.0
    for e in range(t.edge_first[p], t.edge_first[p + 1]):
        if t.tail[e] == s:
            other = t.head[e]
        elif t.head[e] == s:
            other = t.tail[e]
        else:
            continue
        for g in range(t.group_first[other], t.group_first[other + 1]):
            n = t.group_node[g]
            bandwidth = t.intra[m] if n == m else min(t.cross[m], t.cross[n])
            total += t.pair[e] * t.group_size[g] / bandwidth
    return total


@njit(**KERNEL)
def _ring(t: StageTables, p: int, s: int) -> float:
    stage = t.stage_first[p] + s
    if t.replicas[stage] == 1:
        return 0.0
    first, last = t.group_first[s], t.group_first[s + 1]
    slowest = t.cross[t.group_node[first]]
    crosses = False
    for g in range(first + 1, last):
        crosses = crosses or t.group_node[g] != t.group_node[first]
        slowest = min(slowest, t.cross[t.group_node[g]])
    return float(t.ring[stage] / (slowest if crosses else t.intra[t.group_node[first]]))


@njit(**KERNEL)
def profile_pace(t: StageTables, p: int, node: Any, count: Any) -> float:
    """alpha of profile ``p`` on entries (``node``, ``count``) that hold its replicas in order. Seconds an iteration.

    Complexity O(edges x groups of a stage^2); equal, up to rounding, to `optsched.speeds.stage_graph.iteration_time`.
    """
    _groups(t, p, node, count)
    slowest, ring = 0.0, 0.0
    for s in range(t.stage_first[p + 1] - t.stage_first[p]):
        ring = max(ring, _ring(t, p, s))
        for g in range(t.group_first[s], t.group_first[s + 1]):
            slowest = max(slowest, t.compute[t.stage_first[p] + s] + _wait(t, p, s, t.group_node[g]))
    return t.factor[p] * slowest + ring
