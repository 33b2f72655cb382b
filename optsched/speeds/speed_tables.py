"""Everything that decides how fast a job runs where, packed into a few arrays for compiled code.

A job runs at rate 1 (duration), at the speed of its stage profile on its placement (`optsched.speeds.stage_tables`), at the
speed of its GPU types (`optsched.speeds.type_speeds`, the readable form), or at that of its scaling profile, which is one of
two numbers (together, spread: rows as of a throughput table, alike for all types) or measured placement by placement
(`optsched.speeds.scaled_jobs`, the readable form). Compiled functions get arrays one by one, at several words each: two
arrays that hold all tables end to end are cheap to hand on, and `stages_of` takes them apart again where a profile is
looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.heap import KERNEL
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.job_speeds import PlacementPaces, StagePaces, TypePaces
from optsched.speeds.network import Network
from optsched.speeds.stage_tables import StageTables, profile_pace, tables

# ``ints`` begins with where each of these ends, in ``ints`` or in ``floats``, then the shape of the scratch room and T.
INTS = ("stage_first", "replicas", "edge_first", "tail", "head", "group_first", "group_node", "group_size", "scratch")
FLOATS = ("fastest", "factor", "compute", "ring", "inner", "pair", "intra", "cross", "scratch_seconds")
ROWS, COLUMNS, TYPES = (len(INTS) + len(FLOATS) + k for k in range(3))
HEADER = TYPES + 1
# Measured kinds stand behind the stages: in ``ints`` their number C, the width W of the table by nodes, where the ids of
# each begin [C + 1], the ids; in ``floats`` the seconds of the ids, then those by number of nodes [C, W].
MEASURED_INTS, MEASURED_FLOATS = len(INTS) - 1, len(INTS) + len(FLOATS) - 1
DIGITS = 18  # of a placement in an int64


class SpeedTables(NamedTuple):
    """n jobs, P pools of GPUs, K rows of the throughput table and of scalings by formula, T GPU types."""

    profile: Ints  # i64[n]: of a job that runs by stages, else -1
    row: Ints  # i64[n]: of a job that runs at the speed of its GPU types or formula; -2 - its measured kind; else -1
    pool_type: Ints  # i64[P]
    seconds: Floats  # f64[2 K T]: a unit of work of row k on type t together, then spread
    ints: Ints
    floats: Floats


def pack(
    stages: StageTables,
    row: Ints | None = None,
    pool_type: Ints | None = None,
    seconds: Floats | None = None,
    placements: Sequence[PlacementPaces] = (),
) -> SpeedTables:
    """The tables in few arrays. ``seconds`` f64[2, K, T], as `SpeedTables.seconds`; none where only stages count."""
    whole = [np.ravel(getattr(stages, name)) for name in INTS]
    real = [np.ravel(getattr(stages, name)) for name in FLOATS]
    ends = HEADER + np.cumsum([part.size for part in whole])
    types = 1 if seconds is None else seconds.shape[2]
    header = np.concatenate([ends, np.cumsum([part.size for part in real]), stages.scratch.shape, [types]])
    ids, by_id, by_nodes = _measured(placements)
    return SpeedTables(
        profile=stages.profile,
        row=np.full(stages.profile.size, -1, dtype=np.int64) if row is None else row,
        pool_type=np.zeros(stages.intra.size, dtype=np.int64) if pool_type is None else pool_type,
        seconds=np.zeros(0) if seconds is None else np.ravel(seconds),
        ints=np.concatenate([header, *whole, ids]).astype(np.int64),
        floats=np.concatenate([*real, by_id, by_nodes]).astype(np.float64),
    )


def _measured(placements: Sequence[PlacementPaces]) -> tuple[Ints, Floats, Floats]:
    # (C, W, where the ids of each begin, the ids), their seconds, seconds by number of nodes: see MEASURED_INTS
    by_nodes = [each for form in placements for each in form.by_nodes]
    if not by_nodes:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
    widest = max(map(len, by_nodes))
    listed = [sorted(each.items()) for form in placements for each in form.by_id]
    first = np.cumsum([0, *map(len, listed)])
    every = [pair for pairs in listed for pair in pairs]
    ids = np.array([len(by_nodes), widest, *first, *(key for key, _ in every)], dtype=np.int64)
    # the last number stands for more nodes than the gang can be on: never asked for
    filled = [[*each, *[np.inf] * (widest - len(each))] for each in by_nodes]
    return ids, np.array([seconds for _, seconds in every]), np.ravel(np.array(filled))


def speed_tables(instance: Instance, pool_node: Ints | None = None) -> SpeedTables:
    """The tables of an instance; ``pool_node`` i64[P]: the first node of every pool (default: a pool is a node).

    Raises `InputError` when a profile is missing, or the cluster does not state the bandwidths that it needs.
    """
    cluster = instance.cluster
    node_type = cluster.node_type.copy() if pool_node is None else cluster.node_type[pool_node]
    row, seconds = np.full(instance.n, -1, dtype=np.int64), np.zeros((2, 0, len(cluster.gpu_types)))
    placements: list[PlacementPaces] = []
    for speeds in instance.speeds:
        for form in speeds.compiled():
            jobs, own = speeds.jobs[form.row >= 0], form.row[form.row >= 0]
            if isinstance(form, TypePaces):
                row[jobs] = own + seconds.shape[1]
                seconds = np.concatenate([seconds, form.seconds], axis=1)
            elif isinstance(form, PlacementPaces):
                row[jobs] = -2 - own - sum(len(each.by_nodes) for each in placements)
                placements.append(form)
    return pack(stage_tables(instance), row, node_type, seconds, placements)


def stage_tables(instance: Instance, *, still: bool = False) -> StageTables:
    """The stage profiles of an instance; ``still``: with infinitely fast interfaces."""
    row, profiles = np.full(instance.n, -1, dtype=np.int64), list[Any]()
    for speeds in instance.speeds:
        for form in speeds.compiled() if speeds.is_ordered else ():
            if isinstance(form, StagePaces):
                row[speeds.jobs] = form.row + len(profiles)
                profiles += form.profiles
    if not profiles:
        return tables([], row, None)
    network = Network.of(instance.cluster)
    return tables(profiles, row, network.still if still else network)


@njit(**KERNEL)
def stages_of(t: SpeedTables) -> StageTables:
    """The tables of the stage profiles: views into the packed arrays, nothing is copied."""
    i, f = t.ints, t.floats
    rows, columns = i[ROWS], i[COLUMNS]
    return StageTables(
        t.profile,
        f[: i[9]],
        f[i[9] : i[10]],
        i[HEADER : i[0]],
        i[i[0] : i[1]],
        f[i[10] : i[11]],
        f[i[11] : i[12]],
        f[i[12] : i[13]],
        i[i[1] : i[2]],
        i[i[2] : i[3]],
        i[i[3] : i[4]],
        f[i[13] : i[14]],
        f[i[14] : i[15]],
        f[i[15] : i[16]],
        i[i[4] : i[5]],
        i[i[5] : i[6]],
        i[i[6] : i[7]],
        i[i[7] : i[8]].reshape((rows, columns)),
        f[i[16] : i[17]].reshape((rows, columns)),
    )


@njit(**KERNEL)
def type_pace(t: SpeedTables, row: int, gpus: int, pool: Any, count: Any) -> float:
    """Seconds a unit of work takes a gang of ``gpus`` on these entries: that of its slowest type, together or spread."""
    types = t.ints[TYPES]
    entries, left, apart = 0, gpus, False
    while left > 0:
        left -= count[entries]
        apart = apart or pool[entries] != pool[0]
        entries += 1
    at = row * types + (t.seconds.size // 2 if apart else 0)
    slowest = 0.0
    for k in range(entries):
        slowest = max(slowest, t.seconds[at + t.pool_type[pool[k]]])
    return slowest


@njit(**KERNEL)
def measured_pace(t: SpeedTables, kind: int, gpus: int, pool: Any, count: Any) -> float:
    """Seconds a unit of work takes a gang of a measured kind: of its placement, else by its number of nodes."""
    i, f = t.ints, t.floats
    at, real = i[MEASURED_INTS], i[MEASURED_FLOATS]
    kinds, widest = i[at], i[at + 1]
    entries, left = 0, gpus
    while left > 0:
        left -= count[entries]
        entries += 1
    code, nodes, exact, last, left = 0, 0, True, -1, gpus
    while left > 0:  # the counts of the nodes, in their order, as digits
        node, held = -1, 0
        for e in range(entries):
            if pool[e] > last and (node < 0 or pool[e] < node):
                node = pool[e]
        for e in range(entries):
            if pool[e] == node:
                held += count[e]
        nodes += 1
        exact = exact and nodes <= DIGITS and held <= 9
        if exact:
            code = 10 * code + held
        left -= held
        last = node
    if exact:
        top = 1
        for _ in range(nodes - 1):
            top *= 10
        best = code
        for _ in range(nodes - 1):
            code = (code % top) * 10 + code // top
            best = min(best, code)
        ids = at + 3 + kinds
        low, high = i[at + 2 + kind], i[at + 3 + kind]
        end = high
        while low < high:
            middle = (low + high) // 2
            if i[ids + middle] < best:
                low = middle + 1
            else:
                high = middle
        if low < end and i[ids + low] == best:
            return float(f[real + low])
    return float(f[real + i[at + 2 + kinds] + kind * widest + min(nodes, widest) - 1])


@njit(**KERNEL)
def pace(t: SpeedTables, job: int, gpus: int, pool: Any, count: Any) -> float:
    """Seconds a unit of work of ``job`` takes on these entries: 1 for a job with a duration."""
    if t.profile[job] >= 0:
        return profile_pace(stages_of(t), t.profile[job], pool, count)
    if t.row[job] >= 0:
        return type_pace(t, t.row[job], gpus, pool, count)
    if t.row[job] <= -2:
        return measured_pace(t, -2 - t.row[job], gpus, pool, count)
    return 1.0
