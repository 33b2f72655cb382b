"""The speeds of an instance as tables (`optsched.speeds.speed_records`), and what a unit of work takes by them, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optsched.compiled import KERNEL, NESTED, njit
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance
from optsched.problem.job_speeds import PlacementPaces, StagePaces, TypePaces
from optsched.problem.profile import Profile
from optsched.speeds.network import Network
from optsched.speeds.speed_records import (
    BY_PLACEMENT,
    EDGE,
    GROUP,
    JOB_SPEED,
    KNOWN,
    NO_ROW,
    PLACE,
    PROFILE,
    STAGE,
    SpeedTables,
    scratch_shape,
)
from optsched.speeds.stage_graph import alpha_min, pair_bytes, pipeline_factor, ring_bytes
from optsched.speeds.stage_pace import profile_pace

DIGITS = 18  # of a placement in an int64


def speed_tables(instance: Instance, pool_node: Ints | None = None) -> SpeedTables:
    """The tables of an instance; ``pool_node`` i64[P]: the first node of every pool (default: a pool is a node).

    Raises `InputError` when a profile is missing, or the cluster does not state the bandwidths that it needs.
    """
    tables = stage_tables(instance)
    seconds, known = [np.zeros((2, 0, len(instance.cluster.gpu_types)))], list[tuple[int, float]]()
    for speeds in instance.speeds:
        for form in speeds.compiled():
            jobs, row = speeds.jobs[form.row >= 0], form.row[form.row >= 0]
            if isinstance(form, TypePaces):
                tables.jobs["row"][jobs] = row + sum(each.shape[1] for each in seconds)
                seconds.append(form.seconds)
            elif isinstance(form, PlacementPaces):
                listed = [
                    sorted([*by_id.items(), *((-k - 1, seconds) for k, seconds in enumerate(by_nodes))])
                    for by_id, by_nodes in zip(form.by_id, form.by_nodes, strict=True)
                ]
                ends = len(known) + np.cumsum([0, *map(len, listed)])
                tables.jobs["row"][jobs] = BY_PLACEMENT
                tables.jobs["first"][jobs], tables.jobs["last"][jobs] = ends[row], ends[row + 1]
                known += [pair for pairs in listed for pair in pairs]
    node_type = instance.cluster.node_type if pool_node is None else instance.cluster.node_type[pool_node]
    places = tables.places if tables.places.size == node_type.size else np.zeros(node_type.size, dtype=PLACE)
    places["type"] = node_type
    return tables._replace(places=places, seconds=np.concatenate(seconds, axis=1), known=np.array(known, dtype=KNOWN))


def stage_tables(instance: Instance, *, compute_time: bool = False) -> SpeedTables:
    """What they say of jobs with stages alone; ``compute_time``: with infinitely fast interfaces."""
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
    """The tables of ``profiles`` on a network (None where there are none); ``of_job`` i64[n]: of each job, -1 for none."""
    nodes = 0 if network is None else int(network.gpus.size)
    widest = max((profile.gpus for profile in profiles), default=0)
    deepest = max((len(profile.stages) for profile in profiles), default=0)
    shape = scratch_shape(deepest, nodes, widest) if profiles else (1, 1)
    jobs, places = np.zeros(of_job.size, dtype=JOB_SPEED), np.zeros(nodes, dtype=PLACE)
    jobs["profile"], jobs["row"] = of_job, NO_ROW
    profile, stage, edge = _records(profiles, network) if network is not None else ([(0.0, 0.0, 0, 0)], [], [])
    if network is not None:
        places["intra"], places["cross"] = network.intra, network.cross
    return SpeedTables(
        jobs=jobs,
        places=places,
        seconds=np.zeros((2, 0, 1)),
        known=np.zeros(0, dtype=KNOWN),
        profiles=np.array(profile, dtype=PROFILE),
        stages=np.array(stage, dtype=STAGE),
        edges=np.array(edge, dtype=EDGE),
        groups=np.zeros(max(deepest + 1, widest), dtype=GROUP),
        scratch=np.zeros(shape, dtype=np.int64),
        scratch_seconds=np.zeros(shape),
    )


Rows = list[tuple[float, ...]]


def _records(profiles: Sequence[Profile], network: Network) -> tuple[Rows, Rows, Rows]:
    # PROFILE, one more than there are, STAGE, EDGE
    rows, stages, edges = Rows(), Rows(), Rows()
    for profile in profiles:
        factor = pipeline_factor(profile.depth, profile.micro_batches)
        rows.append((alpha_min(profile, network), factor, len(stages), len(edges)))
        for each in profile.stages:
            inner = 4.0 * each.parameters / each.replicas
            stages.append((each.compute, ring_bytes(each.parameters, each.replicas), inner, each.replicas))
        replicas = [each.replicas for each in profile.stages]
        edges += [(s, u, pair_bytes(a, replicas[s], replicas[u])) for s, u, a in profile.edges]
    return [*rows, (0.0, 0.0, len(stages), len(edges))], stages, edges


@njit(**NESTED)
def type_pace(t: SpeedTables, row: int, gpus: int, pool: Any, count: Any) -> float:
    """Seconds a unit of work takes a gang of ``gpus`` on these entries: that of its slowest type, together or spread."""
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
    """Seconds a unit of work takes ``job`` where its placement decides: those known for it, else for its number of nodes."""
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
    # where the record of the job with this id is; -1: nowhere
    low, high = t.jobs[job].first, t.jobs[job].last
    end = high
    while low < high:
        middle = (low + high) // 2
        if t.known[middle].id < key:
            low = middle + 1
        else:
            high = middle
    return low if low < end and t.known[low].id == key else -1


@njit(**KERNEL)
def pace(t: SpeedTables, job: int, gpus: int, pool: Any, count: Any) -> float:
    """Seconds a unit of work of ``job`` takes on these entries: 1 for a job with a duration."""
    own = t.jobs[job]
    if own.profile >= 0:
        return float(profile_pace(t, own.profile, pool, count))
    if own.row >= 0:
        return float(type_pace(t, own.row, gpus, pool, count))
    return float(placement_pace(t, job, gpus, pool, count)) if own.row == BY_PLACEMENT else 1.0


@njit(**NESTED)
def is_timed(t: SpeedTables, job: int) -> bool:
    """Does a unit of work of ``job`` take a second anywhere?"""
    return bool(t.jobs[job].profile < 0 and t.jobs[job].row == NO_ROW)
