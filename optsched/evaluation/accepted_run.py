"""Runs whose schedules the referee accepts."""

from __future__ import annotations

from optsched.check.properties import broken_properties
from optsched.check.referee import check_schedule
from optsched.errors import SimulationError
from optsched.policies.simulate import Specification, simulate
from optsched.problem.instance import Instance
from optsched.simulation.engine import Advance
from optsched.simulation.policy import BasePolicy
from optsched.simulation.run import Run


def refereed(instance: Instance, specification: Specification, progress: Advance | None = None) -> Run:
    """Simulate a policy and return the run if the referee accepts its schedule.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    specification
        The policy and its placement.
    progress
        Called with (finished jobs, all jobs) now and then.

    Raises
    ------
    SimulationError
        The referee rejects the schedule: a defect of optsched, or of a policy of one's own.
    """
    return accepted(simulate(instance, specification, progress=progress), specification.policy)


def accepted(run: Run, policy: BasePolicy | None = None) -> Run:
    """Return the run if the referee accepts its schedule, and it has the properties that its policy states.

    Jobs that never finish are no violation here; reports name them.

    Parameters
    ----------
    run
        The run of any policy.
    policy
        The policy of the run, if its properties are to be checked.

    Raises
    ------
    SimulationError
        The referee rejects the schedule, or a property does not hold; the message names the rule.
    """
    kind = run.schedule_class
    violations = check_schedule(run.instance, run.schedule, schedule_class=kind, preemptive=run.preemptive)
    # Jobs that never finished are named in the report; what they miss is not the schedule's fault.
    wrong = [v for v in violations if not (v.rule in ("completeness", "work") and run.unfinished)]
    if wrong:
        raise SimulationError(f"the referee rejects the schedule of {run.policy}: {wrong[0].rule}: {wrong[0].message}")
    for name in policy.properties(run.instance) if policy is not None and not run.unfinished else ():
        broken = broken_properties(run.instance, run.schedule, name)
        if broken:
            raise SimulationError(f"the schedule of {run.policy} lacks the property {name}: {broken[0].text}")
    return run
