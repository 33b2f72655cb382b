"""``one-type``: never two types in a gang, the type with most free GPUs, one node where one holds it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.policies.placements import PLACEMENTS
from optsched.policies.placements.one_type import one_type
from optsched.policies.simulate import simulate
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.speeds.speed_tables import speed_tables

NODES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.booleans()), min_size=1, max_size=6)


@given(NODES, st.integers(1, 6), st.booleans(), st.data())
def test_a_gang_takes_the_type_with_most_free_gpus(
    nodes: list[tuple[str, int, bool]], gang: int, mixed: bool, data: st.DataObject
) -> None:
    cluster = Cluster(tuple(NodeGroup(gpus, 1, gpu) for gpu, gpus, _ in nodes))
    instance = Instance([Job("j", duration=1)], cluster)
    free = np.array([data.draw(st.integers(0, gpus)) for _, gpus, _ in nodes])
    eligible = np.array([may for _, _, may in nodes])
    rule, node, count = one_type(mixed), np.zeros(6, dtype=np.int64), np.zeros(6, dtype=np.int64)
    size, tables = cluster.node_gpus.copy(), speed_tables(instance)
    entries = rule.place(0, gang, free, size, eligible, rule.random_state(), tables, node, count)
    offered = {
        gpu: sum(int(f) for f, (g, _, may) in zip(free, nodes, strict=True) if g == gpu and may) for gpu in "abc"
    }
    whole = {gpu: sum(gpus for g, gpus, may in nodes if g == gpu and may) for gpu in "abc"}
    if gang > max(whole.values()):  # GPUs of several types, when there are enough and it may
        assert (entries > 0) == (mixed and sum(offered.values()) >= gang)
        assert count[:entries].sum() == (gang if entries else 0)
        return
    if entries == 0:
        assert max(offered.values()) < gang
        return
    used = node[:entries].tolist()
    assert len(set(used)) == entries
    assert count[:entries].sum() == gang
    assert all(eligible[v] and 1 <= c <= free[v] for v, c in zip(used, count[:entries], strict=True))
    (kind,) = {nodes[v][0] for v in used}
    assert offered[kind] == max(offered.values())
    holds = [v for v, (gpu, _, may) in enumerate(nodes) if gpu == kind and may and free[v] >= gang]
    assert (entries == 1) == bool(holds)
    assert not holds or free[used[0]] == min(free[v] for v in holds)


def test_it_is_a_placement_by_name() -> None:
    assert PLACEMENTS.get("one-type")().name == "one-type"


WIDE = [
    Job("first", gpus=2, duration=9),
    Job("wide", arrival=1, gpus=3, duration=5),
    Job("next", arrival=2, duration=4),
]


@pytest.mark.parametrize("policy", ["yarn-cs", "fifo+one-type"])
def test_a_gang_that_no_type_holds_does_not_finish_and_blocks_nobody(policy: str) -> None:
    run = simulate(Instance(WIDE, "2x1:a+2x1:b"), policy)
    assert run.unfinished == ["wide"]
    assert run.schedule.completion[[0, 2]].tolist() == [9, 6]


@pytest.mark.parametrize("policy", ["yarn-cs:mixed=true", "fifo+one-type:mixed=true"])
def test_mixed_when_asked_and_then_the_head_blocks(policy: str) -> None:
    run = simulate(Instance(WIDE, "2x1:a+2x1:b"), policy)
    assert run.policy == policy
    assert run.schedule.completion.tolist() == [9, 14, 13]  # two GPUs are free until 9, and `next` waits


def test_who_is_passed_over_is_decided_by_width_and_types_together() -> None:
    # two GPUs of b and c: never of one type; the same width on a waits as ever, and holds up the last
    never = Job("b or c", gpus=2, duration=5, gpu_types=("b", "c"))
    jobs = [Job("one", duration=9), never, Job("two", gpus=2, duration=1), Job("last", duration=1)]
    run = simulate(Instance(jobs, "2x1:a+1x1:b+1x1:c"), "yarn-cs")
    assert run.unfinished == ["b or c"]
    assert run.schedule.completion[[0, 2, 3]].tolist() == [9, 10, 10]
