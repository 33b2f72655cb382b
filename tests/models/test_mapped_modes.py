"""Modes of gangs, their placements and the best mapping of each where speed depends on the placement, by exhaustion."""

from __future__ import annotations

import itertools
from itertools import product

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st
from speeds.random_profiles import clusters, exact_alpha, placements, profiles

from optsched.errors import InputError
from optsched.models import mapped_modes
from optsched.models.mapped_modes import (
    MappedModes,
    Mode,
    best_mapping,
    mappings,
    modes_of_classes,
    speed_depends_on_placement,
    splits,
)
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import iteration_time

# --- modes of gangs whose speed depends on the placement: all vectors, the best mapping of each, by exhaustion -----------


PAIR = Profile.of_stages([Stage(2, 0.5, 0.5, 8.0)])  # a ring of 8 bytes a replica


def cluster(nodes: int, gpus: int) -> Cluster:
    return Cluster((NodeGroup(gpus, nodes, nic_bandwidth=4.0 * gpus, intra_bandwidth=16.0),))


@given(clusters(), st.data())
@settings(max_examples=examples(40))
def test_every_vector_once_with_the_best_of_all_mappings(where: Cluster, data: st.DataObject) -> None:
    profile = data.draw(profiles(gpus=min(5, where.gpus), stages=min(3, where.gpus)))
    job = Job("a", gpus=profile.gpus, iterations=3, profile="p")
    modes = MappedModes.of(Instance([job], where, profiles={"p": profile}))
    network = Network.of(where)
    least: dict[tuple[int, ...], float] = {}
    for nodes in placements(profile, where):
        counts = tuple(nodes.count(v) for v in range(where.node_count))
        alpha = float(exact_alpha(profile, network, nodes))
        least[counts] = min(alpha, least.get(counts, np.inf))
    found = {tuple(held): seconds for held, seconds in zip(modes.held.tolist(), modes.seconds.tolist(), strict=True)}
    assert found == {counts: pytest.approx(3 * alpha, rel=1e-12) for counts, alpha in least.items()}
    assert len(found) == modes.job.size
    for mapping, held, seconds in zip(modes.mapping, modes.held.tolist(), modes.seconds.tolist(), strict=True):
        nodes = [v for v, count in mapping for _ in range(count)]
        assert [nodes.count(v) for v in range(where.node_count)] == held
        assert 3 * iteration_time(profile, network, nodes) == seconds


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.lists(st.integers(0, 3), min_size=2, max_size=3))
def test_mappings_are_all_tables_with_these_sums(replicas: list[int], counts: list[int]) -> None:
    vector = tuple((10 + v, count) for v, count in enumerate(counts))
    found = list(mappings(tuple(replicas), vector)) if sum(counts) == sum(replicas) else []
    rows = [[row for row in itertools.product(range(k + 1), repeat=len(counts)) if sum(row) == k] for k in replicas]
    tables = [
        table
        for table in itertools.product(*rows)
        if [sum(row[v] for row in table) for v in range(len(counts))] == counts
    ]
    expected = {tuple((10 + v, c) for row in table for v, c in enumerate(row) if c) for table in tables}
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_modes_of_equal_counts_on_alike_nodes_are_all_kept() -> None:
    jobs = [Job("a", gpus=2, iterations=4, profile="p"), Job("b", gpus=2, duration=3)]
    instance = Instance(jobs, cluster(3, 2), profiles={"p": PAIR})
    assert speed_depends_on_placement(instance)
    modes = MappedModes.of(instance)
    assert modes.offset.tolist() == [0, 6, 12]
    together = modes.held.max(axis=1) == 2
    # ring: 2 (k-1)/k h = 8 bytes at 16 or at 4 bytes/s
    assert modes.seconds[:6].tolist() == [6.0 if t else 12.0 for t in together[:6]]
    assert modes.seconds[6:].tolist() == [3.0] * 6
    assert sorted(map(tuple, modes.held[:6].tolist())) == sorted(
        counts for counts in itertools.product(range(3), repeat=3) if sum(counts) == 2
    )
    for b in range(12):
        assert modes.find(b // 6, modes.held[b]) == b
    assert modes.find(0, np.array([0, 0, 1])) == -1
    assert modes.only(np.array([1, 7, 8])).offset.tolist() == [0, 1, 3]


def test_the_grid_holds_the_durations_of_all_modes() -> None:
    instance = Instance([Job("a", 0.5, 2, iterations=1, profile="p")], cluster(2, 2), profiles={"p": PAIR})
    modes = MappedModes.of(instance)
    grid, slots = modes.grid(instance)
    assert (grid.origin, grid.unit, grid.duration.tolist()) == (0.5, 1.5, [1])
    assert (slots * float(grid.unit)).tolist() == modes.seconds.tolist()


def test_times_without_a_unit_and_too_many_mappings_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Profile.of_stages([Stage(2, 0.1, 0.2, 0.7)])
    instance = Instance([Job("a", gpus=2, iterations=1, profile="p")], cluster(2, 2), profiles={"p": odd})
    with pytest.raises(InputError, match="longest common unit"):
        MappedModes.of(instance).grid(instance)
    monkeypatch.setattr(mapped_modes, "MAPPINGS", 5)
    chain = Profile.of_stages([Stage(1, 0.5, 0.5, 0, 1.0) for _ in range(4)])
    with pytest.raises(InputError, match="more than 5 mappings to 2 nodes"):
        best_mapping(chain, Network.of(cluster(2, 2)), ((0, 2), (1, 2)))
    with pytest.raises(InputError, match="fewer GPUs"):
        best_mapping(chain, Network.of(cluster(2, 2)), ((0, 2), (1, 1)))


# --- modes of placement against plain enumeration ------------------------------------------------------------------------


sizes_and_gang = st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
    lambda sizes: st.tuples(st.just(sizes), st.integers(1, sum(sizes)))
)


def all_counts(sizes: list[int], gpus: int) -> list[tuple[int, ...]]:
    """Every vector of counts that sums up to the gang."""
    return [counts for counts in product(*(range(size + 1) for size in sizes)) if sum(counts) == gpus]


def as_mode(counts: tuple[int, ...]) -> Mode:
    """Nodes are named 10, 20, ..."""
    return tuple((10 * (v + 1), u) for v, u in enumerate(counts) if u)


@given(sizes_and_gang)
def test_splits(case: tuple[list[int], int]) -> None:
    sizes, gpus = case
    nodes = [10 * (v + 1) for v in range(len(sizes))]
    found = list(splits(gpus, nodes, sizes))
    assert sorted(found) == sorted(as_mode(counts) for counts in all_counts(sizes, gpus))


def test_only_nodes_that_suit_the_job() -> None:
    cluster = Cluster((NodeGroup(2, gpu="V100"), NodeGroup(2, gpu="P100"), NodeGroup(2, gpu="P100", gpu_memory=1.0)))
    jobs = [
        Job("a", gpus=2, duration=1, gpu_types=("p100",)),
        Job("b", gpus=2, duration=1, gpu_types=("P100",), gpu_memory=2.0),
    ]
    instance = Instance(jobs, cluster)
    modes = modes_of_classes(instance)
    assert sorted(modes[instance.job_class[0]]) == [((1, 1), (2, 1)), ((1, 2),), ((2, 2),)]
    assert modes[instance.job_class[1]] == [((1, 2),)]


def test_refusals() -> None:
    with pytest.raises(InputError, match="more than 500 placements"):
        modes_of_classes(Instance([Job("a", gpus=8, duration=1)], "8x8"))
