"""Small instances of the task level whose times are short fractions, so that the exact reference stays fast."""

from __future__ import annotations

from optsched.contract.instances import CLUSTERS, COSTS, MEASURED, TASKS, random_task_instance

__all__ = ["CLUSTERS", "COSTS", "MEASURED", "TASKS", "random_task_instance"]
