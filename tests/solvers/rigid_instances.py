"""Random tiny instances of rigid gangs, for exhaustion (`brute_force`)."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from optsched.problem.instance import Cluster, Instance, Job


@st.composite
def rigid_instances(
    draw: st.DrawFn, *, most: int = 5, gpus: tuple[int, ...] = (1, 2, 3, 4, 8), scales: tuple[int, ...] = (1, 1, 2)
) -> Instance:
    """1 to ``most`` jobs; weights include 0, due dates may be missing; times are multiples of 1 / scale."""
    total, scale = draw(st.sampled_from(gpus)), draw(st.sampled_from(scales))
    jobs = [
        Job(
            f"j{j}",
            arrival=draw(st.integers(0, 8)) / scale,
            gpus=draw(st.integers(1, total)),
            duration=draw(st.integers(1, 8)) / scale,
            weight=draw(st.integers(0, 4)),
            due=draw(st.none() | st.integers(0, 20).map(lambda d, s=scale: d / s)),
        )
        for j in range(draw(st.integers(1, most)))
    ]
    return Instance(jobs, Cluster.parse(f"1x{total}"))


def drawn_gangs(seed: int, n: int, *, late: int = 30, long: int = 25, heavy: int = 6) -> Instance:
    """Gangs of 1, 2, 4 or 8 on 8 GPUs, in whole numbers below these; the first bounds leave a gap."""
    rng = np.random.default_rng(seed)
    jobs = []
    for j in range(n):
        r, g, p = int(rng.integers(0, late)), int(rng.choice([1, 2, 4, 8])), int(rng.integers(1, long))
        jobs.append(Job(f"j{j}", r, g, p, weight=int(rng.integers(1, heavy)), due=r + 2 * p))
    return Instance(jobs, Cluster.parse("1x8"))


def one_machine(*jobs: tuple[float, float, float], due: tuple[float, ...] = ()) -> Instance:
    """Jobs (arrival, duration, weight) on one GPU."""
    return Instance(
        [
            Job(f"j{j}", arrival=r, duration=p, weight=w, due=due[j] if due else None)
            for j, (r, p, w) in enumerate(jobs)
        ],
        Cluster.machines(1),
    )


OBJECTIVES = (
    "total_completion_time",
    "total_weighted_completion_time",
    "total_flow_time",
    "total_weighted_flow_time",
    "total_weighted_tardiness",
    "makespan",
    "max_flow_time",
)
SUMS = OBJECTIVES[:-2]
