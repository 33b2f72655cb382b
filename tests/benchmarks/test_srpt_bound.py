"""CPU time of bounds of a million jobs, and of proofs for 80,000, in units of one `numpy.argsort` of arrivals."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.timing import cpu_seconds

from optsched.bounds import BOUNDS
from optsched.problem.instance import Cluster, Instance
from optsched.verifier.judgement import verify

JOBS, PROVED = 1_000_000, 80_000
LOADS = ("light", "overload", "together")


def queue(name: str, jobs: int) -> Instance:
    """Return jobs in random order on 8x8 GPUs: at load 0.9, at load 3 (long queues), or released all but at once."""
    rng = np.random.default_rng(0)
    gpus, duration = rng.choice([1, 2, 4, 8], jobs), rng.lognormal(6.0, 1.5, jobs)
    load = {"light": 0.9, "overload": 3.0, "together": 1e9}[name]
    gaps = rng.exponential(float(gpus @ duration) / jobs / 64 / load, jobs)
    columns = {
        "id": [str(j) for j in range(jobs)],
        "arrival": rng.permutation(np.cumsum(gaps)),
        "gpus": gpus,
        "duration": duration,
        "weight": rng.integers(1, 4, jobs).astype(np.float64),
    }
    instance = Instance(pl.DataFrame(columns), Cluster.parse("8x8"), name=name)
    # arrays and the digest are computed once an instance, not once a bound
    assert instance.arrival.size == instance.duration.size == instance.gpus.size == instance.weight.size == jobs
    assert instance.digest
    return instance


@pytest.fixture(scope="module", params=LOADS)
def million(request: pytest.FixtureRequest) -> Instance:
    return queue(request.param, JOBS)


@pytest.fixture(scope="module", params=LOADS)
def documents(request: pytest.FixtureRequest) -> tuple[Instance, dict[str, Any]]:
    """An instance of 80,000 jobs and its document."""
    instance = queue(request.param, PROVED)
    return instance, instance.to_json()


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
    ("first-come", "max_flow_time"),
    ("fair-share", "max_fair_slowdown"),
]


@pytest.mark.bench
@pytest.mark.parametrize(("name", "objective"), PROOFS)
def test_verifying_a_bound_of_80000_jobs(
    benchmark: Any, documents: tuple[Instance, dict[str, Any]], name: str, objective: str
) -> None:
    """The verifier reads the documents again each time, as for files."""
    instance, document = documents
    certificate = BOUNDS.get(name).build(instance.relative, objective, "gang")
    assert certificate is not None
    stated = certificate.on_clock(instance).to_json()
    benchmark.pedantic(verify, (stated, document), rounds=1, warmup_rounds=1)
    floor = cpu_seconds(lambda: np.argsort(instance.arrival))
    seconds = cpu_seconds(lambda: verify(stated, document))
    benchmark.extra_info.update(load=instance.name, argsort_seconds=floor, seconds=seconds, ratio=seconds / floor)
