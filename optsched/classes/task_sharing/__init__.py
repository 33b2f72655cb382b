"""Class ``task-sharing``: gangs whose jobs have tasks take turns on GPUs and share network interfaces.

It is the only class of instances at the task level (`optsched.problem.contention`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optsched.classes.schedule_class import add_class
from optsched.problem.instance import Instance

if TYPE_CHECKING:
    from optsched.problem.schedule import Schedule


def _policies(instance: Instance) -> tuple[str, ...]:
    cost = instance.contention
    adadual = cost is None or not (cost.measured or cost.penalty < 0)  # else its theorem does not hold
    compared = ("srsf:k=1", "srsf:k=2", "ada-srsf", "leader-first")
    return tuple(name for name in compared if adadual or name != "ada-srsf")


def _read(path: Path, instance: Instance) -> Schedule | None:
    # Imported here because they come with numba and polars, which what only reads names does without.
    from optsched.classes.task_sharing.problem.task_log import FORMAT, TaskSchedule
    from optsched.problem.atomic_files import read_bytes
    from optsched.problem.parquet import parquet_metadata

    if path.suffix.lower() != ".parquet":
        return None
    heads = parquet_metadata(read_bytes(path), path, FORMAT)
    return TaskSchedule.load_tasks(path, instance) if any(FORMAT in head for head in heads.values()) else None


add_class(
    name="task-sharing",
    optimum="the best order of the tasks",
    place=4,
    verified=True,
    has=lambda instance: instance.at_task_level,
    suits=lambda instance: instance.at_task_level,
    lacking="tasks",
    only=True,
    stated="tasks",
    means="tasks",
    method="tasks",
    usual=True,
    alone=False,
    whole=False,
    preemptive=False,
    policies=_policies,
    read=_read,
)
