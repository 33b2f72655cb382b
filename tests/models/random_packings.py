"""Random packings: of plain numbers, and of small clusters in rounds."""

from __future__ import annotations

import numpy as np

from optsched.models.hadar_rounds import JobSchedule, Packing, RoundProblem

SECONDS = 360.0


def plain_packing(rng: np.random.Generator) -> Packing:
    """2 to 9 jobs with 0 to 5 schedules over 1 to 6 resources of 1 to 6 devices; utilities over four decades."""
    resources = int(rng.integers(1, 7))
    capacity = rng.integers(1, 7, resources)
    schedules = []
    for _ in range(int(rng.integers(2, 10))):
        of_job = []
        for _ in range(int(rng.integers(0, 6))):
            used = np.flatnonzero(rng.random(resources) < 0.5).tolist()
            demand = tuple((q, int(rng.integers(1, capacity[q] + 1))) for q in used)
            of_job.append(JobSchedule(float(10 ** rng.uniform(-2, 2)), demand))
        schedules.append(tuple(of_job))
    return Packing(tuple(capacity.tolist()), tuple(schedules))


def round_packing(rng: np.random.Generator, *, jobs: int, most_devices: int) -> Packing:
    """Jobs with effective-throughput utilities on 1-2 machines with 1-3 types in 2-4 rounds, at most 3 rounds a schedule."""
    machines, types, rounds = (int(rng.integers(1, k + 1)) for k in (2, 3, 3))
    rounds += 1
    tasks = rng.integers(1, 3, jobs)
    speed = rng.uniform(5, 50, (jobs, 1)) * rng.uniform(0.2, 1, (jobs, types))
    work = SECONDS * tasks * speed.max(axis=1) * rng.uniform(0.3, 2.0, jobs)
    arrival = rng.integers(0, rounds, jobs)
    stay = SECONDS * (np.arange(1, rounds + 1) - arrival[:, None])
    problem = RoundProblem(
        work=work,
        tasks=tasks,
        speed=speed,
        arrival=arrival,
        devices=rng.integers(1, most_devices + 1, (machines, types)),
        seconds=SECONDS,
        utility=np.where(stay > 0, work[:, None] / np.maximum(stay, SECONDS), 0.0),
    )
    return problem.packing(most_rounds=2)
