"""Events and tasks per CPU second of the engine and of the task level, against bare loops."""

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

from optsched.classes.task_sharing.simulation.iterations import run_iterations
from optsched.compiled import without_interpreting
from optsched.compiled.heap import pop, push
from optsched.io.traces.generate import generate
from optsched.policies.simulate import Specification, specify
from optsched.problem.instance import Instance
from optsched.simulation.engine import run_policy
from optsched.simulation.next_event import new_tree, ringing, set_time
from optsched.simulation.ordered import ordered_loop
from optsched.simulation.policy import KnownJobs, Start
from optsched.simulation.records import FINISHED_RUN, LOG_FULL
from optsched.simulation.state import State, grown, new_state

# -- Events per CPU second of the engine, against a bare compiled heap loop with the same number of events.
#
# The engine alone: from the queue order to the last event, without naming GPUs (``with_names`` includes that).


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


# -- Tasks per CPU second of the task level, against a bare loop that only advances as many clocks.
#
# The workload is that of the study: 160 jobs on 64 GPUs; at scale 1000 some 4.4 million tasks.


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
