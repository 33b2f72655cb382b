"""The iteration time of a placement: networks, every term, traps, bounds on every placement, and its compiled form."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from optsched.errors import InputError
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.speeds.network import Network
from optsched.speeds.speed_tables import SpeedTables, pace, profile_pace, speed_tables, tables_of
from optsched.speeds.stage_graph import alpha_max, alpha_min, iteration_time, stage_graph
from speeds.random_profiles import clusters, exact_alpha, placements, profiles, replica_graph

# -- bandwidths between the GPUs of a cluster -----------------------------------------------------------------------------


UNLIKE = Cluster(
    (
        NodeGroup(4, 2, nic_bandwidth=8.0, intra_bandwidth=50.0),
        NodeGroup(2, 1, nic_bandwidth=6.0, intra_bandwidth=20.0),
        NodeGroup(1, 1, nic_bandwidth=5.0),
    )
)


def test_a_gpu_has_its_share_of_the_nic_and_the_links_of_its_node() -> None:
    network = Network.of(UNLIKE)
    assert network.gpus.tolist() == [4, 4, 2, 1]
    assert network.cross.tolist() == [2, 2, 3, 5]
    assert network.intra.tolist() == [50, 50, 20, 5]  # a one-GPU node has no links inside
    assert network.bandwidth(0, 0) == 50
    assert network.bandwidth(2, 2) == 20
    assert network.bandwidth(0, 1) == network.bandwidth(3, 0) == 2
    assert network.bandwidth(2, 3) == network.bandwidth(3, 2) == 3
    assert (network.fastest, network.fastest_cross, network.slowest) == (50, 3, 2)


@given(clusters())
def test_the_extremes_are_those_of_all_pairs_of_gpus(cluster: Cluster) -> None:
    network = Network.of(cluster)
    owner = [m for m, gpus in enumerate(cluster.node_gpus.tolist()) for _ in range(gpus)]
    links = [(m == n, network.bandwidth(m, n)) for m, n in itertools.combinations(owner, 2)]
    assume(links)
    assert network.fastest == max(b for _, b in links)
    assert network.slowest == min(b for _, b in links)
    crossing = [b for inside, b in links if not inside]
    if crossing:
        assert network.fastest_cross == max(crossing)


def test_a_single_node_needs_no_nic_and_one_gpu_nodes_no_links_inside() -> None:
    inside = Network.of(Cluster((NodeGroup(4, intra_bandwidth=9.0),)))
    assert (inside.fastest, inside.slowest, inside.bandwidth(0, 0)) == (9, 9, 9)
    between = Network.of(Cluster((NodeGroup(1, 3, nic_bandwidth=2.0),)))
    assert (between.fastest, between.slowest, between.bandwidth(0, 2)) == (2, 2, 2)


@pytest.mark.parametrize(
    ("group", "field"),
    [
        (NodeGroup(4, 2), "nodes.nic_bandwidth"),
        (NodeGroup(4, 2, intra_bandwidth=9.0), "nodes.nic_bandwidth"),
        (NodeGroup(4, 2, nic_bandwidth=9.0), "nodes.intra_bandwidth"),
        (NodeGroup(4, 1), "nodes.intra_bandwidth"),
        (NodeGroup(1, 2), "nodes.nic_bandwidth"),
    ],
)
def test_the_message_says_which_bandwidth_is_missing(group: NodeGroup, field: str) -> None:
    with pytest.raises(InputError, match=rf"^{field}: missing: jobs with profiles send data .* \(expected: bytes/s"):
        Network.of(Cluster((group,)))


def test_links_inside_a_node_are_not_slower_than_the_share_of_the_nic() -> None:
    equal = Cluster((NodeGroup(4, 2, nic_bandwidth=12.0, intra_bandwidth=3.0),))
    assert Network.of(equal).fastest == 3
    slower = Cluster((NodeGroup(4, 2, nic_bandwidth=12.0, intra_bandwidth=2.9),))
    with pytest.raises(InputError, match=r"nodes.intra_bandwidth = 2.9: .*at least nic_bandwidth / gpus = 3"):
        Network.of(slower)


@pytest.mark.parametrize("field", ["nic_bandwidth", "intra_bandwidth"])
@pytest.mark.parametrize("value", [0, 0.0, -1.0, float("nan"), float("inf")])
def test_a_bandwidth_of_zero_never_comes_here(field: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"nodes.{field} = .*a finite number > 0"):
        NodeGroup(4, **{field: value})  # type: ignore[arg-type]


# -- the readable form ----------------------------------------------------------------------------------------------------


GB = 1e9
TRAP = {"forward": 0.05, "backward": 0.1}
H1 = Profile.of_stages(
    [
        Stage(3, **TRAP, parameters=1.5 * GB, activations=0.01 * GB),
        Stage(3, **TRAP, parameters=1.5 * GB, activations=0.1 * GB),
        Stage(1, **TRAP, parameters=0.4 * GB),
    ]
)
H2 = Profile.of_stages(
    [Stage(3, **TRAP, parameters=1.5 * GB, activations=0.1 * GB), Stage(3, **TRAP, parameters=1.5 * GB)]
)
# 2 nodes; links inside of 100 B/s, 4 B/s for each of 4 GPUs outside
PLAIN = Network.of(Cluster((NodeGroup(4, 2, nic_bandwidth=16.0, intra_bandwidth=100.0),)))


def trap_network(*gpus: int) -> Network:
    """Nodes of so many free GPUs, 25 GB/s inside and 1.25 GB/s a GPU outside."""
    return Network.of(Cluster(tuple(NodeGroup(g, nic_bandwidth=1.25 * GB * g, intra_bandwidth=25 * GB) for g in gpus)))


def cut(profile: Profile, nodes: list[int]) -> float:
    """Bytes an iteration between replicas on different nodes."""
    graph = replica_graph(profile)
    place = dict(zip(graph, nodes, strict=True))
    return float(sum(w for v, u, w in graph.edges(data="weight") if place[v] != place[u]))


def test_the_graphs_hold_what_the_terms_need() -> None:
    profile = Profile.of_stages(
        [Stage(2, 1.0, 2.0, parameters=30.0, activations=60.0), Stage(3, 0.5, 0.5, parameters=9.0, activations=5.0)]
    )
    stages = stage_graph(profile)
    assert stages.nodes[0] == {"replicas": 2, "compute": 3.0, "ring": 30.0, "parameters": 30.0}
    assert stages.nodes[1]["ring"] == 12
    assert dict(stages.edges) == {(0, 1): {"activations": 60.0, "pair": 20.0}}
    replicas = replica_graph(profile)
    assert list(replicas) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]  # stage-major, the order of a placement
    assert replicas.edges[(0, 0), (0, 1)]["weight"] == 60  # 4 h/k
    assert replicas.edges[(1, 0), (1, 2)]["weight"] == 12
    assert replicas.edges[(0, 1), (1, 2)]["weight"] == 20
    assert replicas.number_of_edges() == 1 + 3 + 6


@pytest.mark.parametrize(
    ("micro_batches", "nodes", "alpha"),
    [
        # stage 0: 3 s and 2 replicas, stage 1: 1 s and 1 replica; pairs of 40 bytes, a ring of 30 bytes
        (None, [0, 0, 0], 3 + 0.4 + 0.3),
        (None, [0, 0, 1], 1 + 20 + 0.3),  # stage 1 waits for both replicas, at 4 B/s
        (None, [0, 1, 1], 3 + 10 + 7.5),  # replica 0 waits 10 s, stage 1 10.4 s; the ring crosses
        (2, [0, 1, 1], 1.5 * 13 + 7.5),  # what fills the pipeline does not multiply the ring
    ],
)
def test_known_placements_by_hand(micro_batches: int | None, nodes: list[int], alpha: float) -> None:
    stages = [Stage(2, 1.0, 2.0, parameters=30.0, activations=40.0), Stage(1, 0.5, 0.5, parameters=1e9)]
    profile = Profile.of_stages(stages, micro_batches=micro_batches)
    assert iteration_time(profile, PLAIN, nodes) == pytest.approx(alpha, rel=1e-14)


def test_trap_h1_has_the_published_values() -> None:
    network = trap_network(4, 4)
    best, greedy = [0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1]
    assert round(iteration_time(H1, network, best), 4) == 0.2380
    assert round(iteration_time(H1, network, greedy), 4) == 1.8087
    assert cut(H1, best) == pytest.approx(0.02 * GB)
    assert round(cut(H1, greedy) / GB, 2) == 4.08
    cluster = Cluster((NodeGroup(4, 2, nic_bandwidth=5 * GB, intra_bandwidth=25 * GB),))
    assert min(iteration_time(H1, network, nodes) for nodes in placements(H1, cluster)) == pytest.approx(
        iteration_time(H1, network, best)
    )
    assert alpha_min(H1, network) <= iteration_time(H1, network, best)


def test_trap_h2_has_the_published_values() -> None:
    network = trap_network(2, 3, 4)
    assert round(iteration_time(H2, network, [1, 1, 1, 2, 2, 2]), 4) == 0.2833
    assert round(iteration_time(H2, network, [2, 2, 2, 2, 1, 1]), 4) == 1.8033


def test_a_placement_names_one_node_a_replica() -> None:
    with pytest.raises(InputError, match=r"nodes = 6: .*one node for each of 7 replicas"):
        iteration_time(H1, trap_network(4, 4), [0] * 6)


@given(profiles(), clusters(), st.data())
def test_the_reference_equals_the_sum_over_pairs_of_replicas(
    profile: Profile, cluster: Cluster, data: st.DataObject
) -> None:
    network = Network.of(cluster)
    nodes = [data.draw(st.integers(0, cluster.node_count - 1)) for _ in range(profile.gpus)]
    exact = exact_alpha(profile, network, nodes)
    assert abs(Fraction(iteration_time(profile, network, nodes)) - exact) <= exact * Fraction(1, 10**13)


def enumerated(profile: Profile, cluster: Cluster) -> list[Fraction]:
    """alpha of every placement that there is room for, exactly."""
    network = Network.of(cluster)
    return [exact_alpha(profile, network, nodes) for nodes in placements(profile, cluster)]


@given(profiles(gpus=5, stages=3), clusters(gpus=3))
def test_the_bounds_hold_on_every_placement_of_any_cluster(profile: Profile, cluster: Cluster) -> None:
    network = Network.of(cluster)
    low, high = alpha_min(profile, network), alpha_max(profile, network)
    for nodes in placements(profile, cluster):
        assert low <= iteration_time(profile, network, nodes) <= high * (1 + 1e-13)


@given(profiles(gpus=4, stages=3), clusters(gpus=3, alike=True))
def test_the_lower_bound_is_the_minimum_where_the_gang_fits_on_one_of_alike_nodes(
    profile: Profile, cluster: Cluster
) -> None:
    network = Network.of(cluster)
    every = enumerated(profile, cluster)
    if every and profile.gpus <= cluster.nodes[0].gpus:
        assert alpha_min(profile, network) == pytest.approx(float(min(every)), rel=1e-12)
    if every and profile.gpus <= cluster.node_count:  # every replica on a node of its own is among them
        assert alpha_max(profile, network) == pytest.approx(float(max(every)), rel=1e-12)


@pytest.mark.parametrize(("gpus", "nodes"), [(2, 2), (3, 2), (1, 4)])
def test_a_gang_larger_than_a_node_pays_for_the_cheapest_cut(gpus: int, nodes: int) -> None:
    cluster = Cluster((NodeGroup(gpus, nodes, nic_bandwidth=1.0 * gpus, intra_bandwidth=10.0),))
    network = Network.of(cluster)
    chain = Profile.of_stages([Stage(1, 0.0, 1.0, activations=a) for a in (5.0, 1.0, 5.0)] + [Stage(1, 0.0, 1.0)])
    least = float(min(enumerated(chain, cluster)))
    assert alpha_min(chain, network) <= least
    if gpus == 2:  # two nodes part the chain in its cheap middle: 1 + 2 x 5/10 + 2 x 1/1
        assert least == pytest.approx(4)
        assert alpha_min(chain, network) == pytest.approx(4)
    wide = Profile.of_stages([Stage(4, 0.0, 1.0, parameters=8.0)])  # its ring crosses in any case: 1 + 12/1
    assert alpha_min(wide, network) == pytest.approx(float(min(enumerated(wide, cluster)))) == pytest.approx(13)


def test_stages_that_exchange_nothing_may_lie_apart_for_free() -> None:
    cluster = Cluster((NodeGroup(2, 2, nic_bandwidth=1.0, intra_bandwidth=10.0),))
    profile = Profile((Stage(2, 0.0, 1.0, parameters=10.0), Stage(2, 0.0, 2.0, parameters=10.0)))
    assert (
        alpha_min(profile, Network.of(cluster))
        == pytest.approx(3)
        == pytest.approx(min(map(float, enumerated(profile, cluster))))
    )


# -- the compiled form ----------------------------------------------------------------------------------------------------


UNUSED = Profile((Stage(4, 1.0, 1.0),))


@st.composite
def entries(draw: st.DrawFn, nodes: int, gpus: int) -> list[tuple[int, int]]:
    """(node, GPUs) that hold ``gpus`` replicas; a node may come again, also at once."""
    made: list[tuple[int, int]] = []
    while gpus:
        count = draw(st.integers(1, gpus))
        made.append((draw(st.integers(0, nodes - 1)), count))
        gpus -= count
    return made


def compiled(made: SpeedTables, profile: int, parts: list[tuple[int, int]]) -> float:
    node, count = np.array(parts, dtype=np.int64).T
    return float(profile_pace(made, profile, np.ascontiguousarray(node), np.ascontiguousarray(count)))


@given(st.lists(profiles(gpus=9, stages=5), min_size=1, max_size=3), clusters(nodes=4), st.data())
def test_compiled_and_readable_iteration_times_are_equal(
    many: list[Profile], cluster: Cluster, data: st.DataObject
) -> None:
    network = Network.of(cluster)
    made = tables_of(many, np.arange(len(many)), network)
    for p, profile in enumerate(many):
        for _ in range(3):  # what one placement leaves in the scratch arrays must not reach the next
            parts = data.draw(entries(cluster.node_count, profile.gpus))
            nodes = [m for m, count in parts for _ in range(count)]
            expected = iteration_time(profile, network, nodes)
            assert compiled(made, p, parts) == pytest.approx(expected, rel=1e-13)
        assert made.profiles["fastest"][p] == alpha_min(profile, network)


def test_interleaved_entries_name_a_node_several_times() -> None:
    network = Network.of(Cluster((NodeGroup(4, 3, nic_bandwidth=4.0, intra_bandwidth=10.0),)))
    profile = Profile.of_stages([Stage(3, 1.0, 2.0, 20.0, 18.0), Stage(3, 1.0, 1.0, 30.0)])
    made = tables_of([profile], np.zeros(1, dtype=np.int64), network)
    for parts in ([(0, 1), (1, 1), (0, 2), (1, 1), (0, 1)], [(2, 1), (2, 1), (0, 3), (2, 1)], [(1, 6)]):
        nodes = [m for m, count in parts for _ in range(count)]
        assert compiled(made, 0, parts) == pytest.approx(iteration_time(profile, network, nodes), rel=1e-14)


def test_an_instance_has_a_table_for_the_profiles_its_jobs_run_at() -> None:
    cluster = Cluster((NodeGroup(4, 2, nic_bandwidth=4.0, intra_bandwidth=10.0),))
    kinds = {"b": Profile((Stage(2, 1.0, 2.0, 8.0),)), "a": Profile((Stage(1, 1.0, 0.5),)), "idle": UNUSED}
    jobs = [
        Job("plain", duration=5, gpus=2, profile="b", iterations=9),
        Job("ring", iterations=4, gpus=2, profile="b"),
        Job("one", iterations=4, gpus=1, profile="a"),
    ]
    made = speed_tables(Instance(jobs, cluster, profiles=kinds))
    assert made.jobs["profile"].tolist() == [-1, 1, 0]  # in the order of the names, "idle" not among them
    assert made.profiles["fastest"][:-1].tolist() == [1.5, 3 + 8 / 10]
    one, two = np.array([0, 1]), np.array([1, 1])
    assert pace(made, 0, 2, one, two) == 1
    assert pace(made, 1, 2, one, two) == pytest.approx(3 + 8 / 1)
    assert pace(made, 1, 2, np.array([1]), np.array([2])) == pytest.approx(3 + 8 / 10)
    assert pace(made, 2, 1, np.array([1]), np.array([1])) == 1.5


def test_only_jobs_with_profiles_need_bandwidths() -> None:
    plain = Instance([Job("a", duration=1)], "2x2", profiles={"idle": UNUSED})
    assert speed_tables(plain).jobs["profile"].tolist() == [-1]
    with pytest.raises(InputError, match=r"nodes\.nic_bandwidth: missing"):
        speed_tables(Instance([Job("a", iterations=1, gpus=4, profile="idle")], "2x2", profiles={"idle": UNUSED}))
