"""Elastic jobs that meet on network interfaces: against a naive integration of rates, and against rigid runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from examples import explored

import optsched as osd
from optsched.policies.simulate import simulate
from optsched.problem.contention import Contention
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Schedule
from optsched.simulation.policy import Start, View
from optsched.speeds.goodput import Goodputs
from simulation.contending_world import ElasticWorld, random_contending_instance, worth
from simulation.test_elastic import Dice, run_elastic

SEEDS = range(6 if explored() else 3)


class OwnGangs:
    """Says that it resizes, and gives every job its own gang on the first free GPUs, passing over who does not fit."""

    name, knowledge, uses = "own-gangs", "non-clairvoyant", ("widths",)

    def decide(self, view: View) -> Iterator[Start]:
        for job in view.waiting:
            missing, on = view.gpus(job), []
            for node, free in enumerate(view.free.tolist()):
                if free and missing:
                    on.append((node, min(free, missing)))
                    missing -= on[-1][1]
            if not missing:
                yield Start(job, on=tuple(on))


@cache
def at_random(seed: int) -> Schedule:
    return run_elastic(random_contending_instance(seed), Dice(seed, round=1.0, restart=0.0)).schedule


def test_every_segment_does_what_its_neighbours_leave_it() -> None:
    contended = 0
    for seed in SEEDS:
        schedule = at_random(seed)
        work, done = worth(schedule.instance, schedule, ElasticWorld)
        np.testing.assert_allclose(work, done, rtol=1e-9, atol=1e-9)
        nearly = schedule.instance.replace(contention=Contention(1.0, -1.0 + 1e-12))
        alone = worth(nearly, schedule, ElasticWorld)[1]
        contended += any(x < y * (1 - 1e-3) for x, y in zip(done, alone, strict=True))
    assert contended > len(SEEDS) // 2


def test_jobs_with_their_own_gangs_run_as_rigid_jobs_do() -> None:
    slowed = 0
    for seed in SEEDS:
        made = random_contending_instance(seed)
        found = run_elastic(made, OwnGangs()).schedule.completion
        expected = simulate(made, "fifo:skip=true+first-fit").schedule.completion
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        without = simulate(made.replace(contention=None), "fifo:skip=true+first-fit").schedule.completion
        slowed += bool((expected > without * (1 + 1e-6)).any())
    assert slowed > len(SEEDS) // 3


def test_the_share_is_that_of_the_batch_that_is_best_there() -> None:
    # a batch of 8 on 2 nodes: 8 + 2 s; of 16, worth two of its iterations: 16 + 2 s; the larger one is better
    scaling = Scaling(0.0, 2.0, across=2.0, iterations=((8, 10.0), (16, 5.0)))
    job = osd.Job("a", gpus=2, iterations=10, profile="p", batch_size=8)
    made = osd.Instance([job], "4x1", scalings={"p": scaling}, contention=Contention(1.0, 0.0, 0.5))
    goodputs = Goodputs(made)
    assert goodputs.rate(0, ((0, 1), (1, 1))) == pytest.approx(2 / 18)
    assert goodputs.share(0, ((0, 1), (1, 1))) == pytest.approx((18 - 16 - 0.5) / 18)
    assert goodputs.share(0, ((0, 1),)) == 0.0
    assert Goodputs(made.replace(contention=None)).share(0, ((0, 1), (1, 1))) is None


def test_two_that_widen_meet_though_each_asks_for_one_gpu() -> None:
    scaling = Scaling(0.0, 1.0, across=2.0)
    jobs = [osd.Job(name, gpus=1, iterations=3, profile="p", batch_size=4) for name in "ab"]
    made = osd.Instance(jobs, "2x2", scalings={"p": scaling}, contention=Contention(1.0, 0.0))

    class Spread:
        name, knowledge, uses = "spread", "non-clairvoyant", ("widths",)

        def decide(self, view: View) -> Iterator[Start]:
            yield from (Start(job, on=((0, 1), (1, 1))) for job in view.waiting)

    found = run_elastic(made, Spread()).schedule
    # 2 s of computing and 2 s of communication an iteration, p = 1/2: u = (1 + u)/2 / (1/2 + (1 + u)/2), f = 1 + u
    met = (5**0.5 - 1) / 2
    np.testing.assert_allclose(found.completion, 3 * 4 * (1 + met / 2), rtol=1e-12)
    alone = run_elastic(made.replace(contention=None), Spread()).schedule
    np.testing.assert_allclose(alone.completion, 12.0)
