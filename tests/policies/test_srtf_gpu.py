"""SRTF by GPU-time."""

from __future__ import annotations

import numpy as np
import pytest

from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job


def test_gpu_time_decides() -> None:
    # 3 GPUs x 2 s = 6 against 1 GPU x 5 s = 5: by GPU-time the narrow job is served first, by time the wide one.
    instance = Instance([Job("wide", gpus=3, duration=2), Job("narrow", duration=5)], "1x3")
    assert simulate(instance, "srtf-gpu").schedule.completion.tolist() == [7, 5]
    assert simulate(instance, "srtf").schedule.completion.tolist() == [2, 7]


def test_what_is_left_counts_not_what_was_asked_for() -> None:
    # At 4 the wide job has 3 x 1 = 3 GPU-seconds left, less than the 4 of the newcomer.
    jobs = [Job("wide", gpus=3, duration=5), Job("new", arrival=4, gpus=2, duration=2)]
    assert simulate(Instance(jobs, "1x3"), "srtf-gpu").schedule.completion.tolist() == [5, 7]
    jobs[1] = Job("new", arrival=3, gpus=2, duration=2)  # at 3 it has 6 left
    assert simulate(Instance(jobs, "1x3"), "srtf-gpu").schedule.completion.tolist() == [7, 5]


@pytest.mark.parametrize("seed", range(5))
def test_with_one_gpu_a_job_it_is_srtf(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs = [Job(str(j), arrival=int(rng.integers(0, 20)), duration=int(rng.integers(1, 9))) for j in range(30)]
    instance = Instance(jobs, "1x4")
    for restart in ("", ":restart=1"):
        one, other = simulate(instance, f"srtf{restart}"), simulate(instance, f"srtf-gpu{restart}")
        assert one.schedule.completion.tolist() == other.schedule.completion.tolist()
