"""Random allocation problems, as the fast rules and as the formulations take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.models.gavel_allocation import AllocationProblem
from optsched.policies.gavel_allocations import ActiveJobs, Setting

TYPES = ("v100", "p100", "k80")


def random_jobs(seed: int, n: int | None = None, *, first: int = 0) -> tuple[ActiveJobs, Setting]:
    """Up to 9 jobs on up to 3 types, some types barred, some jobs alike."""
    rng = np.random.default_rng([seed, 4])
    T = int(rng.integers(1, 4))
    n = int(rng.integers(1, 10)) if n is None else n
    capacity = rng.integers(4, 13, T).astype(np.float64)
    rate = np.round(rng.uniform(0.1, 20, (n, T)), 3) * (rng.random((n, T)) < 0.85)
    rate[np.arange(n), rng.integers(0, T, n)] += 1.0
    gang, weight = rng.choice([1, 1, 2, 4], n), rng.choice([1.0, 1.0, 2.0, 5.0], n)
    for m in range(1, n):
        if rng.random() < 0.3:
            rate[m], gang[m], weight[m] = rate[m - 1], gang[m - 1], weight[m - 1]
    elapsed, left = rng.uniform(0, 5e3, n) * (rng.random(n) < 0.7), rng.uniform(100, 1e5, n)
    time_left = np.where(rng.random(n) < 0.5, np.inf, rng.uniform(-100, 1e5, n))
    costs = dict(zip(TYPES, rng.uniform(0.5, 4, 3).round(2).tolist(), strict=True))
    jobs = ActiveJobs(first + np.arange(n), rate, gang, weight, elapsed, left, time_left)
    return jobs, Setting(TYPES[:T], capacity, seed, costs)


def problem(jobs: ActiveJobs, setting: Setting, **more: Any) -> AllocationProblem:
    """The same for `optsched.models`."""
    return AllocationProblem(
        throughputs=jobs.rate,
        scale=jobs.gang,
        capacity=setting.capacity,
        weights=jobs.weight,
        elapsed=jobs.elapsed,
        left=jobs.left,
        iso_so_far=more.pop("iso_so_far", np.zeros(jobs.gang.size)),
        time_left=jobs.time_left,
        cost=np.array([setting.costs[name] for name in setting.types]),
        **more,
    )
