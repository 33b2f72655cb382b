"""`TaskLog` and `TaskSchedule`: every forward, backward and all-reduce of a schedule at the task level."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.parquet import read_headed, write_headed
from optsched.problem.schedule import Schedule, Segment

FORMAT = "optsched-tasks/1"
TRANSFER = -1  # in place of a worker

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class TaskLog:
    """R tasks as a struct of arrays, in no particular order; times in seconds.

    ``job`` i32[R]; ``worker`` i32[R]: which worker of the gang (0 .. n_j - 1), or `TRANSFER` for an all-reduce; ``start``,
    ``end`` f64[R]. By start, the tasks of a worker are forward, backward, forward, ..., and the all-reduces of a job those
    of its iterations: so neither is written down.
    """

    job: Int32s = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    worker: Int32s = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    start: Floats = field(default_factory=lambda: np.zeros(0))
    end: Floats = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return self.job.size

    def __repr__(self) -> str:
        return f"TaskLog({len(self)} tasks)"


@dataclass(frozen=True, eq=False, repr=False)
class TaskSchedule(Schedule):
    """A schedule whose segments say where a job is resident, and ``tasks`` what ran when.

    One segment a job: its GPUs are its workers in order, from its placement to its completion, ``work`` its iterations. Jobs
    share GPUs, so segments overlap; the tasks on a GPU do not. Without a log (it is large) ``tasks`` is None.
    """

    tasks: TaskLog | None = None
    stated: ClassVar[str] = "tasks"

    def _shifted(self, instance: Instance, seconds: float) -> Self:
        shifted, log = super()._shifted(instance, seconds), self.tasks
        if log is None:
            return shifted
        moved = TaskLog(log.job, log.worker, log.start + seconds, log.end + seconds)
        return replace(shifted, tasks=moved)

    def save_whole(self, stem: str, **stated: Any) -> None:
        """Write gangs and tasks to one file.

        Parameters
        ----------
        stem
            Path without the suffix.
        **stated
            Facts that a file of tasks does not hold.
        """
        self.save_tasks(f"{stem}.parquet")

    def save_details(self, folder: Path, stem: str) -> list[Path]:
        """Write the log of the tasks, if any, and return its file.

        Parameters
        ----------
        folder
            Where it is written.
        stem
            Name of the file after ``tasks-``, without the suffix.
        """
        if self.tasks is None:
            return []
        path = folder / f"tasks-{stem}.parquet"
        self.save_tasks(path)
        return [path]

    def save_tasks(self, path: str | os.PathLike[str]) -> None:
        """Write gangs and tasks to a Parquet file, whole or not at all.

        Parameters
        ----------
        path
            File to write.

        Raises
        ------
        InputError
            If there is no log of tasks.
        """
        if self.tasks is None:
            raise InputError("the schedule was made without a log of its tasks", file=path)
        log, ids = self.tasks, self.instance.ids
        gangs = [
            [ids[segment.job], [list(pair) for pair in segment.gpus], segment.start, segment.end, segment.work]
            for segment in self.segments()
        ]
        head = {"format": FORMAT, "instance": self.instance.digest, "policy": self.policy, "gangs": gangs}
        table = pl.DataFrame({"job": log.job, "worker": log.worker, "start": log.start, "end": log.end})
        if Path(path).suffix.lower() != ".parquet":
            raise InputError("tasks are written as Parquet", file=path, legal=".parquet")
        write_headed(table, path, head)

    @classmethod
    def load_tasks(cls, path: str | os.PathLike[str], instance: Source) -> TaskSchedule:
        """Read a file of tasks.

        Parameters
        ----------
        path
            File to read.
        instance
            Instance of the tasks, or the SOURCE that names it.

        Raises
        ------
        InputError
            If the file is not one of tasks, or belongs to another instance.
        """
        instance = instance_of(instance)
        head, table = read_headed(path, FORMAT, "not a file of tasks")
        if head.get("instance") != instance.digest:
            raise InputError("the tasks belong to another instance", file=path, field="instance", legal=instance.digest)
        try:
            gangs = [
                Segment(instance.index[job], tuple((m, k) for m, k in gpus), float(start), float(end), float(work))
                for job, gpus, start, end, work in head["gangs"]
            ]
            sizes = instance.cluster.node_gpus
            for gang in gangs:
                if not all(0 <= node < sizes.size and 0 <= index < sizes[node] for node, index in gang.gpus):
                    raise ValueError(f"a gang on GPUs that the cluster does not have: {list(gang.gpus)}")
                times = [gang.start, gang.end, gang.work]
                if not np.isfinite(times).all():
                    raise ValueError(f"times and work of a gang are {times}")
            made = cls.from_segments(instance, gangs, str(head.get("policy", "")))
            kinds = {"job": pl.Int32, "worker": pl.Int32, "start": pl.Float64, "end": pl.Float64}
            log = TaskLog(*(table[name].cast(kind).to_numpy().copy() for name, kind in kinds.items()))
            known = (log.job >= 0) & (log.job < instance.n)
            if not known.all():
                raise ValueError(f"a task of job number {log.job[~known][0]}, of {instance.n} jobs")
            if not (np.isfinite(log.start) & np.isfinite(log.end)).all():
                raise ValueError("a task without a start or an end")
        except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise InputError(f"invalid: {error!r}", file=path, legal=FORMAT) from None
        return replace(made, tasks=log)
