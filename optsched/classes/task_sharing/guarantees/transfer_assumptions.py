"""Assumptions of theorems on transfers: predicates, each of which says what is broken in words, or None."""

from __future__ import annotations

from typing import Any

from optsched.guarantees.assumptions import all_of, instance_is
from optsched.problem.instance import Instance
from optsched.simulation.placement import Placement

_only_two_transfers = all_of(
    instance_is(
        lambda instance: (instance.message > 0).all() and instance.cluster.node_count > 1,
        "some job sends nothing over the network",
    ),
    instance_is(lambda instance: (instance.iterations == 1).all(), "some job has more than one transfer"),
    instance_is(lambda instance: (instance.forward + instance.backward == 0).all(), "some job computes"),
    instance_is(
        lambda instance: (instance.gpus == instance.cluster.gpus).all(),
        "some gang leaves GPUs free: its placement decides",
    ),
    instance_is(
        lambda instance: instance.unrestricted and (instance.gpu_memory.sum() <= instance.cluster.node_memory).all(),
        "the jobs may not be resident at once on every GPU",
    ),
)


def linear_contention(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    """Return what is broken of: k transfers at once on a link take k b + (k - 1) eta seconds a byte, eta >= 0, no latency.

    Parameters
    ----------
    policy
        The policy, which does not matter.
    placement
        The placement, which does not matter.
    instance
        Jobs and a cluster.
    """
    contention = instance.contention
    if contention is None:
        return ()
    broken = {
        "contention is measured, not linear": contention.measured,
        "eta < 0: contention makes the link faster": contention.penalty < 0,
        "a latency comes before the bytes": contention.latency > 0,
    }
    return tuple(text for text, found in broken.items() if found)


def two_transfers(policy: Any, placement: Placement, instance: Instance) -> tuple[str, ...]:
    """Return what is broken of: two transfers on one link, without compute, one all-reduce each, no choice of GPUs.

    Parameters
    ----------
    policy
        The policy, which does not matter.
    placement
        The placement, which does not matter.
    instance
        Jobs and a cluster.
    """
    if not instance.at_task_level or instance.n != 2:
        return ("not two jobs with tasks",)
    return all_of(_only_two_transfers, linear_contention)(policy, placement, instance)
