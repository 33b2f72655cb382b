"""The speeds of an instance as tables, few arrays of records, and the time of a unit of work by them, compiled.

A job runs at rate 1, at that of a row (by GPU type, together or spread), at the speed known for its placement, or by
the stages of its profile: the forms of `optsched.problem.job_speeds`. Numba passes arrays to compiled functions one by
one, at several words each, so data that belongs together is one record. A placement is a list of entries (pool of
GPUs, GPUs of it). For a job with stages pools are nodes, and the entries hold its replicas in order: the first k_0
GPUs hold stage 0, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit, record
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.job_speeds import PlacementPaces, StagePaces, TypePaces
from optsched.problem.profile import Profile
from optsched.speeds.iteration_times import DIGITS
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import alpha_min, pair_bytes, pipeline_factor, ring_bytes

# The speed of a job: ``profile``, its stages, else -1; ``row`` of `SpeedTables.seconds`, else -1, or `BY_PLACEMENT` if
# `SpeedTables.known` has it from ``first`` up to ``last``.
JOB_SPEED = record(profile="int", row="int", first="int", last="int")
NO_ROW, BY_PLACEMENT = -1, -2

# A pool of GPUs: the type and, for a node, the bandwidths inside and of a GPU's part of the interface.
PLACE = record(type="int", intra="real", cross="real")

# Seconds of one placement: ``id`` > 0 its counts by node as digits, in the smallest of its rotations; -k all others on k
# nodes. The records of a job rise with the id.
KNOWN = record(id="int", seconds="real")

# A stage graph: ``fastest`` alpha_min, ``factor`` 1 + (S-1)/m, its first stage and edge. One more closes the list.
PROFILE = record(fastest="real", factor="real", stage="int", edge="int")
# ``compute`` seconds of a replica, ``ring`` V_s bytes, ``inner`` 4 h/k bytes: the tie of two replicas of a stage
STAGE = record(compute="real", ring="real", inner="real", replicas="int")
# Stages of the profile, from 0; ``pair`` w_uv bytes.
EDGE = record(tail="int", head="int", pair="real")
# Scratch for groups (replicas of one stage on one node) while a placement is timed; ``first`` is the first group of
# stage s, not of group s.
GROUP = record(first="int", node="int", size="int")


class SpeedTables(NamedTuple):
    """Speeds of n jobs on P pools of GPUs (nodes, if jobs have stages), with K rows and T GPU types."""

    jobs: Any  # JOB_SPEED[n]
    places: Any  # PLACE[P]
    seconds: Floats  # f64[2, K, T]: a unit of work of row k on type t together, then spread
    known: Any  # KNOWN[]
    profiles: Any  # PROFILE[Q + 1]
    stages: Any  # STAGE[]
    edges: Any  # EDGE[]
    groups: Any  # GROUP[]
    # scratch of placement rules: a row a stage and 24 more, as wide as nodes, or replicas and one
    scratch: Ints
    scratch_seconds: Floats


def speed_tables(instance: Instance, pool_node: Ints | None = None) -> SpeedTables:
    """Return the tables of an instance.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    pool_node
        First node of every pool, i64[P]; default: a pool is a node.

    Raises
    ------
    InputError
        A profile is missing, or the cluster does not state the bandwidths that it needs.
    """
    tables = stage_tables(instance)
    seconds, records = [np.zeros((2, 0, len(instance.cluster.gpu_types)))], list[tuple[int, float]]()
    for speeds in instance.speeds:
        for form in speeds.compiled():
            jobs, row = speeds.jobs[form.row >= 0], form.row[form.row >= 0]
            if isinstance(form, TypePaces):
                tables.jobs["row"][jobs] = row + sum(block.shape[1] for block in seconds)
                seconds.append(form.seconds)
            elif isinstance(form, PlacementPaces):
                listed = [
                    sorted([*by_id.items(), *((-k - 1, seconds) for k, seconds in enumerate(by_nodes))])
                    for by_id, by_nodes in zip(form.by_id, form.by_nodes, strict=True)
                ]
                ends = len(records) + np.cumsum([0, *map(len, listed)])
                tables.jobs["row"][jobs] = BY_PLACEMENT
                tables.jobs["first"][jobs], tables.jobs["last"][jobs] = ends[row], ends[row + 1]
                records += [pair for pairs in listed for pair in pairs]
    node_type = instance.cluster.node_type if pool_node is None else instance.cluster.node_type[pool_node]
    places = tables.places if tables.places.size == node_type.size else np.zeros(node_type.size, dtype=PLACE)
    places["type"] = node_type
    return tables._replace(places=places, seconds=np.concatenate(seconds, axis=1), known=np.array(records, dtype=KNOWN))


def stage_tables(instance: Instance, *, compute_time: bool = False) -> SpeedTables:
    """Return the tables of the jobs with stages only.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    compute_time
        Assume infinitely fast interfaces.
    """
    row, profiles = np.full(instance.n, -1, dtype=np.int64), list[Profile]()
    for speeds in instance.speeds:
        for form in speeds.compiled() if speeds.is_ordered else ():
            if isinstance(form, StagePaces):
                row[speeds.jobs] = form.row + len(profiles)
                profiles += form.profiles
    if not profiles:
        return tables_of([], row, None)
    network = Network.of(instance.cluster)
    return tables_of(profiles, row, network.compute_time if compute_time else network)


def tables_of(profiles: Sequence[Profile], of_job: Ints, network: Network | None) -> SpeedTables:
    """Return the tables of some profiles on a network.

    Parameters
    ----------
    profiles
        Stage profiles.
    of_job
        Profile of each job, i64[n]; -1: none.
    network
        Bandwidths; None if there are no profiles.
    """
    nodes = 0 if network is None else int(network.gpus.size)
    widest = max((profile.gpus for profile in profiles), default=0)
    deepest = max((len(profile.stages) for profile in profiles), default=0)
    shape = (deepest + 24, max(nodes, widest + 1)) if profiles else (1, 1)
    jobs, places = np.zeros(of_job.size, dtype=JOB_SPEED), np.zeros(nodes, dtype=PLACE)
    jobs["profile"], jobs["row"] = of_job, NO_ROW
    rows, stages, edges = (list[tuple[float, ...]]() for _ in range(3))
    if network is not None:
        places["intra"], places["cross"] = network.intra, network.cross
        for profile in profiles:
            factor = pipeline_factor(profile.depth, profile.micro_batches)
            rows.append((alpha_min(profile, network), factor, len(stages), len(edges)))
            replicas = [stage.replicas for stage in profile.stages]
            for stage, k in zip(profile.stages, replicas, strict=True):
                stages.append((stage.compute, ring_bytes(stage.parameters, k), 4.0 * stage.parameters / k, k))
            edges += [(s, u, pair_bytes(a, replicas[s], replicas[u])) for s, u, a in profile.edges]
    rows.append((0.0, 0.0, len(stages), len(edges)))  # closes the list
    return SpeedTables(
        jobs=jobs,
        places=places,
        seconds=np.zeros((2, 0, 1)),
        known=np.zeros(0, dtype=KNOWN),
        profiles=np.array(rows, dtype=PROFILE),
        stages=np.array(stages, dtype=STAGE),
        edges=np.array(edges, dtype=EDGE),
        groups=np.zeros(max(deepest + 1, widest), dtype=GROUP),
        scratch=np.zeros(shape, dtype=np.int64),
        scratch_seconds=np.zeros(shape),
    )


@njit(**NESTED)
def type_pace(t: SpeedTables, row: int, gpus: int, pool: Any, count: Any) -> float:
    """Return the seconds that a unit of work takes a gang: those of its slowest type, together or spread.

    Parameters
    ----------
    t
        Tables of speeds.
    row
        Row of the job.
    gpus
        GPUs of the gang.
    pool, count
        Entries of the placement: pool and GPUs.
    """
    entries, left, apart = 0, gpus, False
    while left > 0:
        left -= count[entries]
        apart = apart or pool[entries] != pool[0]
        entries += 1
    slowest = 0.0
    for k in range(entries):
        slowest = max(slowest, t.seconds[1 if apart else 0, row, t.places[pool[k]].type])
    return slowest


@njit(**NESTED)
def placement_pace(t: SpeedTables, job: int, gpus: int, pool: Any, count: Any) -> float:
    """Return the seconds that a unit of work takes on a placement: as known for it, otherwise for its number of nodes.

    Parameters
    ----------
    t
        Tables of speeds.
    job
        Number of the job.
    gpus
        GPUs of the gang.
    pool, count
        Entries of the placement: pool and GPUs.
    """
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
        at = _find(t, job, best)
        if at >= 0:
            return float(t.known[at].seconds)
    at = _find(t, job, -nodes)
    return float(t.known[at].seconds) if at >= 0 else np.inf


@njit(**NESTED)
def _find(t: SpeedTables, job: int, key: int) -> int:
    # position of the record of the job with this id; -1: none
    low, high = t.jobs[job].first, t.jobs[job].last
    end = high
    while low < high:
        middle = (low + high) // 2
        if t.known[middle].id < key:
            low = middle + 1
        else:
            high = middle
    return low if low < end and t.known[low].id == key else -1


# --- the iteration time of a stage profile: the terms of `optsched.speeds.stage_graph`, for alike replicas together -----


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
    total, place = 0.0, t.places[m]
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
            bandwidth = place.intra if n == m else min(place.cross, t.places[n].cross)
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


@njit(**KERNEL)  # also called from Python
def profile_pace(t: SpeedTables, p: int, node: Any, count: Any) -> float:
    """Return alpha of a stage profile, in seconds an iteration.

    Complexity O(edges x groups of a stage^2); equal, up to rounding, to `optsched.speeds.stage_graph.iteration_time`.

    Parameters
    ----------
    t
        Tables of speeds.
    p
        Number of the profile.
    node, count
        Entries of the placement: node and GPUs, which hold the replicas in order.
    """
    _groups(t, p, node, count)
    slowest, ring = 0.0, 0.0
    base = t.profiles[p].stage
    for s in range(t.profiles[p + 1].stage - base):
        ring = max(ring, _ring(t, p, s))
        for g in range(t.groups[s].first, t.groups[s + 1].first):
            slowest = max(slowest, t.stages[base + s].compute + _wait(t, p, s, t.groups[g].node))
    return float(t.profiles[p].factor * slowest + ring)


# --- of any job --------------------------------------------------------------------------------------------------------


@njit(**KERNEL)
def pace(t: SpeedTables, job: int, gpus: int, pool: Any, count: Any) -> float:
    """Return the seconds that a unit of work of a job takes on a placement; 1 for a job with a duration.

    Parameters
    ----------
    t
        Tables of speeds.
    job
        Number of the job.
    gpus
        GPUs of the gang.
    pool, count
        Entries of the placement: pool and GPUs.
    """
    speed = t.jobs[job]
    if speed.profile >= 0:
        return float(profile_pace(t, speed.profile, pool, count))
    if speed.row >= 0:
        return float(type_pace(t, speed.row, gpus, pool, count))
    return float(placement_pace(t, job, gpus, pool, count)) if speed.row == BY_PLACEMENT else 1.0


@njit(**NESTED)
def is_timed(t: SpeedTables, job: int) -> bool:
    """Return True if a unit of work of a job takes a second anywhere.

    Parameters
    ----------
    t
        Tables of speeds.
    job
        Number of the job.
    """
    return bool(t.jobs[job].profile < 0 and t.jobs[job].row == NO_ROW)
