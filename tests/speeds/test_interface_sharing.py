"""Contention at the job level: the fixed point, its compiled form, every speed model, and beside the task level."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import polars as pl
import pytest
from examples import few
from hypothesis import given, strategies as st
from simulation.plain_policies import Ordered

import optsched as osd
from optsched.classes.task_sharing.simulation.iterations import TaskRun
from optsched.compiled import without_interpreting
from optsched.errors import InputError
from optsched.policies.simulate import simulate
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.simulation.policy import Order
from optsched.speeds.duration import communicating
from optsched.speeds.interface_sharing import (
    CommunicationShares,
    communication_share,
    communication_tables,
    fill_met,
    others_met,
)
from optsched.speeds.speed_tables import pace, speed_tables

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=9)
STEP = st.floats(1e-3, 10)
COST = Contention(1.0, 0.5, 0.25)


def cluster(nic: float = 2.0) -> osd.Cluster:
    return osd.Cluster((osd.NodeGroup(2, 3, nic_bandwidth=nic, intra_bandwidth=20.0),))


def mixed(contention: Contention | None = COST) -> Instance:
    jobs = [
        osd.Job("graph", gpus=3, iterations=5, profile="graph"),
        osd.Job("scaled", gpus=3, iterations=5, profile="scaled", batch_size=24),
        osd.Job("table", gpus=2, iterations=5, profile="table"),
        osd.Job("seconds", gpus=2, duration=5),
        osd.Job("one", gpus=1, iterations=5, profile="scaled", batch_size=8),
    ]
    return Instance(
        jobs,
        cluster(),
        profiles={"graph": osd.Profile((osd.Stage(2, 0.5, 0.5, 3.0, 2.0), osd.Stage(1, 1.0, 0.5)), ((0, 1, 2.0),))},
        scalings={"scaled": osd.Scaling(0.5, 0.25, within=0.1, across=2.0, overlap=2.0, most_local=4)},
        throughputs=osd.Throughputs({("table", "GPU", 2): osd.Throughput(2.0, 1.0)}),
        contention=contention,
    )


@given(SHARES, STEP)
def test_the_compiled_form_gives_the_same_fixed_point(shares: list[float], step: float) -> None:
    met = np.zeros(len(shares))
    fill_met(np.array(shares), step, met)
    np.testing.assert_allclose(met, others_met(shares, step), rtol=1e-9, atol=1e-12)
    slow = [1 + step * each for each in met]
    busy = [p * f / (1 - p + p * f) for p, f in zip(shares, slow, strict=True)]
    np.testing.assert_allclose(met, sum(busy) - np.array(busy), rtol=1e-9, atol=1e-12)
    assert all(0 <= each <= len(shares) - 1 for each in met)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), STEP)
def test_neighbours_never_make_anybody_faster(shares: list[float], step: float) -> None:
    fewer, more = others_met(shares[:-1], step), others_met(shares, step)
    assert all(x <= y * (1 + 1e-12) for x, y in zip(fewer, more, strict=False))


def test_two_alike_meet_as_the_square_says() -> None:
    # u = p (1 + s u) / (1 + p s u): p s u^2 + (1 - p s) u - p = 0
    p, s = 0.4, 1.3
    u = (p * s - 1 + math.sqrt((1 - p * s) ** 2 + 4 * p * p * s)) / (2 * p * s)
    assert others_met([p, p], s) == pytest.approx([u, u], rel=1e-14)
    assert others_met([1.0, 1.0, 1.0], s) == [2.0, 2.0, 2.0]  # nothing but all-reduces: as the task level has it
    assert others_met([], s) == []
    assert others_met([0.7], s) == [0.0]


def test_shares_of_every_speed_model() -> None:
    made = mixed()
    shares = CommunicationShares(made)
    assert communicating(made).tolist() == [True, True, False, False, False]
    assert shares.step == 1.5
    # a GPU's part of the interface is 2/3 B/s: the ring moves 3 bytes over it, and the second stage 2 (and 2 inside)
    apart = 1.5 + (2.0 / 20 + 2.0 * 1.5) + 3.0 * 1.5
    compute_time = 1.5 + 2.0 / 20
    assert shares.share(0, [0, 1, 0], apart, 1) == pytest.approx((apart - compute_time - 0.25) / apart)
    # 8 samples a GPU in 2 sub-steps of 4: C = 1.5; T = 1.5 + (1.5^2 + 2^2)^(1/2)
    pace = 1.5 + math.hypot(1.5, 2.0)
    assert shares.share(1, [0, 0, 1], pace, 2) == pytest.approx((pace - 3.0 - 0.25) / pace)
    assert [shares.share(1, [0, 0, 0], pace, 2), shares.share(2, [0, 1], 1.0, 1), shares.share(3, [0, 1], 1.0, 1)] == [
        0
    ] * 3


@pytest.mark.parametrize("compiled", [False, True])
def test_the_compiled_shares_are_the_readable_ones(compiled: bool) -> None:
    made = mixed()
    shares, tables, speeds = CommunicationShares(made), communication_tables(made), speed_tables(made)
    for j, entries in ((0, [(0, 1), (1, 2)]), (0, [(0, 2), (1, 1)]), (1, [(0, 1), (1, 2)])):
        pool, count = np.array(entries).T.copy()
        own = pace(speeds, j, 3, pool, count)
        steps = 2 if j == 1 else 1
        nodes = [node for node, replicas in entries for _ in range(replicas)]
        if compiled:
            with without_interpreting():
                found = communication_share(tables, j, 0, own, pool, count)
        else:
            found = communication_share(tables, j, 0, own, pool, count)
        assert found == pytest.approx(shares.share(j, nodes, own, steps), rel=1e-12)
        assert found > 0.1


def test_nobody_communicates_without_contention_or_on_one_node() -> None:
    assert not communicating(mixed(None)).any()
    assert not communicating(mixed().replace(cluster="1x4")).any()


def test_measured_ratios_are_of_the_task_level() -> None:
    made = mixed(Contention(1.0, kinds=("graph",), ratios=((0.5,),)))
    with pytest.raises(InputError, match="whole jobs contend by the linear model"):
        communicating(made)


# -- beside the task level, where every all-reduce is an event: on the workload of Ada-SRSF --------------------------------
#
# The same jobs both times, alone on their GPUs (a GPU has the memory of one), placed first fit, shortest service first, and
# no all-reduce ever waits. Two measures: how long jobs stay **where and when the task level ran them** (the formula and
# nothing else), and the mean JCT of a run of its own (a change of a thousandth of all forwards, which moves the task level
# itself, is the noise of that comparison: other jobs find other nodes).


def alone_on_their_gpus(seed: int) -> Instance:
    made = osd.generate("ada-srsf", seed)
    room = float(made.cluster.node_memory[0])
    return made.replace(jobs=made.table.with_columns(gpu_memory=pl.lit(room)))


@cache
def task_level(seed: int) -> TaskRun:
    run = simulate(alone_on_their_gpus(seed), "srsf:k=1000000+first-fit")
    assert isinstance(run, TaskRun)
    return run


def mean_jct(schedule: Schedule) -> float:
    return float((schedule.completion - schedule.instance.arrival).mean())


def stays(seed: int, *, contention: bool = True) -> list[float]:
    """Of every job over several nodes: seconds that the formula says it stays, over those that it stayed."""
    run, made = task_level(seed), osd.at_job_level(alone_on_their_gpus(seed))
    shares = CommunicationShares(made)
    rows = [row for row in run.schedule.segments() if len({node for node, _ in row.gpus}) > 1]
    nodes = [[node for node, _ in row.gpus] for row in rows]
    scalings, names = made.scalings, made.table["profile"].to_list()
    pace = [scalings[names[row.job]].compute + scalings[names[row.job]].across for row in rows]
    share = [shares.share(row.job, nodes[k], pace[k], 1) for k, row in enumerate(rows)]
    done = np.zeros(len(rows))
    times = sorted({row.start for row in rows} | {row.end for row in rows})
    for begin, end in itertools.pairwise(times):
        here = [k for k, row in enumerate(rows) if row.start <= begin and row.end >= end]
        met = dict.fromkeys(here, 0.0)
        for m in range(made.cluster.node_count):
            there = [k for k in here if m in nodes[k]]
            for k, others in zip(there, others_met([share[k] for k in there], shares.step), strict=True):
                met[k] = max(met[k], others)
        for k in here:
            slow = 1 + share[k] * shares.step * met[k] if contention else 1.0
            done[k] += (end - begin) / (pace[k] * slow)
    return [float(made.iterations[row.job] / work) for row, work in zip(rows, done, strict=True)]


def jct_error(seed: int) -> float:
    """Mean JCT of the job level over that of the task level, less 1."""
    made = alone_on_their_gpus(seed)
    service = made.gpus * made.iterations * (made.forward + made.backward)  # the queue of the task level
    run = simulate(osd.at_job_level(made), Ordered(lambda jobs: Order(service, skip=True)), "first-fit")
    return mean_jct(run.schedule) / mean_jct(task_level(seed).schedule) - 1


def noise(seed: int) -> float:
    """The same of the task level itself, where forwards take up to a thousandth more or less."""
    made, rng = alone_on_their_gpus(seed), np.random.default_rng(seed)
    other = {
        name: IterationTasks(each.forward * (1 + 1e-3 * rng.uniform(-1, 1)), each.backward, each.message)
        for name, each in made.tasks.items()
    }
    run = simulate(made.replace(tasks=other), "srsf:k=1000000+first-fit")
    return mean_jct(run.schedule) / mean_jct(task_level(seed).schedule) - 1


def test_jobs_stay_about_as_long_as_at_the_task_level() -> None:
    for seed in few(range(2), 1):
        assert abs(np.mean(stays(seed)) - 1) < 0.01
        assert np.abs(np.array(stays(seed)) - 1).mean() < 0.025
        assert np.mean(stays(seed, contention=False)) < 0.45  # what is left without the formula


@pytest.mark.study
def test_errors_over_twenty_seeds_are_those_that_the_documentation_states() -> None:
    """Of stays: mean, worst seed, mean over single jobs. Of the mean JCT: mean, mean of the sizes, worst. Its noise."""
    stay = [np.array(stays(seed)) - 1 for seed in range(20)]
    assert np.mean([each.mean() for each in stay]) == pytest.approx(-0.007, abs=5e-4)
    assert max(abs(each.mean()) for each in stay) == pytest.approx(0.017, abs=5e-4)
    assert np.mean([np.abs(each).mean() for each in stay]) == pytest.approx(0.020, abs=5e-4)
    jct = np.array([jct_error(seed) for seed in range(20)])
    assert jct.mean() == pytest.approx(0.019, abs=5e-4)
    assert np.abs(jct).mean() == pytest.approx(0.101, abs=5e-4)
    assert np.abs(jct).max() == pytest.approx(0.299, abs=5e-4)
    itself = np.array([noise(seed) for seed in range(20)])
    assert np.abs(itself).mean() == pytest.approx(0.025, abs=5e-4)
    assert np.abs(itself).max() == pytest.approx(0.165, abs=5e-4)
