"""Assumptions of theorems: shared predicates, each of which returns in words what is broken, or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optsched.classes import offered
from optsched.problem.instance import Instance
from optsched.simulation.placement import Placement
from optsched.speeds.duration import communicating

Assumption = Callable[[Any, Placement, Instance], str | tuple[str, ...] | None]
Assumptions = Callable[[Any, Placement, Instance], tuple[str, ...]]


def all_of(*assumptions: Assumption) -> Assumptions:
    """Return a function of (policy, placement, instance) that lists everything that is broken, in the order given.

    Parameters
    ----------
    *assumptions
        The assumptions.
    """

    def broken(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
        found: list[str] = []
        for each in assumptions:
            reason = each(policy, placement, instance)
            found += [reason] if isinstance(reason, str) else reason or ()
        return tuple(found)

    return broken


def policy_is(holds: Callable[[Any], bool], otherwise: str) -> Assumption:
    """Return an assumption on the parameters of the policy.

    Parameters
    ----------
    holds
        Predicate of the policy.
    otherwise
        Text if it does not hold; it may contain ``{policy.NAME}``.
    """
    return lambda policy, placement, instance: None if holds(policy) else otherwise.format(policy=policy)


def instance_is(holds: Callable[[Instance], Any], otherwise: str) -> Assumption:
    """Return an assumption on jobs and cluster.

    Parameters
    ----------
    holds
        Predicate of the instance.
    otherwise
        Text if it does not hold.
    """
    return lambda policy, placement, instance: None if holds(instance) else otherwise


def any_free_gpus(policy: Any, placement: Placement, instance: Instance) -> str | None:
    """Check that a gang starts whenever enough GPUs are free: identical GPUs, and a placement that takes any of them.

    Parameters
    ----------
    policy
        Not used.
    placement
        The placement.
    instance
        Jobs and a cluster.
    """
    if not instance.unrestricted:
        return "some jobs may not use every GPU"
    if placement.any_free:
        return None
    return f"the placement {placement.name} may let a gang wait although enough GPUs are free"


def one_gpu_type(policy: Any, placement: Placement, instance: Instance) -> str | None:
    """Check that all GPUs are of one type.

    Parameters
    ----------
    policy
        Not used.
    placement
        Not used.
    instance
        Jobs and a cluster.
    """
    types = {group.gpu.casefold() for group in instance.cluster.nodes}
    return None if len(types) <= 1 else f"GPUs of {len(types)} types"


def no_restart_cost(policy: Any, placement: Placement, instance: Instance) -> str | None:
    """Check that a preempted job resumes without cost.

    Parameters
    ----------
    policy
        The policy.
    placement
        Not used.
    instance
        Jobs and a cluster.
    """
    return None if policy.restart == 0 and not np.nan_to_num(instance.restart).any() else "a restart costs time"


known_durations = instance_is(
    lambda instance: not np.isnan(instance.duration).any(), "the time of some jobs depends on their placement"
)
speed_by_type = instance_is(
    lambda instance: (
        not any(made.widths or not made.whole for made in offered(instance)) and not instance.jobs_at("profiles").size
    ),
    "the speed of some jobs depends on more than the type of their GPU",
)
own_network = instance_is(lambda instance: not communicating(instance).any(), "jobs contend for the network")
one_machine = instance_is(lambda instance: instance.cluster.gpus == 1, "more than one machine")
one_gpu_jobs = instance_is(lambda instance: (instance.gpus == 1).all(), "some jobs need more than one GPU")
all_at_once = instance_is(lambda instance: (instance.arrival == 0).all(), "not all jobs arrive at 0")

# P | r_j, size_j ...: gangs of known duration, each on any of m identical GPUs that are free
rigid_gangs = all_of(known_durations, any_free_gpus)
# P | r_j ...: one-GPU jobs of known duration on any of m identical machines; P || ...: all there at 0
parallel_machines_over_time = all_of(one_gpu_jobs, rigid_gangs)
parallel_machines = all_of(all_at_once, parallel_machines_over_time)
