"""Tasks per CPU second of the task level, against a bare loop that only advances as many clocks.

The workload is that of the study: 160 jobs on 64 GPUs; at scale 1000 some 4.4 million tasks.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.timing import cpu_seconds
from numba import njit

from optsched.compiled import without_interpreting
from optsched.io.traces.generate import generate
from optsched.policies.simulate import specify
from optsched.problem.instance import Instance
from optsched.simulation.iterations import run_iterations
from optsched.simulation.next_event import new_tree, ringing, set_time


@cache
def workload(scale: int) -> Instance:
    return generate("ada-srsf", 1, scale=scale)


@njit
def clocks_alone(tree: npt.NDArray[np.float64], step: npt.NDArray[np.float64], tasks: int) -> float:
    """``tasks`` times: take the clock that rings next and set it anew."""
    now = 0.0
    for clock in range(step.size):
        set_time(tree, clock, step[clock])
    for _ in range(tasks):
        now = tree[1]
        clock = ringing(tree)
        set_time(tree, clock, now + step[clock])
    return now


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("spec", ["srsf:k=1", "srsf:k=2", "ada-srsf", "k-way", "ada-srsf+first-fit", "ada-srsf+random"])
@pytest.mark.parametrize("scale", [10, 1000])
def test_tasks_per_cpu_second(benchmark: Any, scale: int, spec: str) -> None:
    instance, chosen = workload(scale), specify(spec)
    policy: Any = chosen.policy
    run_iterations(workload(10), policy, chosen.placement)  # compiled
    made = benchmark.pedantic(run_iterations, (instance, policy, chosen.placement), rounds=1)
    tasks = made.events
    alone = cpu_seconds(lambda: run_iterations(instance, policy, chosen.placement, record=False), 3)
    step = np.random.default_rng(0).uniform(0.02, 0.06, 64)
    clocks_alone(new_tree(64), step, 1)
    floor = cpu_seconds(lambda: clocks_alone(new_tree(64), step, tasks), 3)
    benchmark.extra_info["tasks"] = tasks
    benchmark.extra_info["tasks_per_second"] = tasks / alone
    benchmark.extra_info["with_log"] = tasks / made.seconds
    benchmark.extra_info["ratio"] = alone / floor
    assert not made.unfinished
    assert tasks >= 2 * int((instance.gpus * instance.iterations).sum())


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("spec", ["srsf:k=1", "leader-first"])
def test_tasks_per_cpu_second_of_many_jobs(benchmark: Any, spec: str) -> None:
    """5,000 jobs on 1,000 GPUs; what leader-first looks at before a transfer does not grow with the jobs."""
    instance, chosen = generate("ada-srsf", 1, jobs=5000, scale=10).replace(cluster="250x4"), specify(spec)
    policy: Any = chosen.policy
    with without_interpreting():
        run_iterations(workload(10), policy, chosen.placement)  # compiles
        made = benchmark.pedantic(run_iterations, (instance, policy, chosen.placement), rounds=1)
        alone = cpu_seconds(lambda: run_iterations(instance, policy, chosen.placement, record=False), 3)
    benchmark.extra_info["tasks"] = made.events
    benchmark.extra_info["tasks_per_second"] = made.events / alone
    assert not made.unfinished
