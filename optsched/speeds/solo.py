"""The solo time of a job: how long it takes alone on this cluster, on the best placement that there is.

`optsched.speeds.duration.seconds_alone` is what bounds may count on: no placement is faster, but none need be as fast. Here
every time is that of a placement. Durations: themselves. Tables: the best of one node, and of several with the rate of the
slowest type used. Scaling profiles: the fastest split of the gang. Tasks: one node where one holds the gang, else an
all-reduce an iteration. Stage profiles: every mapping of replicas to nodes but those that are certainly no better
(`best_pace`); where these are too many, the bound stands in for the time, and `SoloTimes.exact` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from optsched.problem.arrays import Bools, Floats
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces, seconds_alone
from optsched.speeds.network import Network
from optsched.speeds.scaled_jobs import scaled_jobs
from optsched.speeds.solo_mapping import Node, best_pace
from optsched.speeds.type_speeds import TypeSpeeds, type_speeds


@dataclass(frozen=True, eq=False)
class SoloTimes:
    """``seconds`` f64[n] alone; where ``exact`` bool[n] is false, no placement is faster and perhaps none as fast."""

    seconds: Floats
    exact: Bools


def solo_times(instance: Instance) -> SoloTimes:
    """The solo times of all jobs, for their own gangs.

    Complexity O(n), O(T log T) for each class of jobs at table rates, and a search of at most `solo_mapping.TRIED` mappings
    for each different (profile, nodes it may use), which is remembered between calls. `InputError` as `seconds_alone`.
    """
    seconds, exact = np.array(seconds_alone(instance), dtype=np.float64), np.ones(instance.n, dtype=np.bool_)
    if instance.tabled.any():
        _at_table(instance, seconds)
    if instance.scaled.any():
        _at_scaling(instance, seconds, exact)
    if instance.staged.any():
        _at_stages(instance, seconds, exact)
    return SoloTimes(seconds, exact)


def _at_table(instance: Instance, seconds: Floats) -> None:
    speeds = type_speeds(instance)
    names, known = instance.table["profile"].to_list(), dict[tuple[str, int], float]()
    for j in np.flatnonzero(instance.tabled).tolist():
        key = names[j], int(instance.job_class[j])
        if key not in known:
            known[key] = _best_rate(speeds, j, instance.eligible(j))
        seconds[j] = instance.work[j] / known[key]


def _best_rate(speeds: TypeSpeeds, job: int, eligible: Bools) -> float:
    """The best rate of a gang: on a node that holds it, or over several whose slowest type is as fast as can be."""
    gang, node_type = int(speeds.gang[job]), speeds.node_type
    nodes = np.flatnonzero(eligible)
    whole = nodes[speeds.node_gpus[nodes] >= gang]
    best = float(speeds.together[job, node_type[whole]].max(initial=0.0))
    table = speeds.together if speeds.one_gpu_nodes else speeds.spread
    rate = table[job, node_type[nodes]]
    order = np.argsort(-rate, kind="stable")
    room = np.cumsum(speeds.node_gpus[nodes[order]])
    enough = (room >= gang) & (np.arange(1, nodes.size + 1) >= 2)  # the fastest nodes that hold it, two at least
    if gang > 1 and enough.any():
        best = max(best, float(rate[order[int(np.argmax(enough))]]))
    return best


def _at_scaling(instance: Instance, seconds: Floats, exact: Bools) -> None:
    scaled = scaled_jobs(instance)
    sizes, known = instance.cluster.node_gpus, dict[tuple[int, int], bool]()
    for j, k in zip(scaled.jobs.tolist(), scaled.kind.tolist(), strict=True):
        key = k, int(instance.job_class[j])
        if key not in known:
            known[key] = scaled.kinds[k].is_looked_through(sizes[instance.eligible(j)].tolist())
        exact[j] = known[key]  # the seconds are the least of what was looked at


def _at_stages(instance: Instance, seconds: Floats, exact: Bools) -> None:
    network, used = Network.of(instance.cluster), instance.profiles_used()
    fastest, names = paces(instance)[0], instance.table["profile"].to_list()
    nodes: dict[int, tuple[tuple[Node, int], ...]] = {}
    for j in np.flatnonzero(instance.staged).tolist():
        kind = int(instance.job_class[j])
        if kind not in nodes:
            nodes[kind] = _alike(network, np.flatnonzero(instance.eligible(j)))
        pace = _remembered(used[names[j]], nodes[kind], float(fastest[j]))
        exact[j] = pace is not None
        if pace is not None:
            seconds[j] = instance.work[j] * pace


_remembered = lru_cache(maxsize=4096)(best_pace)


def _alike(network: Network, nodes: npt.NDArray[np.int64]) -> tuple[tuple[Node, int], ...]:
    # What a mapping can see of nodes, and how many look so; the fastest and largest first.
    rows = np.column_stack([-network.intra[nodes], -network.cross[nodes], -network.gpus[nodes]])
    kinds, count = np.unique(rows, axis=0, return_counts=True)
    return tuple((Node(-a, -b, int(-c)), n) for (a, b, c), n in zip(kinds.tolist(), count.tolist(), strict=True))
