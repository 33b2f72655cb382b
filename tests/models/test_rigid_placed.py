"""The placed model against enumeration with nodes, and against the model that only counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyomo.environ as pyo
import pytest
from brute_force import Way, placed_optimum
from examples import examples
from hypothesis import given, settings, strategies as st
from tiny_instances import tiny_instances

from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.models import rigid_placed, rigid_time_indexed
from optsched.models.mapped_modes import modes_of_classes
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.schedule import Schedule

Solve = Callable[[Any], float]
EXACT = 1e-6
OBJECTIVES = ("total_weighted_completion_time", "total_weighted_tardiness", "makespan", "max_flow_time")


def ways(instance: Instance, placement: str) -> list[list[Way]]:
    """The modes of every job as counts a node, with its seconds (they are tested against enumeration on their own)."""
    modes = modes_of_classes(instance, placement)
    nodes = range(instance.cluster.node_count)
    rows = zip(instance.job_class.tolist(), instance.duration.tolist(), strict=True)
    return [[(tuple(dict(q).get(v, 0) for v in nodes), Fraction(p)) for q in modes[k]] for k, p in rows]


@settings(max_examples=examples(40))
@given(
    instance=st.sampled_from(["2x2", "1x2+1x1", "1x3+1x1", "3x1"]).flatmap(
        lambda where: tiny_instances(where, most=3, widest=3, latest=6)
    ),
    placement=st.sampled_from(["any", "consolidated"]),
    objective=st.sampled_from(OBJECTIVES),
)
def test_optimum_with_nodes(solve: Solve, instance: Instance, placement: str, objective: str) -> None:
    own = ways(instance, placement)
    optimum = float(placed_optimum(instance, objective, own))
    model = rigid_placed.build(instance, objective, placement=placement)
    assert solve(model) == pytest.approx(optimum, abs=EXACT)
    schedule = rigid_placed.schedule(model, instance)
    assert check_schedule(instance, schedule, preemptive=False, objective=objective, value=optimum) == []
    for segment in schedule.segments():
        counts = Counter(node for node, _ in segment.gpus)
        assert tuple(counts[v] for v in range(instance.cluster.node_count)) in [held for held, _ in own[segment.job]]
    counted = solve(rigid_time_indexed.build(instance, objective))
    assert counted <= optimum + EXACT
    if placement == "any":
        assert counted == pytest.approx(optimum, abs=EXACT)


def test_consolidation_costs(solve: Solve) -> None:
    # three gangs of 2 on two nodes of 3: two at a time, however 6 GPUs would hold all three
    instance = Instance([Job(f"j{j}", gpus=2, duration=1) for j in range(3)], "2x3")
    assert solve(rigid_placed.build(instance, "makespan")) == pytest.approx(1)
    assert solve(rigid_placed.build(instance, "makespan", placement="consolidated")) == pytest.approx(2)


def test_types_and_memory_keep_jobs_apart(solve: Solve) -> None:
    cluster = Cluster((NodeGroup(1, gpu="V100"), NodeGroup(1, gpu="P100")))
    jobs = [Job("a", duration=2, gpu_types=("V100",)), Job("b", duration=2, gpu_types=("V100",)), Job("c", duration=3)]
    instance = Instance(jobs, cluster)
    assert rigid_time_indexed.applies(instance, "makespan") is not None
    model = rigid_placed.build(instance, "makespan")
    assert solve(model) == pytest.approx(4)
    schedule = rigid_placed.schedule(model, instance)
    assert check_schedule(instance, schedule, preemptive=False, objective="makespan", value=4) == []
    assert {s.job: s.gpus[0][0] for s in schedule.segments()} == {0: 0, 1: 0, 2: 1}


def test_a_start_keeps_its_nodes() -> None:
    instance = Instance([Job("a", gpus=2, duration=2), Job("b", gpus=2, duration=3)], "2x2")
    model = rigid_placed.build(instance, "total_flow_time", placement="consolidated")
    # both on node 1, with a pause that the left shift takes out
    given_schedule = Schedule.from_starts(instance, [1.0, 4.0], node_counts={0: [(1, 2)], 1: [(1, 2)]})
    rigid_placed.warm_start(model, given_schedule)
    assert pyo.value(model.objective) == 2 + 5
    assert rigid_placed.schedule(model, instance).gpu_node.tolist() == [1, 1, 1, 1]
    split = Schedule.from_starts(instance, [0.0, 2.0], node_counts={0: [(0, 1), (1, 1)], 1: [(1, 2)]})
    with pytest.raises(InputError, match="placed in a way"):
        rigid_placed.warm_start(model, split)


def test_too_many_placements_are_refused_with_a_way_out() -> None:
    instance = Instance([Job("a", gpus=8, duration=1)], "8x8")
    reason = rigid_placed.applies(instance, "makespan")
    assert reason is not None
    assert "rigid-time-indexed" in reason
    with pytest.raises(InputError, match="500"):
        rigid_placed.build(instance, "makespan")
    assert rigid_placed.build(instance, "makespan", placement="consolidated").name == "rigid-placed"
