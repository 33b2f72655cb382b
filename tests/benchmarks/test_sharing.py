"""Events per CPU second of jobs that share GPUs, on 1,000 of them: what the rule looks at, and what sub-batches cost."""

from __future__ import annotations

import time
from typing import Any

import pytest

from optsched.compiled import without_interpreting
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("policy", ["sjf-ffs", "sjf-bsbf"])
@pytest.mark.parametrize("load", [0.5, 0.8, 1.0, 1.2])
def test_events_per_cpu_second(benchmark: Any, load: float, policy: str) -> None:
    """Nearly all jobs alone; some share; most share; and a queue of up to 29 jobs, which is asked about at every event."""
    instance = generate("sharing-cluster", 1, jobs=20_000, nodes=250, load=load)
    with without_interpreting():
        simulate(instance.head(50), policy)  # compiles
        run = benchmark.pedantic(simulate, (instance, policy), rounds=1)
        begun = time.process_time()
        simulate(instance, policy)
    benchmark.extra_info["events_per_second"] = run.events / (time.process_time() - begun)
    assert not run.unfinished
