"""Assumptions that many theorems share: each says what is broken in words, or None."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from optsched.problem.instance import Instance
from optsched.simulation.placing import Placement
from optsched.speeds.interface_sharing import communicating


def broken(*found: str | None) -> tuple[str, ...]:
    """What is broken, in the order given."""
    return tuple(text for text in found if text is not None)


def any_free_gpus(placement: Placement, instance: Instance) -> str | None:
    """A gang starts whenever enough GPUs are free: identical GPUs, and a placement that takes any of them."""
    if not instance.unrestricted:
        return "some jobs may not use every GPU"
    if placement.any_free:
        return None
    return f"the placement {placement.name} may let a gang wait although enough GPUs are free"


def one_gpu_type(instance: Instance) -> str | None:
    """Identical GPUs."""
    types = {group.gpu.casefold() for group in instance.cluster.nodes}
    return None if len(types) <= 1 else f"GPUs of {len(types)} types"


def known_durations(instance: Instance) -> str | None:
    """No job's time depends on its placement."""
    return "the time of some jobs depends on their placement" if np.isnan(instance.duration).any() else None


def speed_by_type(instance: Instance) -> str | None:
    """The time of a job on one GPU depends on the GPU's type only."""
    more = instance.at_task_level or instance.elastic or bool(instance.jobs_at("profiles").size)
    return "the speed of some jobs depends on more than the type of their GPU" if more else None


def own_network(instance: Instance) -> str | None:
    """No job's time depends on who else sends over the network."""
    return "jobs contend for the network" if communicating(instance).any() else None


def one_machine(instance: Instance) -> str | None:
    """A single GPU."""
    return None if instance.cluster.gpus == 1 else "more than one machine"


def no_restart_cost(policy: Any, instance: Instance) -> str | None:
    """A preempted job resumes for nothing."""
    return None if policy.restart == 0 and not np.nan_to_num(instance.restart).any() else "a restart costs time"


def one_gpu_jobs(instance: Instance) -> str | None:
    """Every gang is one GPU."""
    return None if bool((instance.gpus == 1).all()) else "some jobs need more than one GPU"


def all_at_once(instance: Instance) -> str | None:
    """r_j = 0."""
    return None if bool((instance.arrival == 0).all()) else "not all jobs arrive at 0"


def parallel_machines(placement: Placement, instance: Instance) -> Iterable[str | None]:
    """P || ...: one-GPU jobs of known duration, all there at 0, on any of m identical machines."""
    yield all_at_once(instance)
    yield from parallel_machines_over_time(placement, instance)


def parallel_machines_over_time(placement: Placement, instance: Instance) -> Iterable[str | None]:
    """P | r_j ...: one-GPU jobs of known duration on any of m identical machines."""
    yield one_gpu_jobs(instance)
    yield from rigid_gangs(placement, instance)


def rigid_gangs(placement: Placement, instance: Instance) -> Iterable[str | None]:
    """P | r_j, size_j ...: gangs of known duration, each on any of m identical GPUs that are free."""
    yield known_durations(instance)
    yield any_free_gpus(placement, instance)


def two_transfers(instance: Instance) -> Iterable[str | None]:
    """Two transfers on one link and nothing else: no compute, one all-reduce each, gangs for which there is no choice."""
    if not instance.at_task_level or instance.n != 2:
        yield "not two jobs with tasks"
        return
    cluster, contention = instance.cluster, instance.contention
    sends = bool((instance.message > 0).all()) and cluster.node_count > 1
    yield None if sends else "some job sends nothing over the network"
    yield None if bool((instance.iterations == 1).all()) else "some job has more than one transfer"
    yield None if bool((instance.forward + instance.backward == 0).all()) else "some job computes"
    yield None if bool((instance.gpus == cluster.gpus).all()) else "some gang leaves GPUs free: its placement decides"
    fits = instance.unrestricted and bool((instance.gpu_memory.sum() <= cluster.node_memory).all())
    yield None if fits else "the jobs may not be resident at once on every GPU"
    if contention is not None:
        yield "contention is measured, not linear" if contention.measured else None
        yield "eta < 0: contention makes the link faster" if contention.penalty < 0 else None
        yield "a latency comes before the bytes" if contention.latency > 0 else None
