"""A-SRPT: whole runs, how they grow with the queue; the virtual machine in units of a bare heap.

An event cycle: a short job comes and preempts (a push), is done (a pop). The floor does the same push and pop on a heap of
as many tuples in the same process. What grows faster than the floor's logarithm grows the ratio.
"""

from __future__ import annotations

import heapq
import time
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.timing import cpu_seconds

from optsched.compiled import without_interpreting
from optsched.policies.a_srpt import VirtualMachine
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance

CYCLES = 5_000
WAITING = [10, 100, 1_000, 10_000, 100_000]


@pytest.mark.bench
@pytest.mark.parametrize("waiting", WAITING)
def test_an_event_of_the_virtual_machine(benchmark: Any, waiting: int) -> None:
    lengths = np.random.default_rng(0).uniform(1e6, 2e6, waiting).tolist()
    machine, heap = VirtualMachine(), []
    for j, length in enumerate(lengths):
        machine.release(j, 0.0, length)
        heapq.heappush(heap, (length, j))
    clock, done = 0.0, 0

    def cycles() -> None:
        nonlocal clock, done
        for _ in range(CYCLES):
            machine.release(waiting, clock, 0.5)
            clock = machine.next_event()
            done += len(machine.advance(clock))

    def floor() -> None:
        for _ in range(CYCLES):
            heapq.heappush(heap, (0.5, waiting))
            heapq.heappop(heap)

    benchmark.pedantic(cycles, rounds=1, warmup_rounds=1)
    done = 0
    seconds, bare = cpu_seconds(cycles), cpu_seconds(floor)
    assert done == 5 * CYCLES  # every short job preempted and was reported
    assert len(machine) == waiting
    benchmark.extra_info["waiting"] = waiting
    benchmark.extra_info["us_per_cycle"] = seconds / CYCLES * 1e6
    benchmark.extra_info["floor_us"] = bare / CYCLES * 1e6
    benchmark.extra_info["ratio"] = seconds / bare


@cache
def poisson(jobs: int, load: float) -> Instance:
    """Poisson arrivals on 8 x 8 GPUs."""
    rng = np.random.default_rng(0)
    gpus, duration = rng.choice([1, 2, 4, 8], jobs), rng.lognormal(6.0, 1.0, jobs)
    gaps = rng.exponential(float(gpus @ duration) / jobs / 64 / load, jobs)
    return Instance(pl.DataFrame({"arrival": np.cumsum(gaps), "gpus": gpus, "duration": duration}), "8x8")


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("jobs", [1_000, 10_000])
@pytest.mark.parametrize("policy", ["a-srpt", "a-srpt:overtake=0", "wcs-duration"])
def test_a_whole_run(benchmark: Any, policy: str, jobs: int) -> None:
    """At load 0.9; the ratio is to the compiled srtf on the same instance."""
    instance = poisson(jobs, 0.9)
    with without_interpreting():
        simulate(instance.head(50), policy)  # compiles
        run = benchmark.pedantic(simulate, (instance, policy), rounds=1)
        seconds = cpu_seconds(lambda: simulate(instance, policy))
        floor = cpu_seconds(lambda: simulate(instance, "srtf"))
    benchmark.extra_info["events_per_second"] = run.events / seconds
    benchmark.extra_info["srtf_seconds"] = floor
    benchmark.extra_info["ratio"] = seconds / floor
    assert run.unfinished == []


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("load", [0.9, 1.2])
def test_it_grows_as_the_jobs_do(benchmark: Any, load: float) -> None:
    """Seconds of a run grow as jobs ** ``exponent`` from 3,000 to 30,000; above load 1 the queue grows with them."""
    sizes, seconds = np.array([3_000, 10_000, 30_000]), []
    with without_interpreting():
        simulate(poisson(300, load), "a-srpt")  # compiles
        for jobs in sizes.tolist():
            seconds.append(cpu_seconds(partial(simulate, poisson(jobs, load), "a-srpt")))
        run = benchmark.pedantic(simulate, (poisson(30_000, load), "a-srpt"), rounds=1)
    benchmark.extra_info["exponent"] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    benchmark.extra_info["events_per_second"] = run.events / seconds[-1]
    assert run.unfinished == []
