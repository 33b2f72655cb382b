"""The iteration time of a placement from the tables of its profile, compiled.

The terms are those of `optsched.speeds.stage_graph`, taken for the replicas of a stage on one node together, since they are
alike. A placement is a list of entries (node, GPUs) that hold the replicas in order, stage after stage: the first
k_0 GPUs hold stage 0, and so on.
"""

from __future__ import annotations

from typing import Any

from optsched.compiled import KERNEL, NESTED, njit
from optsched.speeds.speed_records import SpeedTables


@njit(**NESTED)
def _groups(t: SpeedTables, p: int, node: Any, count: Any) -> None:
    # Cut the entries at the borders of stages; entries of one stage and node that follow each other become one group.
    entry, left, groups = 0, count[0], 0
    base = t.profiles[p].stage
    for s in range(t.profiles[p + 1].stage - base):
        t.groups[s].first = groups
        need = t.stages[base + s].replicas
        while need > 0:
            if left == 0:
                entry += 1
                left = count[entry]
            taken = min(need, left)
            if groups > t.groups[s].first and t.groups[groups - 1].node == node[entry]:
                t.groups[groups - 1].size += taken
            else:
                t.groups[groups].node = node[entry]
                t.groups[groups].size = taken
                groups += 1
            need -= taken
            left -= taken
    t.groups[t.profiles[p + 1].stage - base].first = groups


@njit(**NESTED)
def _wait(t: SpeedTables, p: int, s: int, m: int) -> float:
    # comm_v of a replica of stage s on node m.
    total, here = 0.0, t.places[m]
    for e in range(t.profiles[p].edge, t.profiles[p + 1].edge):
        edge = t.edges[e]
        if edge.tail == s:
            other = edge.head
        elif edge.head == s:
            other = edge.tail
        else:
            continue
        for g in range(t.groups[other].first, t.groups[other + 1].first):
            n = t.groups[g].node
            bandwidth = here.intra if n == m else min(here.cross, t.places[n].cross)
            total += edge.pair * t.groups[g].size / bandwidth
    return total


@njit(**NESTED)
def _ring(t: SpeedTables, p: int, s: int) -> float:
    stage = t.stages[t.profiles[p].stage + s]
    if stage.replicas == 1:
        return 0.0
    first, last = t.groups[s].first, t.groups[s + 1].first
    one = t.groups[first].node
    slowest = t.places[one].cross
    crosses = False
    for g in range(first + 1, last):
        crosses = crosses or t.groups[g].node != one
        slowest = min(slowest, t.places[t.groups[g].node].cross)
    return float(stage.ring / (slowest if crosses else t.places[one].intra))


@njit(**KERNEL)  # methods in Python ask, too
def profile_pace(t: SpeedTables, p: int, node: Any, count: Any) -> float:
    """alpha of profile ``p`` on entries (``node``, ``count``) that hold its replicas in order. Seconds an iteration.

    Complexity O(edges x groups of a stage^2); equal, up to rounding, to `optsched.speeds.stage_graph.iteration_time`.
    """
    _groups(t, p, node, count)
    slowest, ring = 0.0, 0.0
    base = t.profiles[p].stage
    for s in range(t.profiles[p + 1].stage - base):
        ring = max(ring, _ring(t, p, s))
        for g in range(t.groups[s].first, t.groups[s + 1].first):
            slowest = max(slowest, t.stages[base + s].compute + _wait(t, p, s, t.groups[g].node))
    return float(t.profiles[p].factor * slowest + ring)
