"""Runs whose schedules the referee accepts."""

from __future__ import annotations

from optsched.check.referee import check_schedule
from optsched.errors import SimulationError
from optsched.policies.simulate import Specification, simulate
from optsched.problem.instance import Instance
from optsched.simulation.engine import Advance
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
    return accepted(simulate(instance, specification, progress=progress))


def accepted(run: Run) -> Run:
    """Return the run if the referee accepts its schedule.

    Jobs that never finish are no violation here; reports name them.

    Parameters
    ----------
    run
        The run of any policy.

    Raises
    ------
    SimulationError
        The referee rejects the schedule; the message names the rule.
    """
    kind = run.schedule_class
    violations = check_schedule(run.instance, run.schedule, schedule_class=kind, preemptive=run.preemptive)
    # Jobs that never finished are named in the report; what they miss is not the schedule's fault.
    wrong = [v for v in violations if not (v.rule in ("completeness", "work") and run.unfinished)]
    if wrong:
        raise SimulationError(f"the referee rejects the schedule of {run.policy}: {wrong[0].rule}: {wrong[0].message}")
    return run
