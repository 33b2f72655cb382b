"""Random instances with elastic jobs, small, for tests of every room."""

from __future__ import annotations

import itertools

import numpy as np

from optsched.problem.cluster import Places
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import MeasuredSteps, Scaling

CLUSTERS = ("1x4", "2x4", "3x2", "1x4+2x2", "4x1")


def every_place(sizes: list[int]) -> list[Places]:
    """Every number of GPUs on every node, but not none at all."""
    every = itertools.product(*(range(size + 1) for size in sizes))
    return [tuple((node, c) for node, c in enumerate(counts) if c) for counts in every if any(counts)]


def scaling(rng: np.random.Generator, *, memory: bool = False, measured: bool = False) -> Scaling:
    """A profile whose iterations fall with the batch, with diminishing returns, or without any."""
    first = int(rng.integers(2, 9))
    batches = [first * 2**k for k in range(int(rng.integers(1, 5)))]
    count, rows = 100.0, []
    for batch in batches:
        rows.append((batch, count))
        count /= float(rng.uniform(1.2, 2.0))
    steps = None
    if measured:
        placed = [
            (name, float(local), local * float(rng.uniform(0.02, 0.05)) + 0.1, 0.01)
            for name in (1, 2, 11, 12, 22, 4)
            for local in (1, 4, 64)
        ]
        steps = MeasuredSteps(tuple(placed))
    return Scaling(
        compute=float(rng.uniform(0.01, 0.3)),
        per_sample=float(rng.uniform(0.001, 0.05)),
        within=float(rng.uniform(0, 0.2)),
        within_growth=float(rng.uniform(0, 0.02)),
        across=float(rng.uniform(0, 0.8)),
        across_growth=float(rng.uniform(0, 0.05)),
        overlap=float(rng.uniform(1, 5)),
        most_local=int(rng.integers(3, 20)) if rng.random() < 0.6 else None,
        memory=1.0 if memory else 0.0,
        memory_per_sample=0.5 if memory else 0.0,
        iterations=() if rng.random() < 0.2 else tuple(rows),
        measured=steps,
    )


def elastic_instance(
    seed: int,
    jobs: int = 8,
    *,
    cluster: str | None = None,
    rigid: bool = True,
    memory: bool = False,
    measured: bool = False,
) -> Instance:
    """``rigid``: some jobs have durations instead; arrivals and works are no integers."""
    rng = np.random.default_rng([seed, 61])
    spec = cluster or str(rng.choice(CLUSTERS))
    scalings = {f"m{k}": scaling(rng, memory=memory, measured=measured) for k in range(3)}
    gpus = Instance([], spec).cluster.gpus
    made = []
    for j in range(jobs):
        arrival, gang = float(rng.uniform(0, 120)), int(rng.integers(1, min(gpus, 4) + 1))
        weight = float(rng.integers(1, 4))
        if rigid and rng.random() < 0.25:
            made.append(Job(f"j{j}", arrival, gang, float(rng.uniform(5, 100)), weight=weight))
            continue
        name = str(rng.choice(list(scalings)))
        table = dict(scalings[name].iterations) or {8: 1.0}
        batch = int(rng.choice([*table, max(table) * 2]))
        made.append(
            Job(
                f"j{j}",
                arrival,
                min(gang, batch),
                iterations=float(rng.uniform(20, 400)),
                profile=name,
                batch_size=batch,
                weight=weight,
                due=arrival + 60 if rng.random() < 0.3 else None,
            )
        )
    return Instance(made, spec, scalings=scalings)
