"""Optima where speed depends on the GPU type: two methods, the referee, and the policies and bounds on either side."""

from __future__ import annotations

import pytest

import optsched as osd
from optsched.check.referee import check_schedule
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs

TABLE = Throughputs(
    {
        ("net", "fast", 1): Throughput(4.0),
        ("net", "slow", 1): Throughput(1.0),
        ("net", "fast", 2): Throughput(8.0, 4.0),
        ("net", "slow", 2): Throughput(2.0, 1.0),
        ("odd", "fast", 1): Throughput(1.0),
        ("odd", "slow", 1): Throughput(2.0),
        ("big", "fast", 2): Throughput(2.0, 1.0),
        ("big", "slow", 2): Throughput(0.0),
    }
)
JOBS = [
    Job("a", iterations=8, profile="net"),
    Job("b", iterations=8, profile="net", gpus=2),
    Job("c", arrival=1, iterations=4, profile="odd"),
    Job("d", arrival=1, iterations=4, profile="big", gpus=2),
    Job("e", arrival=2, duration=2),
]


@pytest.mark.parametrize("objective", ["total_completion_time", "makespan"])
@pytest.mark.parametrize("cluster", ["1x2:fast+1x2:slow", "2x1:fast+2x1:slow"])
def test_two_roads_agree_and_nothing_is_below_the_bound(cluster: str, objective: str) -> None:
    instance = Instance(JOBS, cluster, throughputs=TABLE)
    best = osd.solve(instance, objective=objective)
    assert best.status == "optimal"
    assert best.schedule is not None
    assert check_schedule(instance, best.schedule, preemptive=False, objective=objective, value=float(best.value)) == []
    other = osd.solve(instance, objective=objective, model="gang-modes")
    assert (other.status, other.value) == ("optimal", best.value)
    floor = osd.bound(instance, objective)
    floor.verify(instance)
    assert floor.exact_float <= best.value
    for policy in ("fifo", "sjf", "fifo:skip=true+one-type"):
        run = osd.simulate(instance, policy)
        assert run.unfinished == []
        assert run.value(objective) >= best.value


def test_lp_order_takes_speeds_of_a_table() -> None:
    """It read their durations, of which there were none: a traceback."""
    table = Throughputs({("m", "V100", 1): Throughput(2.0)})
    jobs = [Job("a", iterations=8, profile="m"), Job("b", arrival=1, iterations=2, profile="m")]
    instance = Instance(jobs, Cluster((NodeGroup(gpus=1, gpu="V100"),)), throughputs=table)
    solution = osd.solve(instance, "total_completion_time", model="lp-order")
    assert solution.value == 8  # b from 1 to 2, then a to 6
