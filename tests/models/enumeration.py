"""Optima of jobs that are plain numbers, without an instance, and runs of one preemptive machine.

Plain Python in exact arithmetic; nothing is taken from optsched. `TinyJob` times are integers or fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from brute_force import best_order

Number = Any  # int or Fraction
MAXIMA = ("makespan", "max_flow_time")


class TinyJob(NamedTuple):
    """Release, duration, GPUs of the gang, weight, due date (None: no due date)."""

    release: Number
    duration: Number
    gpus: int = 1
    weight: Number = 1
    due: Number | None = None


def cost(objective: str, job: TinyJob, completion: Number) -> Number:
    """What one job pays; of a maximum what is compared."""
    if objective in ("total_completion_time", "makespan"):
        return completion
    if objective in ("total_flow_time", "max_flow_time"):
        return completion - job.release
    if objective == "total_weighted_completion_time":
        return job.weight * completion
    if objective == "total_weighted_flow_time":
        return job.weight * (completion - job.release)
    assert objective == "total_weighted_tardiness"
    return 0 if job.due is None else job.weight * max(0, completion - job.due)


def value(objective: str, jobs: Sequence[TinyJob], completions: Sequence[Number]) -> Number:
    """The objective of completion times: the sum of what the jobs pay, or the latest of them."""
    paid = [cost(objective, job, c) for job, c in zip(jobs, completions, strict=True)]
    return max(paid) if objective in MAXIMA else sum(paid)


def placed_optimum(
    objective: str, jobs: Sequence[TinyJob], sizes: Sequence[int], ways: Sequence[Sequence[tuple[int, ...]]]
) -> Number:
    """The non-preemptive optimum on nodes of the given sizes; job j takes one of ``ways[j]``, a count a node."""
    own = [[(way, job.duration) for way in each] for job, each in zip(jobs, ways, strict=True)]
    release, maximum = [job.release for job in jobs], objective in MAXIMA
    return best_order(own, release, sizes, lambda j, end: cost(objective, jobs[j], end), maximum=maximum)
