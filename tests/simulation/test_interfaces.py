"""Contention at the job level in the engine, against a naive integration of rates and a naive event simulator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from examples import explored

import optsched as osd
from optsched.compiled import without_interpreting, without_machine_code
from optsched.policies.simulate import simulate, specify
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Schedule
from optsched.simulation.entry_points import EntryPoints
from optsched.simulation.policy import Order, Start, View
from optsched.simulation.records import RUNNING, WAITING
from optsched.simulation.state import new_state
from optsched.speeds.goodput_rates import Goodputs
from simulation.contending_world import ElasticWorld, Present, World, random_contending_instance, worth
from simulation.plain_policies import Asked, FirstFree
from simulation.reference import Counts, Replay, Rule, Task, first_fit
from simulation.test_elastic import Dice, run_elastic

SEEDS = range(12 if explored() else 3)
POLICIES = [
    "fifo:skip=true+first-fit",
    "srtf+first-fit",
    "srtf+random",
    "tiresias:threshold=20+first-fit",
    "a-srpt+first-fit",
    "gavel:policy=max_min_fairness_perf,round=3",
    "sjf-ffs",
    "sjf-bsbf",
    "packed",
]


def _packed(view: View) -> Iterator[Any]:
    """Preempts and shares in plain Python: the shortest remaining job first, anywhere, beside anybody if it must."""
    if view.arrived:
        for job in view.running[::2]:
            yield osd.Stop(job)
    for job in sorted(view.waiting, key=view.remaining):
        gpus = [*view.idle(job), *view.open(job)][: view.gpus(job)]
        if len(gpus) == view.gpus(job):
            yield osd.Start(job, gpus=gpus)


def _schedule(made: Instance, policy: str) -> Schedule:
    return simulate(made, Asked(_packed, uses=("sharing",)) if policy == "packed" else policy).schedule


@pytest.mark.parametrize("policy", [*POLICIES, "elastic"])
def test_every_segment_does_what_its_neighbours_leave_it(policy: str) -> None:
    contended, worlds = 0, ElasticWorld if policy == "elastic" else World
    for seed in SEEDS:
        made = random_contending_instance(seed)
        schedule = at_random(seed) if policy == "elastic" else _schedule(made, policy)
        work, done = worth(made, schedule, worlds)
        np.testing.assert_allclose(work, done, rtol=1e-9, atol=1e-9)
        alone = worth(made.replace(contention=Contention(1.0, -1.0 + 1e-12)), schedule, worlds)[1]
        contended += any(x < y * (1 - 1e-3) for x, y in zip(done, alone, strict=True))
    assert contended > len(SEEDS) // 5


def _replayed(made: Instance) -> list[float]:
    """Completions of first come, first served, passing over who does not fit."""
    world = World(made)

    def pace(held: dict[int, Counts]) -> dict[int, float]:
        present = []
        for j, counts in held.items():
            nodes, options = [m for m, count in counts.items() for _ in range(count)], made.sub_batches(j)
            own = enumerate(nodes, start=j * made.cluster.gpus)  # nobody shares a GPU
            present.append(Present(j, tuple((m, k) for k, m in own), options[0].steps if options else 1))
        return dict(zip(held, world.seconds(present), strict=True))

    columns = zip(*(each.tolist() for each in (made.arrival, made.gpus, made.work)), strict=True)
    everywhere = [True] * made.cluster.node_count
    tasks = [Task(j, r, gang, work, everywhere, r) for j, (r, gang, work) in enumerate(columns)]
    rule = Rule(key=made.arrival.tolist(), slope=[0.0] * made.n)
    return [task.segments[-1][1] for task in Replay(tasks, made.cluster.node_gpus, rule, first_fit, pace).tasks]


def test_first_come_first_served_completes_when_the_reference_says() -> None:
    for seed in SEEDS:
        made = random_contending_instance(seed)
        found = _schedule(made, "fifo:skip=true+first-fit").completion
        np.testing.assert_allclose(found, _replayed(made), rtol=1e-9)


def test_a_start_or_an_end_settles_those_on_its_interfaces_and_nobody_else() -> None:
    # gangs of three on nodes of two: the first two meet on the second node, the last two on the fifth
    jobs = [osd.Job(str(j), arrival=j, gpus=3, iterations=30 - 7 * j, profile="net", batch_size=3) for j in range(4)]
    scaling = osd.Scaling(0.5, 0.0, across=0.5)
    made = Instance(jobs, "6x2", scalings={"net": scaling}, contention=Contention(1.0))
    placement = specify("fifo+first-fit").placement
    state, site = new_state(made, Order(key=made.arrival), placement)
    engine, settled = EntryPoints(state, site), []
    while (t := engine.next_time()) < math.inf:
        engine.apply_events(t)
        for j in np.flatnonzero(state.jobs["status"] == WAITING).tolist():
            engine.start(j, engine.place(placement.place, j))
        running = np.flatnonzero(state.jobs["status"] == RUNNING)
        paid = state.executions["paid"][state.jobs["execution"][running]]
        settled.append((running.tolist(), [j for j, since in zip(running.tolist(), paid, strict=True) if since == t]))
    assert settled[:4] == [([0], [0]), ([0, 1], [0, 1]), ([0, 1, 2], [2]), ([0, 1, 2, 3], [2, 3])]
    # then the last job ends first, which sets the third free, and so on
    assert settled[4:] == [([0, 1, 2], [2]), ([0, 1], []), ([0], [0]), ([], [])]


@pytest.mark.study
@pytest.mark.parametrize("policy", ["fifo:skip=true+first-fit", "srtf+random", "sjf-bsbf", "packed"])
def test_interpreted_and_compiled_runs_are_the_same(policy: str) -> None:
    for seed in SEEDS:
        made = random_contending_instance(seed)
        with without_machine_code():
            interpreted = _schedule(made, policy)
        with without_interpreting():
            compiled = _schedule(made, policy)
        for field in ("job", "start", "end", "work", "gpu_node"):
            assert (getattr(interpreted, field) == getattr(compiled, field)).all()


# -- Elastic jobs that meet on network interfaces: against a naive integration of rates, and against rigid runs -----------


@cache
def at_random(seed: int) -> Schedule:
    return run_elastic(random_contending_instance(seed), Dice(seed, round=1.0, restart=0.0)).schedule


def test_jobs_with_their_own_gangs_run_as_rigid_jobs_do() -> None:
    slowed = 0
    for seed in SEEDS:
        made = random_contending_instance(seed)
        found = run_elastic(made, FirstFree("widths")).schedule.completion
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

    spread = Asked(lambda view: [Start(job, on=((0, 1), (1, 1))) for job in view.waiting], uses=("widths",))
    found = run_elastic(made, spread).schedule
    # 2 s of computing and 2 s of communication an iteration, p = 1/2: u = (1 + u)/2 / (1/2 + (1 + u)/2), f = 1 + u
    met = (5**0.5 - 1) / 2
    np.testing.assert_allclose(found.completion, 3 * 4 * (1 + met / 2), rtol=1e-12)
    alone = run_elastic(made.replace(contention=None), spread).schedule
    np.testing.assert_allclose(alone.completion, 12.0)
