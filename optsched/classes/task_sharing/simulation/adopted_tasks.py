"""`AdoptedTasks`: a plain object with ``tasks(jobs)`` as a policy."""

from __future__ import annotations

from optsched.classes.task_sharing.simulation.task_policy import TaskJobs, TaskOrder, TaskPolicy
from optsched.simulation.adopted import ADOPTED, Adopted


class AdoptedTasks(Adopted, TaskPolicy):
    """A plain object with ``tasks(jobs)``."""

    _method = "tasks"

    def __init__(self, own: object) -> None:
        super().__init__(own)
        self.uses = TaskPolicy.uses

    def tasks(self, jobs: TaskJobs) -> TaskOrder:
        """Ask the object.

        Parameters
        ----------
        jobs
            What is known of the jobs at their arrival.
        """
        order: TaskOrder = self._own.tasks(jobs)
        return order


ADOPTED.register("task-sharing", AdoptedTasks)
