"""The value of a run without a schedule is that of the run."""

from __future__ import annotations

import pytest

import optsched as osd
from optsched.policies.simulate import simulated_value, specify
from optsched.problem.instance import Instance, Job

LATE = Instance(
    [Job("a", 1e9 + 3.1, 2, 5.5), Job("b", 1e9 + 3.7, 1, 2, weight=3), Job("c", 1e9 + 4, 2, 0.3, due=1e9 + 7)], "1x2"
)
RUNS = [
    ("rigid-06-1", "fifo"),
    ("rigid-06-1", "srtf"),
    ("rigid-06-1", "easy"),
    ("rigid-06-1", "tiresias"),
    (LATE, "srtf"),
    (LATE, "fifo+consolidated"),
    ("sharing-cluster", "fifo"),
    (osd.generate("hadar-60", seed=1, jobs=5), "hadar"),
]


@pytest.mark.parametrize(("source", "policy"), RUNS)
def test_value_and_class_are_those_of_the_run(source: Instance | str, policy: str) -> None:
    instance = source if isinstance(source, Instance) else osd.load(source)
    run = osd.simulate(instance, policy)
    for objective in ("total_flow_time", "total_weighted_completion_time", "makespan", "total_weighted_tardiness"):
        value, schedule_class = simulated_value(instance, specify(policy), objective)
        assert repr(value) == repr(run.value(objective))
        assert schedule_class == run.schedule_class
