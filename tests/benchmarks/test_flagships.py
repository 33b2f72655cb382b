"""Whole runs of `hadar-e`, `gavel` and `hadar`: events per CPU second, peak memory, and how seconds grow with the jobs.

``floor`` is `srtf`, all compiled, on the same instance in the same process; ``ratio`` = the policy / `srtf`.
"""

from __future__ import annotations

import resource
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.timing import cpu_seconds
from examples import studied

from optsched.compiled import without_interpreting
from optsched.io.sources import load
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance

THOUSAND = "84x4:V100+83x4:P100+83x4:K80"
ROWS = [
    ("hadar-e", "philly-like", 2_000, "64x8"),
    ("hadar-e", "gavel-continuous", 500, THOUSAND),
    ("hadar-e", "hadar-mix", 40, ""),
    ("gavel", "philly-like", 2_000, "64x8"),
    ("gavel", "gavel-continuous", 500, THOUSAND),
    ("gavel:policy=finish_time_fairness_perf", "gavel-continuous", 100, ""),
    ("gavel:policy=min_total_duration_perf", "gavel-continuous", 100, ""),
    ("hadar", "philly-like", 2_000, "64x8"),
    ("hadar", "hadar-60", 480, ""),
]
LONG = [
    *((policy, "philly-like", 20_000, "64x8") for policy in ("hadar-e", "gavel", "hadar")),
    *((policy, "philly-like", 2_000, "100x8") for policy in ("hadar-e", "gavel", "hadar")),
    *((policy, "philly-like", 2_000, "1000x8") for policy in ("hadar-e", "gavel", "hadar")),
    ("gavel", "gavel-continuous", 2_000, THOUSAND),
]


def measure(benchmark: Any, instance: Instance, policy: str) -> None:
    with without_interpreting():
        simulate(instance.head(50), policy)  # compiles
        begun = time.process_time()
        run = benchmark.pedantic(simulate, (instance, policy), rounds=1)
        seconds = time.process_time() - begun
        floor = cpu_seconds(partial(simulate, instance, "srtf"), 2)
    benchmark.extra_info["cpu_seconds"] = seconds
    benchmark.extra_info["events_per_second"] = run.events / seconds
    benchmark.extra_info["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    benchmark.extra_info["ratio"] = seconds / floor


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("policy", "recipe", "jobs", "cluster"), [*ROWS, *(studied(*row) for row in LONG)])
def test_a_whole_run_of_a_flagship(benchmark: Any, policy: str, recipe: str, jobs: int, cluster: str) -> None:
    more = {"cluster": cluster} if cluster else {}
    measure(benchmark, generate(recipe, 1, jobs=jobs, **more), policy)


@pytest.mark.bench
@pytest.mark.study
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("policy", "cluster"), [("hadar", "64x8"), ("gavel", "64x8"), ("hadar-e", "300x8")])
def test_all_of_philly(benchmark: Any, data_dir: Path, policy: str, cluster: str) -> None:
    measure(benchmark, load(f"philly:{data_dir / 'philly' / 'philly.csv'}", cluster=cluster), policy)


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("policy", ["hadar-e", "gavel", "hadar"])
def test_seconds_grow_with_the_jobs(benchmark: Any, policy: str) -> None:
    """Seconds of a run grow as jobs ** ``exponent`` from 500 to 4,500."""
    sizes, seconds = np.array([500, 1_500, 4_500]), []
    with without_interpreting():
        simulate(generate("philly-like", 1, jobs=50, cluster="64x8"), policy)  # compiles
        for jobs in sizes.tolist():
            instance = generate("philly-like", 1, jobs=jobs, cluster="64x8")
            seconds.append(cpu_seconds(partial(simulate, instance, policy), 2))
        benchmark.pedantic(simulate, (instance, policy), rounds=1)
    benchmark.extra_info["exponent"] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    benchmark.extra_info["ratio"] = seconds[-1] / seconds[0]
