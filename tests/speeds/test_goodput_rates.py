"""Rates of elastic jobs: by hand, by a second method, and never above their limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulation.elastic_instances import elastic_instance, every_place, scaling

from optsched.check.context import CheckContext
from optsched.check.schedule_document import document_of
from optsched.classes.elastic.check.elastic_rules import judge_elastic
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Schedule, Segment
from optsched.speeds.duration import segment_paces
from optsched.speeds.goodput_rates import Goodputs
from optsched.speeds.job_goodput import iterations_with, split

TABLE = Scaling(0.2, 0.05, within=0.1, across=1.0, most_local=12, iterations=((12, 1000.0), (24, 600.0), (48, 400.0)))


def one(scalings: Scaling, batch: int, gang: int = 1, cluster: str = "2x4") -> Instance:
    return Instance(
        [Job("a", gpus=gang, iterations=10, profile="m", batch_size=batch)], cluster, scalings={"m": scalings}
    )


def test_by_hand() -> None:
    # on 2 GPUs of a node b = 12 takes 0.2 + 0.3 + 0.1 s; b = 24 takes 0.9 s, worth 1000 / 600; b = 48 has two sub-steps
    rates = Goodputs(one(TABLE, 12))
    assert rates.rate(0, ((0, 2),)) == pytest.approx(max(1 / 0.6, 1000 / 600 / 0.9, 1000 / 400 / (0.8 + 0.8 + 0.1)))
    assert rates.of(0).best((2,))[1] == 24  # type: ignore[union-attr]
    assert rates.rate(0, ((0, 1),)) == pytest.approx(1 / 0.8)
    # apart, 1 s of communication: 2.5 / 2.6 iterations a second with the largest batch, 1.67 / 1.8 with the middle one
    assert rates.rate(0, ((0, 1), (1, 1))) == pytest.approx(2.5 / 2.6)


def test_a_job_counts_in_its_own_iterations() -> None:
    twelve, large = Goodputs(one(TABLE, 12)), Goodputs(one(TABLE, 48))
    for on in every_place([4, 4]):
        assert large.rate(0, on) == pytest.approx(twelve.rate(0, on) * 400 / 1000)


def test_between_the_rows_iterations_are_linear_and_beyond_them_a_job_keeps_its_batch() -> None:
    assert iterations_with(TABLE, 18) == pytest.approx(800)
    assert iterations_with(TABLE, 49) is None
    assert iterations_with(TABLE, 11) is None
    rates = Goodputs(one(TABLE, 96))
    assert rates.rate(0, ((0, 4),)) == pytest.approx(1 / (1.6 + 0.1))  # 24 samples in two steps of 12
    assert rates.of(0).best((4,))[1] == 96  # type: ignore[union-attr]


def test_every_replica_has_a_sample() -> None:
    small = Scaling(0.1, 0.1, iterations=((1, 50.0), (3, 20.0)))
    rates = Goodputs(one(small, 1))
    assert rates.rate(0, ((0, 3),)) > 0
    assert rates.rate(0, ((0, 4),)) == 0
    assert rates.table(0)[:, 0].tolist()[4:] == [0.0] * 5
    # a gang that is wider than its batch runs as the rigid job does
    wide = Goodputs(one(Scaling(0.1, 0.1), 2, gang=4))
    assert [wide.rate(0, ((0, r),)) > 0 for r in (1, 2, 3, 4)] == [True, True, False, True]


@pytest.mark.parametrize("measured", [False, True])
def test_on_its_own_gang_with_its_own_batch_alone_it_runs_as_in_the_other_engine(measured: bool) -> None:
    for seed in range(2):
        instance = elastic_instance(seed, rigid=False, measured=measured)
        plain = {name: dataclass_without_iterations(each) for name, each in instance.scalings.items()}
        instance = instance.replace(scalings=plain)
        rates, sizes = Goodputs(instance), instance.cluster.node_gpus.tolist()
        for j in range(instance.n):
            for on in [on for on in every_place(sizes) if sum(c for _, c in on) == instance.gpus[j]]:
                nodes = np.repeat(*np.array(on).T)
                pace = segment_paces(instance, np.array([j]), np.array([0, nodes.size]), nodes)[0]
                assert rates.rate(j, on) == pytest.approx(1 / pace, rel=1e-15)


def dataclass_without_iterations(each: Scaling) -> Scaling:
    return Scaling.from_json({**each.to_json(), "iterations": None})


@pytest.mark.parametrize("memory", [False, True])
def test_the_split_is_the_first_sub_batch_that_fits(memory: bool) -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        each, room = scaling(rng, memory=memory), float(rng.uniform(0, 12))
        batch, replicas = int(rng.integers(1, 60)), int(rng.integers(1, 9))
        chain = each.sub_batches(batch, replicas)
        first = next((one for one in chain if not memory or one.memory <= room), chain[0])
        assert split(each, batch, replicas, room) == (first.size, first.steps)


@pytest.mark.parametrize(("memory", "measured"), [(False, False), (True, False), (False, True)])
def test_the_referee_s_road_and_the_limits(memory: bool, measured: bool) -> None:
    for seed in range(2):
        instance = elastic_instance(seed + 100, jobs=4, memory=memory, measured=measured)
        rates, sizes = Goodputs(instance), instance.cluster.node_gpus.tolist()
        for j in instance.jobs_at("scalings").tolist():
            best = np.zeros(instance.cluster.gpus + 1)
            for on in every_place(sizes):
                gpus = [(node, k) for node, c in on for k in range(c)]
                schedule = Schedule.from_segments(instance, [Segment(j, tuple(gpus), 0.0, 1.0, 1.0)])
                context = CheckContext(instance, document_of(schedule, instance))
                judge_elastic(context)
                rate = rates.rate(j, on)
                assert (math.isnan(context.pace[0]) and rate == 0) or rate == pytest.approx(
                    1 / context.pace[0], rel=1e-12
                )
                best[len(gpus)] = max(best[len(gpus)], rate)
            limits = rates.limits(j)
            assert (limits >= best).all()
            assert (rates.table(j).max(axis=1) <= limits).all()
            if not measured:
                assert limits == pytest.approx(best, rel=1e-15)


def test_memory_of_the_job_limits_its_sub_batch() -> None:
    each = Scaling(0.1, 0.1, memory=1.0, memory_per_sample=1.0)
    job = Job("a", gpus=2, iterations=10, profile="m", batch_size=16, gpu_memory=5.0)
    rates = Goodputs(Instance([job], "1x4", scalings={"m": each}))
    # four samples at a time: 16 on one GPU in four steps, 8 on each of two in two
    assert rates.rate(0, ((0, 1),)) == pytest.approx(1 / (4 * 0.5))
    assert rates.rate(0, ((0, 2),)) == pytest.approx(1 / (2 * 0.5))


def test_rigid_jobs_run_on_their_gang_alone() -> None:
    instance = Instance([Job("a", gpus=2, duration=5)], "2x2")
    rates = Goodputs(instance)
    assert [rates.rate(0, on) for on in (((0, 1),), ((0, 2),), ((0, 1), (1, 1)), ((0, 2), (1, 1)))] == [0, 1, 1, 0]
    assert rates.table(0)[2].tolist() == [1, 1]
    assert rates.limits(0).sum() == 1


@pytest.mark.parametrize("measured", [False, True])
def test_numbers_of_gpus_that_are_left_out_are_as_slow_as_two_smaller_ones(measured: bool) -> None:
    instances = [elastic_instance(7, memory=not measured, measured=measured)]
    instances += [] if measured else [generate("sharing-cluster", 2, jobs=12, nodes=15)]
    for instance in instances:
        rates = Goodputs(instance)
        for j in range(instance.n):
            options, table = rates.options(j), rates.table(j)
            assert ([options.together, options.spread] == table[options.gpus].T).all()
            best = table.max(axis=1)
            assert set(np.flatnonzero(best)) >= set(options.gpus.tolist())
            for r in set(np.flatnonzero(best).tolist()) - set(options.gpus.tolist()):
                assert np.count_nonzero(best[:r] >= best[r]) >= 2
            can = np.flatnonzero(best)
            for most in range(1, instance.cluster.gpus + 1):
                below = can[can <= most]
                assert rates.rate_within(j, most) == (best[below[-1] if below.size else can[0]] if can.size else 1.0)
