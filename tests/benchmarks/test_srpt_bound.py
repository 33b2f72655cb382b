"""What bounds of a million jobs and their proofs cost in units of one `numpy.argsort` of arrivals (CPU, same process)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.timing import cpu_seconds

from optsched.bounds import BOUNDS
from optsched.problem.instance import Cluster, Instance

JOBS = 1_000_000


@pytest.fixture(scope="module", params=["light", "overload", "together"])
def million(request: pytest.FixtureRequest) -> Instance:
    """Jobs in random order on 8x8 GPUs: at load 0.9, at load 3 (long queues), or released all but at once."""
    rng = np.random.default_rng(0)
    gpus, duration = rng.choice([1, 2, 4, 8], JOBS), rng.lognormal(6.0, 1.5, JOBS)
    load = {"light": 0.9, "overload": 3.0, "together": 1e9}[request.param]
    gaps = rng.exponential(float(gpus @ duration) / JOBS / 64 / load, JOBS)
    columns = {
        "id": [str(j) for j in range(JOBS)],
        "arrival": rng.permutation(np.cumsum(gaps)),
        "gpus": gpus,
        "duration": duration,
        "weight": rng.integers(1, 4, JOBS).astype(np.float64),
    }
    instance = Instance(pl.DataFrame(columns), Cluster.parse("8x8"), name=request.param)
    # arrays and the digest are computed once an instance, not once a bound
    assert instance.arrival.size == instance.duration.size == instance.gpus.size == instance.weight.size == JOBS
    assert instance.digest
    return instance


@pytest.mark.bench
@pytest.mark.parametrize("name", ["srpt", "mean-busy-time", "release-plus-duration"])
def test_bound_of_a_million_jobs(benchmark: Any, million: Instance, name: str) -> None:
    build = BOUNDS.get(name).build
    certificate = benchmark.pedantic(build, (million, "total_flow_time", "gang"), rounds=1, warmup_rounds=1)
    floor = cpu_seconds(lambda: np.argsort(million.arrival))
    seconds = cpu_seconds(lambda: build(million, "total_flow_time", "gang"))
    benchmark.extra_info["load"] = million.name
    benchmark.extra_info["argsort_seconds"] = floor
    benchmark.extra_info["seconds"] = seconds
    benchmark.extra_info["ratio"] = seconds / floor
    assert certificate.kind == name
    assert certificate.value > 0


PROOFS = [
    ("srpt", "total_flow_time"),
    ("mean-busy-time", "total_flow_time"),
    ("mean-busy-time", "total_weighted_flow_time"),
    ("release-plus-duration", "total_weighted_flow_time"),
    ("volume", "makespan"),
    ("critical-job", "makespan"),
]


@pytest.mark.bench
@pytest.mark.parametrize(("name", "objective"), PROOFS)
def test_verifying_a_bound_of_a_million_jobs(benchmark: Any, million: Instance, name: str, objective: str) -> None:
    certificate = BOUNDS.get(name).build(million, objective, "gang")
    assert certificate is not None
    benchmark.pedantic(certificate.verify, (million,), rounds=1, warmup_rounds=1)
    floor = cpu_seconds(lambda: np.argsort(million.arrival))
    seconds = cpu_seconds(lambda: certificate.verify(million))
    benchmark.extra_info.update(load=million.name, argsort_seconds=floor, seconds=seconds, ratio=seconds / floor)
