"""SRTF: Schrage's theorem on one machine, evictions, and what a restart costs."""

from __future__ import annotations

import pytest

from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job


def test_the_least_important_are_evicted_and_only_as_many_as_needed() -> None:
    jobs = [
        Job("a", gpus=2, duration=20),
        Job("b", gpus=1, duration=30),
        Job("c", gpus=1, duration=40),
        Job("d", arrival=1, gpus=2, duration=2),
    ]
    run = simulate(Instance(jobs, "1x4"), "srtf")
    assert run.preemptions == 2  # b and c; a keeps its GPUs
    assert run.schedule.completion.tolist() == [20, 32, 42, 3]


def test_an_evicted_job_whose_gpus_are_not_needed_keeps_running() -> None:
    # d needs 3: c (3 GPUs) is the most important of the evicted that would do alone, so a (1 GPU, last) keeps its GPU.
    jobs = [Job("c", gpus=3, duration=20), Job("a", gpus=1, duration=30), Job("d", arrival=1, gpus=3, duration=2)]
    run = simulate(Instance(jobs, "1x4"), "srtf")
    assert run.preemptions == 1
    assert run.schedule.completion.tolist() == [22, 30, 3]


@pytest.mark.parametrize(("restart", "completion"), [(0, [7, 3]), (2, [9, 3]), (0.5, [7.5, 3])])
def test_a_resumption_costs_its_restart_and_a_start_does_not(restart: float, completion: list[float]) -> None:
    instance = Instance([Job("a", duration=5), Job("b", arrival=1, duration=2)], "1x1")
    run = simulate(instance, f"srtf:restart={restart}")
    assert run.schedule.completion.tolist() == completion
    assert run.schedule.received.tolist() == [5, 2]
    assert run.metrics["gpu_hours"]["overhead"] * 3600 == pytest.approx(restart)


def test_overhead_paid_in_vain_is_paid_again() -> None:
    # a resumes at 2 and pays 3 s, but c comes at 4: 2 s are lost; from 5 on a pays 3 s once more.
    jobs = [Job("a", duration=5), Job("b", arrival=1, duration=1), Job("c", arrival=4, duration=1)]
    run = simulate(Instance(jobs, "1x1"), "srtf:restart=3")
    assert run.schedule.completion.tolist() == [12, 2, 5]
    assert run.preemptions == 2


def test_overhead_brings_nobody_nearer_to_the_end() -> None:
    # a resumes at 2, pays until 5, works until 6 and has 8 s left; so d, with 6.5 s, goes first after c.
    jobs = [
        Job("a", duration=10),
        Job("b", arrival=1, duration=1),
        Job("c", arrival=6, duration=1),
        Job("d", arrival=6, duration=6.5),
    ]
    run = simulate(Instance(jobs, "1x1"), "srtf:restart=3")
    assert run.schedule.completion.tolist() == [24.5, 2, 7, 13.5]
