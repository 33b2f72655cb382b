"""Speeds by GPU type: the readable rates, the compiled ones, what the engine does with them, what the referee says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from simulation.plain_policies import Asked

import optsched as osd
from optsched.check.referee import check_schedule
from optsched.errors import RowErrors, SimulationError
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.policy import Start
from optsched.speeds.duration import paces
from optsched.speeds.speed_tables import pace, speed_tables
from optsched.speeds.type_speeds import type_speeds

TABLE = Throughputs(
    {
        ("net", "V100", 1): Throughput(10.0),
        ("net", "K80", 1): Throughput(2.0),
        ("net", "V100", 2): Throughput(18.0, 8.0),
        ("net", "k80", 2): Throughput(4.0, 5.0),
        ("big", "V100", 2): Throughput(3.0),
        ("big", "K80", 2): Throughput(0.0),
    }
)


def starting(*on: tuple[tuple[int, int], ...]) -> Asked:
    """Starts every job at once on the nodes it is told."""
    return Asked(lambda view: [Start(j, on[j]) for j in view.arrived], uses=("nodes",))


def finish(cluster: str, gang: int, *on: tuple[int, int]) -> float:
    instance = Instance([Job("a", iterations=360, profile="net", gpus=gang)], cluster, throughputs=TABLE)
    run = osd.simulate(instance, starting(on))
    assert check_schedule(instance, run.schedule) == []
    return float(run.schedule.completion[0])


def test_a_gang_runs_at_the_rate_of_its_type_and_at_the_slowest_of_several() -> None:
    both = "2x2:V100+2x2:K80"
    assert finish(both, 1, (0, 1)) == 36
    assert finish(both, 1, (2, 1)) == 180
    assert finish(both, 2, (1, 2)) == 20  # together
    assert finish(both, 2, (0, 1), (1, 1)) == 45  # spread
    assert finish(both, 2, (2, 1), (3, 1)) == 72  # a measured table may say that apart is faster
    assert finish(both, 2, (0, 1), (2, 1)) == 72  # the slower of 8 and 5
    assert finish("2x1:V100+2x1:K80", 2, (0, 1), (1, 1)) == 20  # one-GPU nodes: the rate of a gang that sits together
    assert finish("2x1:V100+2x1:K80", 2, (0, 1), (2, 1)) == 90


def test_types_where_a_gang_does_not_run_are_not_for_it() -> None:
    instance = Instance([Job("a", iterations=6, profile="big", gpus=2)], "1x2:K80+1x2:V100", throughputs=TABLE)
    assert instance.eligible(0).tolist() == [False, True]
    run = osd.simulate(instance, "fifo")
    assert run.schedule.completion.tolist() == [2]
    with pytest.raises(SimulationError, match="node 0, whose GPUs it may not use"):
        osd.simulate(instance, starting(((0, 2),)))
    with pytest.raises(RowErrors, match="throughput of zero, or unknown, for every GPU type"):
        instance.with_cluster("4x2:K80")
    with pytest.raises(RowErrors, match="unknown model"):
        Instance([Job("a", iterations=6, profile="nett")], "1x1:V100", throughputs=TABLE)


def test_bounds_of_the_pace_and_what_every_placement_gives() -> None:
    cluster = Cluster((NodeGroup(1, 1, "V100"), NodeGroup(2, 2, "K80")))
    instance = Instance([Job("a", iterations=1, profile="net", gpus=2)], cluster, throughputs=TABLE)
    fastest, slowest = paces(instance)
    assert (1 / fastest[0], 1 / slowest[0]) == (8.0, 4.0)  # a V100 node of one GPU never holds both


@given(
    st.lists(st.tuples(st.sampled_from(["V100", "K80"]), st.integers(1, 3)), min_size=1, max_size=4),
    st.integers(1, 2),
    st.data(),
)
def test_compiled_and_readable_rates_are_equal(nodes: list[tuple[str, int]], gang: int, data: st.DataObject) -> None:
    cluster = Cluster(tuple(NodeGroup(gpus, 1, gpu) for gpu, gpus in nodes))
    assume(gang <= cluster.gpus)
    instance = Instance([Job("a", iterations=1, profile="net", gpus=gang)], cluster, throughputs=TABLE)
    speeds, tables = type_speeds(instance), speed_tables(instance)
    picked = data.draw(st.permutations([v for v, (_, gpus) in enumerate(nodes) for _ in range(gpus)]))[:gang]
    node, count = np.unique(picked, return_counts=True)
    compiled = pace(tables, 0, gang, node.astype(np.int64), count.astype(np.int64))
    assert compiled == 1 / speeds.rate(0, picked)
    fastest, slowest = paces(instance)
    assert fastest[0] <= compiled <= slowest[0]


def test_equal_tables_make_equal_instances_and_absurd_rates_are_named() -> None:
    rows = {("net", "V100", 1): Throughput(10.0), ("net", "K80", 1): Throughput(2.0)}
    job = [Job("a", iterations=6, profile="net")]
    one = Instance(job, "1x1:V100", throughputs=Throughputs(rows))
    other = Throughputs({(name, gpu.lower(), gpus): rate for (name, gpu, gpus), rate in reversed(rows.items())})
    assert one.digest == Instance(job, "1x1:V100", throughputs=other).digest
    faster = Throughputs({**rows, ("net", "V100", 1): Throughput(19.0)})
    assert one.digest != Instance(job, "1x1:V100", throughputs=faster).digest
    slow = Instance(job, "1x1:V100", throughputs=Throughputs({("net", "V100", 1): Throughput(1e-310)}))
    for policy in ("fifo", "hadar-e", "makespan-rounds", "gavel"):
        with pytest.raises(osd.InputError, match="at the speed of its profile"):
            osd.simulate(slow, policy)
    with pytest.raises(osd.InputError, match="at the speed of its profile"):
        osd.bound(slow, "makespan", "forking")
    with pytest.raises(osd.InputError, match="too short for these jobs"):
        osd.simulate(Instance([Job("a", duration=1e18)], "1x1"), "hadar-e")
