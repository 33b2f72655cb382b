"""Small instances of the task level whose times are short fractions, as the exact reference needs them; runs, policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optsched.classes.task_sharing.policies.task_orders import shortest_service
from optsched.classes.task_sharing.simulation.iterations import TaskRun
from optsched.classes.task_sharing.simulation.task_policy import TaskJobs
from optsched.contract.instances import random_task_instance
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance
from optsched.simulation.policy import Knowledge

__all__ = ["Mine", "ran", "random_task_instance"]


def ran(instance: Instance, policy: Any = "leader-first") -> TaskRun:
    """A run that is at the task level, with its log."""
    made = simulate(instance, policy)
    assert isinstance(made, TaskRun)
    assert made.schedule.tasks is not None
    return made


@dataclass
class Mine:
    """A policy made in a test: its order, by default the shortest service first, and what it communicates."""

    order: Any
    answer: Any = ()
    name: str = "mine"
    knowledge: Knowledge = Knowledge.CLAIRVOYANT
    default_placement: str = "lwf"

    def tasks(self, jobs: TaskJobs) -> Any:
        return shortest_service(jobs, None) if self.order is None else self.order

    def communicate(self, view: Any) -> Any:
        return self.answer(view) if callable(self.answer) else self.answer
