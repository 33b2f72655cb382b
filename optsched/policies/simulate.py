"""`simulate`: replay an instance under a policy named in text, or a policy of one's own."""

from __future__ import annotations

from typing import cast

from optsched.errors import InputError
from optsched.policies.specification import Specification, at_task_level, on_instance, specify, task_policies
from optsched.problem.instance import Instance
from optsched.problem.instance_source import Source, instance_of
from optsched.simulation.engine import Advance, run_policy
from optsched.simulation.iterations import run_iterations
from optsched.simulation.policy import OrderedPolicy, Policy
from optsched.simulation.run import Run
from optsched.simulation.task_policy import TaskPolicy


def simulate(
    instance: Source,
    policy: str | Policy | OrderedPolicy | TaskPolicy | Specification,
    placement: str | None = None,
    *,
    progress: Advance | None = None,
) -> Run:
    """Replay ``instance`` under a policy.

    Parameters
    ----------
    instance : jobs and a cluster, or a SOURCE that `optsched.load` reads.
    policy : ``NAME[:key=value,...][+PLACEMENT[:key=value,...]]``, e.g. ``"fifo:skip=true+consolidated"``, or a policy
        object (see `optsched.simulation.policy`; one with ``tasks``, for instances whose jobs have tasks,
        `optsched.simulation.task_policy`).
    placement : the placement where ``policy`` names none; default: the policy's own, else ``count``, any free GPUs.
    progress : called with (finished jobs, all jobs) now and then.

    The engine and the policy see time counted from the first arrival (`Instance.relative`): what a run is does not depend
    on the clock of the log. Its schedule is put back on that clock.

    Returns
    -------
    Run : ``.schedule``, ``.metrics``, ``.events``, ``.value(objective)``, ``.unfinished``.

    Raises
    ------
    InputError
        For an unknown policy, placement or parameter (with near matches), jobs whose speed is not known, or a policy for
        whole jobs where they have tasks.

    >>> import optsched as osd
    >>> run = osd.simulate("rigid-06-1", "sjf")
    >>> run
    Run('sjf' on 'rigid-06-1': 6 of 6 jobs finished, total_completion_time 174)
    >>> run.jobs.select("id", "start", "jct").row(0)
    ('1', 14.0, 23.0)
    >>> osd.simulate("cluster-week", "fifo:skip=true+consolidated").unfinished
    []
    """
    instance, chosen = instance_of(instance), specify(policy, placement)
    return _simulate(instance.relative, chosen, progress).on_clock(instance)


def _simulate(instance: Instance, chosen: Specification, progress: Advance | None) -> Run:
    """The run of an instance whose time counts from its first arrival."""
    chosen = on_instance(chosen, instance)
    if at_task_level(chosen.policy):
        return run_iterations(
            instance, cast("TaskPolicy", chosen.policy), chosen.placement, name=chosen.text, progress=progress
        )
    if instance.at_task_level:
        legal = f"a policy of the task level: {', '.join(task_policies())}; or --job-level, optsched.at_job_level"
        raise InputError("it schedules whole jobs, these have tasks", field="policy", value=chosen.text, legal=legal)
    whole = cast("Policy | OrderedPolicy", chosen.policy)
    return run_policy(instance, whole, chosen.placement, name=chosen.text, progress=progress)
