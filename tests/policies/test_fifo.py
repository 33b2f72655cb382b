"""FIFO: strict and skipping, its bound at r = 0 and its bad families."""

from __future__ import annotations

from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job


def test_the_head_of_a_strict_queue_blocks() -> None:
    jobs = [Job("a", gpus=2, duration=4), Job("wide", arrival=1, gpus=3, duration=1), Job("b", arrival=2, duration=1)]
    instance = Instance(jobs, "1x3")
    assert simulate(instance, "fifo").schedule.completion.tolist() == [4, 5, 6]
    assert simulate(instance, "fifo:skip=true").schedule.completion.tolist() == [4, 5, 3]
