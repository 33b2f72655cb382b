"""Events per CPU second of the engine, against a bare compiled heap loop with the same number of events.

The engine alone: from the queue order to the last event, without naming GPUs (``with_names`` includes that).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from benchmarks.timing import cpu_seconds
from numba import njit

from optsched.compiled import without_interpreting
from optsched.compiled.heap import pop, push
from optsched.io.traces.generate import generate
from optsched.policies.simulate import Specification, specify
from optsched.problem.instance import Instance
from optsched.simulation.engine import run_policy
from optsched.simulation.ordered import ordered_loop
from optsched.simulation.policy import KnownJobs, Start
from optsched.simulation.records import FINISHED_RUN, LOG_FULL
from optsched.simulation.state import State, grown, new_state

LOAD = 0.9
Ints = npt.NDArray[np.int64]


@cache
def trace(jobs: int, nodes: int = 64) -> Instance:
    """Poisson arrivals at load 0.9 on nodes of 8 GPUs, log-normal durations, gangs of 1, 2, 4, 8; whole seconds."""
    rng = np.random.default_rng(0)
    gpus, duration = rng.choice([1, 2, 4, 8], jobs), np.ceil(rng.lognormal(7.0, 1.5, jobs))
    gaps = rng.exponential(float(gpus @ duration) / jobs / (8 * nodes) / LOAD, jobs)
    table = pl.DataFrame({"arrival": np.floor(np.cumsum(gaps)), "gpus": gpus, "duration": duration})
    instance = Instance(table, f"{nodes}x8", name=f"{jobs} jobs")
    assert instance.job_class.size == jobs  # arrays are computed once an instance, not once a run
    return instance


@njit
def heap_loop(arrival: Ints, duration: Ints, heap: Ints) -> int:
    """Push every arrival's completion, pop every completion when its time comes: 2 n events, nothing else."""
    size, events = 0, 0
    for j in range(arrival.size):
        while size > 0 and heap[0] <= arrival[j]:
            pop(heap, 0, size)
            size -= 1
            events += 1
        size = push(heap, 0, size, arrival[j] + duration[j])
        events += 1
    while size > 0:
        pop(heap, 0, size)
        size -= 1
        events += 1
    return events


def engine(instance: Instance, chosen: Specification) -> State:
    """The compiled loop and nothing else."""
    policy: Any = chosen.policy
    state, site = new_state(instance, policy.order(KnownJobs(instance, policy.knowledge)), chosen.placement)
    loop = ordered_loop(site)
    loop.prepare()
    while (status := loop(chosen.placement.place, state, site, 10**12)) == LOG_FULL:
        state = grown(state)
    assert status == FINISHED_RUN
    return state


class PlainFifo:
    """Strict first come, first served in plain Python, from its own queue."""

    name, knowledge = "plain-fifo", "non-clairvoyant"

    def begin(self, view: Any) -> None:
        self._queue: list[int] = []
        self._head = 0

    def decide(self, view: Any) -> Iterator[Start]:
        self._queue += view.arrived
        while self._head < len(self._queue) and view.fits(self._queue[self._head]):
            self._head += 1
            yield Start(self._queue[self._head - 1])


class PlainScan(PlainFifo):
    """The same from what the view says who waits."""

    name = "plain-scan"

    def decide(self, view: Any) -> Iterator[Start]:
        for job in view.waiting:
            if not view.fits(job):
                return
            yield Start(job)


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("policy", [PlainFifo, PlainScan])
@pytest.mark.parametrize("jobs", [1_000, 10_000, 100_000])
def test_events_per_cpu_second_of_plain_python(benchmark: Any, jobs: int, policy: type[PlainFifo]) -> None:
    instance, count = trace(jobs), specify("fifo").placement
    with without_interpreting():
        run_policy(trace(1_000), policy(), count)
        run = benchmark.pedantic(run_policy, (instance, policy(), count), rounds=1)
        alone = cpu_seconds(lambda: run_policy(instance, policy(), count))
    benchmark.extra_info["events_per_second"] = run.events / alone
    assert run.value() == run_policy(instance, specify("fifo").policy, count).value()


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("policy", ["srtf", "tiresias"])
@pytest.mark.parametrize("nodes", [128, 1024])
def test_events_per_cpu_second_where_many_jobs_run(benchmark: Any, nodes: int, policy: str) -> None:
    instance, chosen = trace(100_000, nodes), specify(policy)
    state = benchmark.pedantic(engine, (instance, chosen), rounds=1, warmup_rounds=1)
    alone = cpu_seconds(lambda: engine(instance, chosen))
    benchmark.extra_info["events_per_second"] = int(state.engine[0].events) / alone
    assert state.engine[0].finished == instance.n


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("policy", ["fifo:skip=true+first-fit", "srtf+first-fit", "fifo:skip=true+consolidated"])
def test_what_contention_for_the_network_costs(benchmark: Any, policy: str) -> None:
    made, chosen = generate("all-four", seed=1, jobs=20_000), specify(policy)
    quiet = made.replace(contention=None)
    with without_interpreting():
        run = benchmark.pedantic(run_policy, (made, chosen.policy, chosen.placement), rounds=1, warmup_rounds=1)
        alone = cpu_seconds(lambda: run_policy(made, chosen.policy, chosen.placement))
        without = cpu_seconds(lambda: run_policy(quiet, chosen.policy, chosen.placement))
    benchmark.extra_info["events_per_second"] = run.events / alone
    benchmark.extra_info["ratio_to_no_contention"] = alone / without
    assert run.unfinished == []


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("placement", ["count", "consolidated"])
@pytest.mark.parametrize("policy", ["fifo", "fifo:skip=true", "srtf", "tiresias"])
@pytest.mark.parametrize("jobs", [2_000, 100_000, 1_000_000])
def test_events_per_cpu_second(benchmark: Any, jobs: int, policy: str, placement: str) -> None:
    instance, chosen = trace(jobs), specify(f"{policy}+{placement}")
    arrival, duration = instance.arrival.astype(np.int64), instance.duration.astype(np.int64)
    heap = np.zeros(jobs, dtype=np.int64)
    assert heap_loop(arrival, duration, heap) == 2 * jobs
    floor = cpu_seconds(lambda: heap_loop(arrival, duration, heap)) / (2 * jobs)
    state = benchmark.pedantic(engine, (instance, chosen), rounds=1, warmup_rounds=1)
    events = int(state.engine[0].events)
    alone = cpu_seconds(lambda: engine(instance, chosen))
    whole = cpu_seconds(lambda: run_policy(instance, chosen.policy, chosen.placement))
    benchmark.extra_info["events_per_second"] = events / alone
    benchmark.extra_info["with_names"] = events / whole
    benchmark.extra_info["heap_events_per_second"] = 1 / floor
    benchmark.extra_info["ratio"] = alone / events / floor
    assert state.engine[0].finished == jobs
    assert events >= 2 * jobs
