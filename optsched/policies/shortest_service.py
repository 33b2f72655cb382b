"""Shortest remaining service first: the order that all policies of the task level here share."""

from __future__ import annotations

import math
from typing import Any

from optsched.errors import check_legal
from optsched.simulation.task_policy import Countdown, TaskJobs, TaskOrder


def shortest_service(
    jobs: TaskJobs,
    admit: Any,
    numbers: tuple[float, ...] = (),
    *,
    includes_comm: bool = False,
    link: Countdown | None = None,
) -> TaskOrder:
    """Queue, GPUs and (unless ``link`` says otherwise) transfers by the least remaining service, ties by index.

    Service = compute seconds that are left, summed over the workers of the gang. ``includes_comm``: plus n_j b M_j for each
    all-reduce that is left, as long as every worker waits for it (before placement: as if gangs that can span nodes did).
    """
    per_transfer = jobs.may_send * jobs.gpus * jobs.message * jobs.seconds_per_byte if includes_comm else 0.0
    left = Countdown(forward=jobs.forward, backward=jobs.backward, transfer=per_transfer)
    queue = jobs.service + (jobs.iterations * per_transfer if includes_comm else 0.0)
    return TaskOrder(queue=queue, gpu=left, link=left if link is None else link, admit=admit, numbers=numbers)


def check_theta(policy: str, theta: float) -> None:
    """Raises `InputError` for what no threshold is."""
    check_legal(0 <= theta < math.inf, f"{policy}: theta", theta, "a number > 0, or 0 for b / (2 (b + eta))")


def threshold(policy: str, jobs: TaskJobs, theta: float) -> float:
    """AdaDUAL's theta: as given, else (0) b / (2 (b + eta)); `InputError` where the theorem behind it does not hold."""
    if theta > 0 or jobs.contention is None:
        return theta or 0.5
    jobs.contention.require_penalty(f"{policy} (its threshold b / (2 (b + eta)); or say theta=...)")
    return jobs.contention.theta
