"""Seconds that ``heavy-edge`` takes to place one job, against the time of a single iteration time, both compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.timing import cpu_seconds

from optsched.policies.placements.heavy_edge import heavy_edge
from optsched.problem.profile import Profile, Stage
from optsched.speeds.network import Network
from optsched.speeds.speed_tables import profile_pace, tables_of

CALLS = 200
SHAPES = {"8x8": [8] * 8, "64x1": [1] * 64, "4x16": [16] * 4, "1x64": [64]}


@pytest.mark.bench
@pytest.mark.parametrize("variant", ["plain", "auto", "local-search"])
@pytest.mark.parametrize("shape", SHAPES)
def test_placing_a_job_of_64_replicas(benchmark: Any, shape: str, variant: str) -> None:
    rng = np.random.default_rng(0)
    profile = Profile.of_stages([Stage(k, 0.05, 0.1, 1e9, 1e8) for k in SHAPES[shape]], micro_batches=8)
    nodes = 32
    network = Network(np.full(nodes, 8), np.full(nodes, 25e9), np.full(nodes, 1.25e9))
    t = tables_of([profile], np.zeros(1, dtype=np.int64), network)
    free, size, eligible = rng.integers(0, 9, nodes), np.full(nodes, 8), np.ones(nodes, dtype=np.bool_)
    rule, out = heavy_edge(variant), np.zeros((2, 64), dtype=np.int64)
    state = rule.random_state()

    def place() -> int:
        return rule.place(0, 64, free, size, eligible, state, t, out[0], out[1])

    entries = benchmark.pedantic(place, rounds=5, warmup_rounds=1)
    assert out[1, :entries].sum() == 64
    floor = cpu_seconds(lambda: profile_pace(t, 0, out[0], out[1]), calls=CALLS)
    seconds = cpu_seconds(place, calls=CALLS)
    benchmark.extra_info["seconds"] = seconds
    benchmark.extra_info["alpha_seconds"] = floor
    benchmark.extra_info["ratio"] = seconds / floor
    if variant in ("plain", "auto"):
        assert seconds < 1e-3
