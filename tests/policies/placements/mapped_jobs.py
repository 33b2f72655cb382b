"""Jobs to map: strategies, random jobs, traps for the greedy rule, and that rule written down replica by replica."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from speeds.random_profiles import replica_graph

from optsched.problem.profile import Profile, Stage
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import iteration_time

GB = 1e9
UNIT = 144  # bytes: weights of jobs whose stages have at most 4 replicas are then integers, and ties are exact


@dataclass(frozen=True)
class Case:
    """A job, the servers' bandwidths and their free GPUs."""

    profile: Profile
    network: Network
    free: tuple[int, ...]

    def alpha(self, nodes: Sequence[int]) -> float:
        """Seconds of an iteration with replica q on ``nodes[q]``."""
        return iteration_time(self.profile, self.network, [int(node) for node in nodes])

    def legal(self, nodes: Sequence[int]) -> bool:
        """Is every replica on a free GPU?"""
        used = np.bincount(np.asarray(nodes, dtype=np.int64), minlength=len(self.free))
        return len(nodes) == self.profile.gpus and bool((used <= np.array(self.free)).all())

    def counts(self, nodes: Sequence[int]) -> list[tuple[int, ...]]:
        """Sorted servers of every stage: what a mapping is, replicas of a stage being alike."""
        borders = np.cumsum([0] + [stage.replicas for stage in self.profile.stages])
        return [tuple(sorted(int(n) for n in nodes[a:b])) for a, b in itertools.pairwise(borders)]


def alike(free: Sequence[int]) -> Network:
    """Servers of one kind: 25 GB/s inside, 1.25 GB/s a GPU between."""
    n = len(free)
    return Network(np.maximum(np.array(free), 1), np.full(n, 25 * GB), np.full(n, 1.25 * GB))


@st.composite
def cases(draw: st.DrawFn, replicas: int = 12, servers: int = 5, mixed: bool = False) -> Case:
    """Small graphs with few different weights, so that ties are common; ``mixed``: servers of different speeds."""
    stages = [
        Stage(k, draw(st.sampled_from([1.0, 2.0])), 1.0, float(UNIT * draw(st.integers(0, 3))))
        for k in draw(st.lists(st.integers(1, 4), min_size=1, max_size=5).filter(lambda ks: sum(ks) <= replicas))
    ]
    pairs = list(itertools.combinations(range(len(stages)), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6)) if pairs else []
    turned = [draw(st.booleans()) and (s, u) in chosen for s, u in chosen]
    acyclic = all(not turn for turn in turned) or len(chosen) == 1  # edges in ascending order have no cycle
    edges = [
        ((u, s) if turn and acyclic else (s, u)) + (float(UNIT * draw(st.integers(0, 3))),)
        for (s, u), turn in zip(chosen, turned, strict=True)
    ]
    profile = Profile.of_stages(stages, edges, draw(st.sampled_from([None, 1, 4])))
    free = draw(
        st.lists(st.integers(0, 5), min_size=1, max_size=servers).filter(lambda free: sum(free) >= profile.gpus)
    )
    speeds = [25.0, 50.0] if mixed else [25.0]
    intra = np.array([draw(st.sampled_from(speeds)) for _ in free]) * UNIT
    cross = np.array([draw(st.sampled_from([1.25, 2.5] if mixed else [1.25])) for _ in free]) * UNIT
    return Case(profile, Network(np.maximum(np.array(free), 1), intra, cross), tuple(free))


def trap_of_the_plain_greedy(ring: int = 3) -> Case:
    """H1: two rings of three (or more) and a single replica on as many free GPUs as half of that needs, 4 + 4."""
    stages = [Stage(ring, 0.05, 0.1, 1.5 * GB, 0.01 * GB), Stage(ring, 0.05, 0.1, 1.5 * GB, 0.1 * GB)]
    free = (ring + 1, ring + 1)
    return Case(Profile.of_stages([*stages, Stage(1, 0.05, 0.1, 0.4 * GB)]), alike(free), free)


def trap_of_every_greedy() -> Case:
    """H2: two rings of three on 2, 3 and 4 free GPUs."""
    stages = [Stage(3, 0.05, 0.1, 1.5 * GB, 0.1 * GB), Stage(3, 0.05, 0.1, 1.5 * GB)]
    return Case(Profile.of_stages(stages), alike((2, 3, 4)), (2, 3, 4))


def random_cases(seed: int) -> Iterator[Case]:
    """Random jobs, without end."""
    rng = np.random.default_rng(seed)
    while True:
        stages = [
            Stage(
                int(rng.choice([1, 1, 2, 3])),
                0.05,
                0.1,
                float(rng.choice([0.05, 0.4, 1.5])) * GB,
                float(rng.choice([0.01, 0.1, 0.6])) * GB,
            )
            for _ in range(rng.integers(1, 4))
        ]
        profile = Profile.of_stages(stages)
        free = tuple(rng.integers(1, 5, rng.integers(2, 5)).tolist())
        if 2 <= profile.gpus <= 8 and sum(free) >= profile.gpus:
            yield Case(profile, alike(free), free)


def best_mapping(case: Case) -> tuple[tuple[int, ...], float]:
    """The best of all ways to spread the replicas of every stage, which are alike, and its alpha."""
    servers = range(len(case.free))
    each = [itertools.combinations_with_replacement(servers, stage.replicas) for stage in case.profile.stages]
    every = (tuple(itertools.chain(*parts)) for parts in itertools.product(*each))
    alpha, nodes = min((case.alpha(nodes), nodes) for nodes in every if case.legal(nodes))
    return nodes, alpha


def greedy_by_replicas(case: Case, first: tuple[int, int] | None = None) -> list[int]:
    """The greedy, replica by replica on the graph of replicas."""
    graph, place = replica_graph(case.profile), {}
    unused = {m for m, gpus in enumerate(case.free) if gpus > 0}
    unplaced = set(graph)
    while unplaced:
        fitting = [m for m in unused if case.free[m] >= len(unplaced)]
        m = min(fitting or unused, key=lambda m: (case.free[m] if fitting else -case.free[m], m))
        cap, here = min(case.free[m], len(unplaced)), []
        inside = graph.subgraph(unplaced)
        edges = sorted((tuple(sorted(edge)) for edge in inside.edges), key=lambda e: (-graph.edges[e]["weight"], e))
        if first in unplaced:
            here = [first]
        elif cap >= 2 and edges:
            here = list(edges[0])
        else:
            here = [min(unplaced, key=lambda v: (inside.degree(v, weight="weight"), v))]
        unplaced -= set(here)
        while len(here) < cap:
            v = min(
                unplaced, key=lambda v: (-sum(graph.edges[v, u]["weight"] for u in here if graph.has_edge(v, u)), v)
            )
            here.append(v)
            unplaced.remove(v)
        place.update(dict.fromkeys(here, m))
        unused.remove(m)
    return [place[v] for v in sorted(place)]


def weight_between(graph: nx.Graph, nodes: Sequence[int]) -> float:
    """Bytes an iteration that cross servers."""
    at = dict(zip(sorted(graph), nodes, strict=True))
    return float(sum(data["weight"] for u, v, data in graph.edges(data=True) if at[u] != at[v]))
