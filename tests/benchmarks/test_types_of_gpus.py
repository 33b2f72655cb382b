"""Whole runs of the policies that know GPU types, on 1,000 GPUs of three of them, beside FIFO on the same jobs.

``ratio`` = the policy / FIFO in plain Python: how much longer it thinks than the engine takes to move the jobs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from benchmarks.timing import cpu_seconds

from optsched.compiled import without_interpreting
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance
from optsched.simulation.policy import Knowledge, Start, View

CLUSTER = "84x4:V100+83x4:P100+83x4:K80"


class PlainFifo:
    """In order of arrival, those that do not fit skipped."""

    name, knowledge = "plain-fifo", Knowledge.NON_CLAIRVOYANT

    def decide(self, view: View) -> Any:
        for j in view.waiting:
            if view.fits(j):
                yield Start(j)


@cache
def trace(jobs: int) -> Instance:
    return generate("gavel-continuous", 1, jobs=jobs, cluster=CLUSTER)


@pytest.mark.bench
@pytest.mark.parametrize(
    ("policy", "jobs"), [("hadar", 2000), ("gavel:policy=max_min_fairness_perf", 2000), ("hadar-e", 500)]
)
def test_a_trace_on_a_thousand_gpus_of_three_types(benchmark: Any, policy: str, jobs: int) -> None:
    instance = trace(jobs)
    with without_interpreting():
        for each in (policy, PlainFifo()):  # compiles
            simulate(instance.head(50), each)
        run = benchmark.pedantic(simulate, (instance, policy), rounds=1)
        seconds = cpu_seconds(lambda: simulate(instance, policy), 2)
        floor = cpu_seconds(lambda: simulate(instance, PlainFifo()), 2)
    assert run.metrics["finished"] == jobs
    benchmark.extra_info["cpu_seconds"] = seconds
    benchmark.extra_info["events"] = run.events
    benchmark.extra_info["ratio"] = seconds / floor
