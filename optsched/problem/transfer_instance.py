"""`transfer_instance`: transfers on one link as an instance of the task level, which every task policy can schedule.

Transfer j becomes a job of one iteration without compute on a cluster of two one-GPU nodes: its gang takes both, sends M_j
bytes over both interfaces and contends with all others there. So k, and with it every rate, is that of the one link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.problem.contention import IterationTasks
from optsched.problem.instance import Instance
from optsched.problem.transfers import TransferProblem

__all__ = ["transfer_instance", "transfer_order", "transfers_of"]


def transfer_order(problem: TransferProblem) -> list[int]:
    """The transfers by (size, index): the jobs of `transfer_instance` in their order."""
    size = problem.size.tolist()
    return sorted(range(problem.n), key=lambda j: (size[j], j))


def transfer_instance(
    problem: TransferProblem,
    name: str = "",
    *,
    objective: str = "total_completion_time",
    optimum: Mapping[str, Any] | None = None,
    in_order: bool = False,
) -> Instance:
    """The instance of a problem whose transfers all use the same links; seconds and bytes as they are. O(n log n).

    The job of transfer j has the id ``"j"``. Jobs stand in the order of `transfer_order` (``in_order``: of their index):
    nobody has any compute, so that service does not tell them apart, and policies that go by service ask about the first
    job first. A transfer that is released in the very moment in which another one ends is asked about after those that wait.

    Raises `InputError` for transfers on different links: two nodes cannot keep them apart.
    """
    if len(set(problem.links)) > 1:
        raise InputError(
            "they use different links", field="links", value=problem.link_numbers, legal="one link for all"
        )
    order = range(problem.n) if in_order else transfer_order(problem)
    names = [f"transfer-{j}" for j in order]
    table = pl.DataFrame({"id": [str(j) for j in order], "arrival": problem.release[list(order)], "profile": names})
    return Instance(
        table.with_columns(pl.lit(2).alias("gpus"), pl.lit(1.0).alias("iterations")),
        "2x1",
        name,
        objective,
        optimum=optimum,
        tasks={key: IterationTasks(0, 0, size) for key, size in zip(names, problem.size[list(order)], strict=True)},
        contention=problem.contention,
    )


def transfers_of(instance: Instance) -> TransferProblem:
    """The transfers of such an instance, in the order of its jobs; `InputError` where jobs do more than send one message."""
    lengths = [instance.tasks[str(job.profile)] if job.profile in instance.tasks else None for job in instance.jobs]
    alone = instance.cluster.node_count == 2 and bool((instance.cluster.node_gpus == 1).all())
    for job, length in zip(instance.jobs, lengths, strict=True):
        whole = alone and job.gpus == 2 and job.iterations == 1
        if length is None or not whole or length.forward + length.backward > 0 or not length.message:
            legal = "jobs of one iteration without compute that send a message between two nodes of one GPU each"
            raise InputError(
                f"job {job.id!r} is no transfer", field="instance", value=instance.name or None, legal=legal
            )
    if instance.contention is None:
        raise InputError("nothing says what a byte costs", field="contention", legal="Instance(contention=...)")
    sizes = [float(length.message or 0) for length in lengths if length is not None]
    return TransferProblem(instance.arrival, np.array(sizes), instance.contention)
