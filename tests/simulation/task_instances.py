"""Small instances of the task level whose times are short fractions, so that the exact reference stays fast."""

from __future__ import annotations

import numpy as np

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job

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
    """Up to ``jobs`` jobs of few iterations on one of `CLUSTERS`; every sixth seed takes `MEASURED` ratios."""
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
