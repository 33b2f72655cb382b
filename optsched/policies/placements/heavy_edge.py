"""``heavy-edge``: replicas that exchange much data share a server, so that little goes between servers.

A greedy rule and its improvements. A job's replicas are the vertices of a graph whose edges weigh the
bytes of an iteration; servers are chosen best fit first, filled along the heaviest edges (both in `greedy_mapping`) and
perhaps improved (`local_search_mapping`).

**Guarantee**: none known, and none with a constant: on 3+3+1 replicas and 4+4 free GPUs the plain greedy is 7.6 times as
slow as the best mapping (`optsched.models.gpu_mapping`), and every variant 6.3 times on 3+3 replicas and 2, 3, 4 free GPUs.
Always alpha_min <= alpha <= alpha_max.
**Reference**: Luo, Liu, Lee, Shroff, Prediction-assisted online distributed deep learning workload scheduling in GPU
clusters, INFOCOM 2025 (the idea); the steps are this project's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import KERNEL, NESTED
from optsched.errors import InputError
from optsched.policies.placements import PLACEMENTS
from optsched.policies.placements.greedy_mapping import (
    choose_servers,
    fill_from_every_seed,
    set_servers,
)
from optsched.policies.placements.local_search_mapping import descend
from optsched.policies.placements.mapping import (
    Mapping,
    new_mapping,
    write_entries,
)
from optsched.problem.arrays import Ints
from optsched.problem.profile import Profile
from optsched.registry import near_matches
from optsched.simulation.placing import SIGNATURE, Placement
from optsched.speeds.network import Network
from optsched.speeds.speed_tables import tables_of
from optsched.speeds.stage_graph import iteration_time

SMALL = 32  # replicas of the largest job that `auto` takes trouble over
# The settings of a variant follow the state of the random numbers, u64[1 + 3].
SEEDS, SEARCH, GREATEST = 1, 2, 3


# Not `compiled`: a caller with reference counts would release the arrays that `new_mapping` hands out.
@njit(SIGNATURE, **KERNEL)
def _greedily(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    servers = choose_servers(gpus, free, eligible, out_node, out_count)
    if servers == 0 or tables.jobs[job].profile < 0:
        return servers
    x = new_mapping(tables, job, free, eligible)
    _fill_and_improve(x, servers, gpus, random, out_node, out_count)
    return write_entries(x, out_node, out_count)


@njit(**NESTED)
def _fill_and_improve(x: Mapping, servers: int, gpus: int, random: Any, node: Any, share: Any) -> None:
    small = gpus <= np.int64(random[GREATEST])
    set_servers(x, servers, node, share)
    fill_from_every_seed(x, servers, x.stages if random[SEEDS] > 0 and small else 0)
    if random[SEARCH] > 0 and small:
        descend(x)


@dataclass(frozen=True)
class Variant:
    """How a mapping is sought: by the greedy (from every seed?), then (?) by local ``search``.

    Seeds and local search for jobs of at most ``greatest`` replicas.
    """

    seeds: bool = False
    search: bool = False
    greatest: int = 2**31


VARIANTS = {
    "auto": Variant(seeds=True, search=True, greatest=SMALL),
    "plain": Variant(),
    "multi-seed": Variant(seeds=True),
    "local-search": Variant(search=True),
}


@dataclass(frozen=True)
class HeavyEdge(Placement):
    """The rule in one of its variants."""

    variant: Variant = VARIANTS["auto"]

    def random_state(self) -> Any:
        """The state of the random numbers and the settings of the variant, u64[4]."""
        v = self.variant
        return np.concatenate([super().random_state(), np.array([v.seeds, v.search, v.greatest], dtype=np.uint64)])


@PLACEMENTS.register("heavy-edge")
def heavy_edge(variant: str = "auto") -> Placement:
    """A gang starts whenever enough eligible GPUs are free; its replicas go where little data crosses servers.

    ``variant``: ``plain`` greedy; ``multi-seed`` the best of the greedy's runs from every stage and without;
    ``local-search`` plain, then moves of a replica and swaps of two while alpha falls; ``auto`` both up to 32 replicas, else
    plain.
    Jobs without a profile: the choice of servers only. Complexity, S stages, E edges, K servers taken of N, C with free
    GPUs: plain O(N K + g (S + E) + S C); multi-seed S times as much; a pass of the local search O(g C + g^2) alphas.
    """
    if variant not in VARIANTS:
        legal = near_matches(variant, list(VARIANTS), kind="variant")
        raise InputError("there is no such variant", field="heavy-edge: variant", value=variant, legal=legal)
    return HeavyEdge("heavy-edge", _greedily, any_free=True, variant=VARIANTS[variant])


def map_job(
    profile: Profile, network: Network, free: Sequence[int] | Ints, variant: str = "auto"
) -> tuple[Ints, float]:
    """Where ``heavy-edge`` puts one job: the node of every replica, i64[g] stage after stage, and alpha in seconds.

    ``free`` i64[N]: free GPUs a node. Raises `InputError` for an unknown variant, and when fewer than g GPUs are free.

    >>> import optsched as osd
    >>> profile = osd.zoo_profile("vgg19", gpus=4, parallelism="pipeline")
    >>> network = osd.Network.of(osd.load("ddl-04-1").cluster)
    >>> nodes, seconds = osd.map_job(profile, network, free=[4, 4])
    >>> nodes.tolist()
    [0, 0, 0, 0]
    """
    rule = heavy_edge(variant)
    offered = np.array(free, dtype=np.int64)  # a copy: the rule's type is that of an array that may be written
    # `InputError` unless ``free`` names a number of GPUs >= 0 for every node and offers enough for the job.
    if offered.shape != network.gpus.shape or (offered < 0).any():
        legal = f"a number of GPUs >= 0 for each of {network.gpus.size} nodes"
        raise InputError("invalid", field="free", value=offered.tolist(), legal=legal)
    if int(offered.sum()) < profile.gpus:
        legal = f"at least {profile.gpus} free GPUs, one for each replica"
        raise InputError("too few free GPUs", field="free", value=offered.tolist(), legal=legal)
    gang = profile.gpus
    out = np.zeros((2, gang), dtype=np.int64)
    t = tables_of([profile], np.zeros(1, dtype=np.int64), network)
    eligible, size = np.ones(offered.size, dtype=np.bool_), np.maximum(network.gpus, offered)
    entries = rule.place(0, gang, offered, size, eligible, rule.random_state(), t, out[0], out[1])
    nodes = np.repeat(out[0, :entries], out[1, :entries])
    return nodes, iteration_time(profile, network, nodes.tolist())
