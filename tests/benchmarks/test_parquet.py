"""What an instance of a million jobs costs, in units of one bare `polars.read_parquet` of its table."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.timing import cpu_seconds

from optsched.problem.instance import Instance

JOBS = 1_000_000


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {"arrival": rng.random(JOBS) * 1e6, "duration": rng.random(JOBS) + 1, "gpus": rng.integers(1, 9, JOBS)}
    )


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("what", ["construct", "load", "construct-and-digest"])
def test_a_million_jobs(benchmark: Any, table: pl.DataFrame, tmp_path: Path, what: str) -> None:
    path = tmp_path / "million.parquet"
    instance = Instance(table, "64x8")
    instance.save(path)
    works: dict[str, Callable[[], Instance]] = {
        "construct": lambda: Instance(table, "64x8"),
        "load": lambda: Instance.load(path),
        "construct-and-digest": lambda: instance.replace(name="fresh"),
    }
    work = works[what]

    def measured() -> Any:
        made = work()
        return made.digest if what == "construct-and-digest" else made

    made = benchmark.pedantic(measured, rounds=1, warmup_rounds=1)
    seconds, floor = cpu_seconds(measured, 3), cpu_seconds(lambda: pl.read_parquet(path), 3)
    benchmark.extra_info["seconds"] = seconds
    benchmark.extra_info["read_parquet_seconds"] = floor
    benchmark.extra_info["ratio"] = seconds / floor
    assert made == instance.digest if what == "construct-and-digest" else made.digest == instance.digest
