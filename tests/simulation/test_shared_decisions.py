"""Policies in plain Python that share GPUs by name, on the same engine as all others."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest

from optsched import Instance, Job, Start, Stop
from optsched.errors import InputError, KnowledgeError, SimulationError
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.throughputs import Throughput, Throughputs
from simulation.plain_policies import Asked

XI = 1.5


def scripted(*decisions: Any, **more: Any) -> Asked:
    """Decides what a list says, up to the next None at every question."""
    left = iter(decisions)
    return Asked(lambda view: takewhile(lambda each: each is not None, left), **{"uses": ("sharing",), **more})


def pair(**more: Any) -> Instance:
    return Instance([Job("a", duration=10), Job("b", arrival=4, duration=10)], "1x1", interference=XI, **more)


@pytest.mark.compiled
def test_a_partner_that_is_stopped_leaves_the_other_alone() -> None:
    # a: 4 s alone, 3 s beside b (2 s of work), then 4 s alone, 11 in all; b does 2 of 10 and waits until 11
    instance = Instance(
        [Job("a", duration=10), Job("b", arrival=4, duration=10), Job("c", arrival=7, duration=1)],
        "1x1",
        interference=XI,
    )
    gpu = ((0, 0),)
    policy = scripted(
        Start(0, gpus=gpu), None, Start(1, gpus=gpu), None, Stop(1), None, Start(1, gpus=gpu), None, Start(2)
    )
    run = simulate(instance, policy)
    rows = sorted((row.job, row.start, row.end, row.work) for row in run.schedule.segments())
    assert rows == [(0, 0, 11, 10), (1, 4, 7, 2), (1, 11, 19, 8), (2, 19, 20, 1)]
    assert (run.preemptions, run.preemptive, run.schedule_class) == (1, True, "gpu-sharing")


@pytest.mark.parametrize(("restart", "completions"), [(0.0, [13.0, 9.0, 7.0]), (2.0, [41 / 3, 11.0, 7.0])])
def test_a_restart_beside_another_is_paid_and_slows_it_meanwhile(restart: float, completions: list[float]) -> None:
    # b moves at 6 to the GPU of a, which has 6 s left, and has 2 s left itself
    instance = Instance(
        [Job("a", duration=12), Job("b", duration=8), Job("c", arrival=6, duration=1)], "1x2", interference=XI
    )
    one, two = ((0, 0),), ((0, 1),)
    moves = Start(0, gpus=one), Start(1, gpus=two), None, Stop(1), Start(1, gpus=one), Start(2)
    policy = scripted(*moves, restart=restart)
    assert simulate(instance, policy).schedule.completion.tolist() == pytest.approx(completions, rel=1e-15)


def test_who_stands_still_beside_another_goes_on() -> None:
    instance = Instance(
        [Job("a", duration=10), Job("b", duration=10), Job("c", arrival=3, duration=1)], "1x1", interference=XI
    )
    gpu = ((0, 0),)
    moves = Start(0, gpus=gpu), Start(1, gpus=gpu), None, Stop(0), Start(0, gpus=gpu)
    run = simulate(instance, scripted(*moves, restart=5))
    assert run.preemptions == 0
    assert run.schedule.completion.tolist()[:2] == [15.0, 15.0]


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (Start(0, gpus=((0, 1),)), r"names GPU \(0, 1\) \(expected: \(node, index\) of the GPUs of 1x1\)"),
        (Start(0, gpus=((0, 0), (0, 0))), "chooses 1 GPUs for job 'a' \\(expected: 1 different ones\\)"),
        (Start(0, gpus=((0, 0),), option=1), r"chooses sub-batch 1 for job 'a' \(expected: 0..0\)"),
        (Start(0, option=-1), "chooses sub-batch -1"),
        (Start(0, gpus=(3,)), r"names GPU 3 \(expected: \(node, index\)"),  # type: ignore[arg-type]
        (Start(0, gpus=((0, 0.5),)), r"names GPU \(0, 0.5\)"),  # type: ignore[arg-type]
        (Start(0, gpus=((0, 0),), option="a"), "chooses sub-batch 'a'"),  # type: ignore[arg-type]
        (Start(1, gpus=((0, 0),)), "job 'b' is started but does not wait"),
    ],
)
def test_illegal_choices_are_named(decision: Start, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        simulate(pair(), scripted(decision))


def test_a_third_on_a_gpu_is_refused() -> None:
    jobs = [Job(name, duration=9) for name in "abc"]
    gpu = ((0, 0),)
    three = scripted(Start(0, gpus=gpu), Start(1, gpus=gpu), Start(2, gpus=gpu))
    with pytest.raises(SimulationError, match=r"puts job 'c' on GPU \(0, 0\)"):
        simulate(Instance(jobs, "1x1", interference=XI), three)


def test_only_who_shares_may_name_gpus_or_ask_for_neighbours() -> None:
    with pytest.raises(SimulationError, match="a policy that shares GPUs says so"):
        simulate(pair(), scripted(Start(0, gpus=((0, 0),)), uses=()))
    with pytest.raises(KnowledgeError, match="does not say that it uses sharing"):
        simulate(pair(), Asked(lambda view: [Start(0)] if view.idle(0) else []))
    with pytest.raises(InputError, match="nothing says what that costs"):
        simulate(Instance([Job("a", duration=1)], "1x1"), scripted())


def test_types_preemption_and_sharing_in_one_policy() -> None:
    table = Throughputs({("m", "V100", 1): Throughput(2.0), ("m", "K80", 1): Throughput(1.0)})
    cluster = Cluster([NodeGroup(1, gpu="V100"), NodeGroup(1, gpu="K80")])
    jobs = [
        Job("long", iterations=40, profile="m"),
        Job("short", arrival=1, duration=2),
        Job("m", arrival=1, iterations=6, profile="m"),
    ]
    instance = Instance(jobs, cluster, throughputs=table, interference=XI)
    fast, slow = ((0, 0),), ((1, 0),)
    # long on V100 from 0 to 1, then beside `m` on the K80; short alone on the V100, long is back there at 3
    policy = scripted(
        Start(0, gpus=fast),
        None,
        Stop(0),
        Start(1, gpus=fast),
        Start(2, gpus=slow),
        Start(0, gpus=slow),
        None,
        Stop(0),
        Start(0, gpus=fast),
    )
    run = simulate(instance, policy)
    both = 2 / XI  # iterations of each on the K80 in the two seconds that they share it
    assert run.schedule.completion[1] == 3.0
    assert run.schedule.completion[2] == pytest.approx(3 + 6 - both)
    assert run.schedule.completion[0] == pytest.approx(3 + (40 - 2 - both) / 2)
