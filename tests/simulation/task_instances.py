"""Small instances of the task level whose times are short fractions, so that the exact reference stays fast; their runs."""

from __future__ import annotations

from typing import Any

from optsched.contract.instances import CLUSTERS, COSTS, MEASURED, TASKS, random_task_instance
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance
from optsched.simulation.iterations import TaskRun

__all__ = ["CLUSTERS", "COSTS", "MEASURED", "TASKS", "ran", "random_task_instance"]


def ran(instance: Instance, policy: Any = "leader-first") -> TaskRun:
    """A run that is at the task level, with its log."""
    made = simulate(instance, policy)
    assert isinstance(made, TaskRun)
    assert made.schedule.tasks is not None
    return made
