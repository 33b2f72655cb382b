"""The compiled iteration time: equal to the readable one on every placement, however its entries are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.speeds.network import Network
from optsched.speeds.speed_tables import SpeedTables, pace, profile_pace, speed_tables, tables_of
from optsched.speeds.stage_graph import alpha_min, iteration_time
from speeds.random_profiles import clusters, profiles

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
