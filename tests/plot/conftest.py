"""Schedules made by hand: what a picture must show of them can be counted on paper."""

from __future__ import annotations

import pytest

from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment


@pytest.fixture
def gangs() -> Schedule:
    """Two nodes of 4 GPUs; job a runs on three runs of neighbouring GPUs, b is preempted once and restarts for 5 s."""
    jobs = [
        Job("a", arrival=0, gpus=4, duration=100),
        Job("b", arrival=10, gpus=2, duration=60),
        Job("c", arrival=20, gpus=1, duration=30),
    ]
    segments = [
        Segment(0, ((0, 3), (0, 0), (1, 2), (0, 1)), 0, 100, 100),
        Segment(1, ((1, 0), (1, 1)), 10, 50, 40),
        Segment(2, ((1, 1),), 50, 80, 30),
        Segment(1, ((1, 0), (1, 1)), 80, 105, 20),
    ]
    return Schedule.from_segments(Instance(jobs, "2x4:V100", name="by hand"), segments, policy="mine")
