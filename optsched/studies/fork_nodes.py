"""`fork_nodes`: five unlike nodes, few and many jobs, for the gain of forking.

Nodes of relative speed 1, .9, .55, .35, .12 (each x U(0.8, 1.2), and each pair of job and node x U(0.8, 1.2)), jobs of
U(5, 50) steps/s at speed 1 and U(600, 6000) s on their fastest node, all present at 0. Forking pays if there are fewer jobs
than nodes (and at the end of every workload); with J >= n an ideal preemptive schedule without forking is as short.
"""

from __future__ import annotations

import numpy as np

from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs

NODE_SPEEDS = (1.0, 0.9, 0.55, 0.35, 0.12)
UNEVEN = (0.8, 1.2)


def fork_nodes(seed: int, *, jobs: int) -> Instance:
    """Return an instance of one-GPU jobs on five one-GPU nodes, each node of a type of its own.

    Parameters
    ----------
    seed
        Seed of the random numbers.
    jobs
        Number of jobs.
    """
    rng = np.random.default_rng([seed, jobs])
    nodes = len(NODE_SPEEDS)
    speed = np.array(NODE_SPEEDS) * rng.uniform(*UNEVEN, nodes)
    rate = rng.uniform(5, 50, jobs)[:, None] * speed * rng.uniform(*UNEVEN, (jobs, nodes))
    steps = rng.uniform(600, 6000, jobs) * rate.max(axis=1)
    table = {
        (f"model-{j}", f"type-{h}", 1): Throughput(x) for j, row in enumerate(rate.tolist()) for h, x in enumerate(row)
    }
    return Instance(
        [Job(f"{j}", iterations=count, profile=f"model-{j}") for j, count in enumerate(steps.tolist())],
        Cluster(tuple(NodeGroup(gpus=1, gpu=f"type-{h}") for h in range(nodes))),
        name=f"fork-{jobs}-{seed}",
        objective="makespan",
        throughputs=Throughputs(table),
    )
