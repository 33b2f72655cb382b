"""`Network`: bandwidths between the GPUs of a cluster."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given

from optsched.errors import InputError
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.speeds.network import Network
from speeds.random_profiles import clusters

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
