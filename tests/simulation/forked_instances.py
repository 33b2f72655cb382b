"""Instances for forking policies, jobs at the speeds of a table on nodes of a type each, and their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optsched.classes.forking.simulation.forked_run import ForkedRun
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs


def table_instance(
    rate: Sequence[Sequence[float]], steps: Sequence[float], arrival: Sequence[float] | None = None, **more: Any
) -> Instance:
    """One-GPU jobs with ``rate[j][h]`` steps/s on node h of one GPU (0: does not run there)."""
    rows = {(f"m{j}", f"t{h}", 1): Throughput(x) for j, row in enumerate(rate) for h, x in enumerate(row)}
    arrivals = [0.0] * len(steps) if arrival is None else arrival
    return Instance(
        [
            Job(f"j{j}", arrival=r, iterations=v, profile=f"m{j}")
            for j, (v, r) in enumerate(zip(steps, arrivals, strict=True))
        ],
        Cluster(tuple(NodeGroup(gpus=1, gpu=f"t{h}") for h in range(len(rate[0])))),
        throughputs=Throughputs(rows),
        **more,
    )


def gang_instance(seed: int, jobs: int = 12) -> Instance:
    """Gangs of 1 to 8 on eight nodes of 1 to 4 GPUs, three types with memory, some jobs at table speeds."""
    rng = np.random.default_rng([seed, 21])
    nodes = (
        NodeGroup(count=3, gpus=4, gpu="V100", gpu_memory=32),
        NodeGroup(count=2, gpus=2, gpu="P100", gpu_memory=16),
        NodeGroup(count=3, gpus=1, gpu="K80", gpu_memory=12),
    )
    sizes = (1, 2, 3, 4, 8)
    table = {
        ("model", gpu, g): Throughput(speed * g**0.9, speed * g**0.7)
        for gpu, speed in (("V100", 9.0), ("P100", 4.0), ("K80", 1.0))
        for g in sizes
    }
    made = []
    for j in range(jobs):
        at_table = rng.random() < 0.6
        made.append(
            Job(
                f"j{j}",
                arrival=float(rng.integers(0, 900)),
                gpus=int(rng.choice(sizes)),
                duration=None if at_table else float(rng.integers(50, 3000)),
                iterations=float(rng.integers(500, 20000)) if at_table else None,
                profile="model" if at_table else None,
                gpu_memory=20.0 if rng.random() < 0.2 else None,
                weight=float(rng.integers(0, 4)),
            )
        )
    return Instance(made, Cluster(nodes), f"gangs-{seed}", throughputs=Throughputs(table))


def forked(instance: Instance, policy: Any = "hadar-e") -> ForkedRun:
    """A run of copies."""
    run = simulate(instance, policy)
    assert isinstance(run, ForkedRun)
    return run
