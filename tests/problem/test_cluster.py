"""Clusters and their text form."""

from __future__ import annotations

import math
from typing import Any

import pytest
from examples import pairs
from hypothesis import given, strategies as st
from refusals import one_line

from optsched.errors import InputError
from optsched.problem.cluster import MAX_GPUS, Cluster, NodeGroup


@pytest.mark.parametrize(
    ("spec", "gpus", "nodes", "types"),
    [
        ("8x8", 64, 8, ["GPU"]),
        ("16x4:V100", 64, 16, ["V100"]),
        (" 8 x 1 : V100 + 16x1:P100+24x1:K80 ", 48, 48, ["V100", "P100", "K80"]),
        ("1x1:Tesla T4", 1, 1, ["Tesla T4"]),
    ],
)
def test_parse(spec: str, gpus: int, nodes: int, types: list[str]) -> None:
    cluster = Cluster.parse(spec)
    assert (cluster.gpus, cluster.node_count) == (gpus, nodes)
    assert [group.gpu for group in cluster.nodes] == types
    assert Cluster.parse(cluster.spec) == cluster


@pytest.mark.parametrize(
    "spec", ["", "8", "8x", "x8", "0x8", "8x0", "-1x8", "8x8+", "8*8", "8x8:", "8x8:V100:16", "1.5x2", None, 8]
)
def test_what_is_not_a_cluster_is_one_line(spec: Any) -> None:
    with one_line(begins=f"cluster = {spec!r}: not a cluster (expected: NODESxGPUS"):
        Cluster.parse(spec)


ILLEGAL: dict[str, list[Any]] = {
    "gpus": [0, 1.0, True],
    "count": [0],
    "gpu": ["", 7],
    "gpu_memory": [0, math.nan, "16GB"],
    "nic_bandwidth": [-1],
    "intra_bandwidth": [math.inf],
}


@pytest.mark.parametrize(("field", "value"), pairs(ILLEGAL))
def test_an_illegal_node_group_is_one_line(field: str, value: Any) -> None:
    with one_line(begins=f"nodes.{field} = {value!r}: invalid (expected: "):
        NodeGroup(**{"gpus": 1, field: value})


def test_a_cluster_needs_groups_of_nodes_and_has_an_end() -> None:
    with pytest.raises(InputError, match="at least one node"):
        Cluster(())
    with pytest.raises(InputError, match="nodes = 8"):
        Cluster((8,))
    with pytest.raises(InputError, match=f"at most {MAX_GPUS}"):
        Cluster.parse("99999999x8")


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 9), st.sampled_from(["GPU", "A", "b"])), min_size=1, max_size=4
    )
)
def test_arrays_are_the_groups_spelled_out(groups: list[tuple[int, int, str]]) -> None:
    cluster = Cluster(tuple(NodeGroup(count=count, gpus=gpus, gpu=gpu) for count, gpus, gpu in groups))
    assert cluster.node_gpus.tolist() == [gpus for count, gpus, _ in groups for _ in range(count)]
    assert cluster.node_group.tolist() == [k for k, (count, _, _) in enumerate(groups) for _ in range(count)]
    assert cluster.gpus == cluster.node_gpus.sum()
    assert cluster.node_count == len(cluster.node_gpus)
    assert Cluster.parse(cluster.spec) == cluster


def test_memory_and_types_decide_who_suits() -> None:
    group = NodeGroup(gpus=1, gpu="V100", gpu_memory=16)
    assert group.suits(None, None)
    assert group.suits(["v100"], 16)
    assert not group.suits(["A100"], None)
    assert not group.suits([], None)
    assert not group.suits(None, 17)
    assert NodeGroup(gpus=1).suits(None, 1e30)
    assert Cluster((group, NodeGroup(gpus=1))).node_memory.tolist() == [16, math.inf]


def test_classical_machines_are_one_gpu_nodes() -> None:
    assert Cluster.machines(3) == Cluster.parse("3x1")
