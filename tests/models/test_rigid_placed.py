"""The placed model: types, memory and nodes that are kept; `test_formulations` has it against enumeration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
import pytest

from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.models import rigid_placed, rigid_time_indexed
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.schedule import Schedule

Solve = Callable[[Any], float]


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
    left = ("left",)
    cluster = Cluster((NodeGroup(2, gpu="right"), NodeGroup(2, gpu="left")))
    instance = Instance([Job("a", gpus=2, duration=2, gpu_types=left), Job("b", gpus=2, duration=3)], cluster)
    model = rigid_placed.build(instance, "total_flow_time")
    # both on node 1, with a pause that the left shift takes out
    given_schedule = Schedule.from_starts(instance, [1.0, 4.0], node_counts={0: [(1, 2)], 1: [(1, 2)]})
    rigid_placed.warm_start(model, given_schedule)
    assert pyo.value(model.objective) == 2 + 5
    assert rigid_placed.schedule(model, instance).gpu_node.tolist() == [1, 1, 1, 1]
    split = Schedule.from_starts(instance, [0.0, 2.0], node_counts={0: [(0, 1), (1, 1)], 1: [(1, 2)]})
    with pytest.raises(InputError, match="is not in the model"):
        rigid_placed.warm_start(model, split)


def test_too_many_placements_are_refused_with_a_way_out() -> None:
    instance = Instance([Job("a", gpus=8, duration=1)], "8x8")
    reason = rigid_placed.applies(instance, "makespan")
    assert reason is not None
    assert "rigid-time-indexed" in reason
    with pytest.raises(InputError, match="500"):
        rigid_placed.build(instance, "makespan")
