"""Random instances for the policy contract: small ones with integer data (many ties), and crowded ones without ties."""

from __future__ import annotations

import dataclasses

import numpy as np

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference

MIXED = Cluster(
    (
        NodeGroup(count=2, gpus=4, gpu="V100", gpu_memory=16),
        NodeGroup(count=3, gpus=2, gpu="P100", gpu_memory=16),
        NodeGroup(count=1, gpus=4, gpu="K80", gpu_memory=12),
        NodeGroup(count=2, gpus=1, gpu="v100", gpu_memory=32),
    )
)
WIDTHS = (1, 1, 2, 3, 4, 6, 8)  # divisors of 24: with thresholds that are multiples of 24 all event times are integers


def random_instance(seed: int, cluster: Cluster | str, jobs: int = 12) -> Instance:
    """Return up to ``jobs`` jobs with integer data that fit on a cluster.

    On `MIXED` some jobs are restricted in GPU type or memory.

    Parameters
    ----------
    seed
        Seed of the random numbers.
    cluster
        The cluster, or its specification.
    jobs
        Largest number of jobs.
    """
    rng, limits = np.random.default_rng([seed, 7]), np.random.default_rng([seed, 53])
    cluster = cluster if isinstance(cluster, Cluster) else Cluster.parse(cluster)
    spread = int(rng.choice([1, 10, 40]))  # all at once, crowded, nearly idle
    made = []
    for j in range(int(rng.integers(1, jobs + 1))):
        types = [None, ("V100",), ("p100", "K80"), ("V100", "K80")][int(rng.choice([0, 0, 1, 2, 3]))]
        memory = [None, 8, 14, 30][int(rng.choice([0, 0, 1, 2, 3]))]
        types, memory = (types, memory) if cluster is MIXED else (None, None)
        offered = sum(group.gpus * group.count for group in cluster.nodes if group.suits(types, memory))
        if not offered:
            types, memory, offered = None, None, cluster.gpus
        made.append(
            Job(
                f"job-{j}",
                arrival=int(rng.integers(0, spread)),
                gpus=int(rng.choice([width for width in WIDTHS if width <= offered])),
                duration=(duration := int(rng.integers(1, 13))),
                walltime=[None, duration, 2 * duration, 12][int(limits.integers(0, 4))],
                weight=int(rng.integers(0, 4)),
                due=None if rng.random() < 0.3 else int(rng.integers(0, 50)),
                gpu_memory=memory,
                gpu_types=types,
            )
        )
    return Instance(made, cluster, f"random-{seed}")


def real_instance(seed: int, cluster: Cluster | str, jobs: int = 40) -> Instance:
    """Return a crowded instance with non-integer arrivals and durations, no two alike.

    Parameters
    ----------
    seed
        Seed of the random numbers.
    cluster
        The cluster, or its specification.
    jobs
        Largest number of jobs.
    """
    rng = np.random.default_rng([seed, 11])
    base = random_instance(seed, cluster, jobs)
    made = [
        dataclasses.replace(job, arrival=float(rng.random() * 30), duration=float(rng.random() * 9 + 0.5))
        for job in base.jobs
    ]
    for k, (job, whole) in enumerate(zip(made, base.jobs, strict=True)):
        if job.walltime and job.duration and whole.duration:
            made[k] = dataclasses.replace(job, walltime=job.walltime / whole.duration * job.duration)
    return Instance(made, base.cluster, base.name)


INTERFERENCE = Interference(1.5, ("a", "b"), ((1.125, 1.75), (1.25, None)))


def random_sharing_instance(seed: int) -> Instance:
    """Return 24 jobs of two models on six GPUs that two jobs may share; two jobs of the second model never share one.

    Parameters
    ----------
    seed
        Seed of the random numbers.
    """
    rng = np.random.default_rng([seed, 66])
    jobs = [
        Job(f"j{k}", float(rng.random() * 20), int(rng.integers(1, 5)), float(rng.exponential(6) + 0.25), model=model)
        for k, model in enumerate(rng.choice(["a", "b"], size=24).tolist())
    ]
    return Instance(jobs, "2x3", f"sharing-{seed}", interference=INTERFERENCE)


CLUSTERS = (
    Cluster((NodeGroup(gpus=2, count=2, gpu_memory=16),)),
    Cluster((NodeGroup(gpus=1, count=3, gpu_memory=16),)),
    Cluster((NodeGroup(gpus=2, count=2, gpu="V100", gpu_memory=16), NodeGroup(gpus=3, gpu="K80", gpu_memory=24))),
)
TASKS = {
    "large": IterationTasks(0.75, 0.5, 8),
    "small": IterationTasks(0.5, 0.25, 1.5),
    "odd": IterationTasks(0.25, 0, 3),  # a backward task of no length
    "silent": IterationTasks(0.5, 1),
}
COSTS = (Contention(0.5, 0.125), Contention(0.5), Contention(0.25, 0.25, latency=0.5), Contention(0.5, -0.25))
MEASURED = Contention(
    0.5,
    kinds=tuple(TASKS),
    ratios=((0.5, 0.75, 1, 1), (0.25, 0.5, 0.75, 1), (0.5, 0.5, 0.75, 1), (1, 1, 1, 1)),
)


def random_task_instance(seed: int, jobs: int = 8) -> Instance:
    """Return up to ``jobs`` jobs of few iterations, with tasks, on one of `CLUSTERS`.

    Every sixth seed takes the ratios of `MEASURED`.

    Parameters
    ----------
    seed
        Seed of the random numbers.
    jobs
        Largest number of jobs.
    """
    rng = np.random.default_rng([seed, 11])
    cluster = CLUSTERS[seed % len(CLUSTERS)]
    contention = MEASURED if seed % 6 == 5 else COSTS[seed % len(COSTS)]
    made = []
    for j in range(int(rng.integers(2, jobs + 1))):
        memory = int(rng.choice([2, 3, 5, 9]))
        types = ("V100",) if seed % 3 == 2 and rng.random() < 0.3 else None
        offered = sum(group.gpus * group.count for group in cluster.nodes if group.suits(types, memory))
        made.append(
            Job(
                f"job-{j}",
                arrival=float(rng.integers(0, 12)) / 4,
                gpus=int(rng.choice([1, 2, 2, 3, 4][: min(offered, 4) + 1])),
                iterations=int(rng.integers(1, 7)),
                profile=str(rng.choice(list(TASKS))),
                gpu_memory=memory,
                gpu_types=types,
            )
        )
    return Instance(made, cluster, f"tasks-{seed}", tasks=TASKS, contention=contention)
