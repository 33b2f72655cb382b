"""Jobs that are simulated task by task: forward and backward on each GPU, then an all-reduce, in every iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from optsched.errors import InputError, RowProblem
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.contention import IterationTasks
from optsched.problem.documents import Document, Number
from optsched.problem.instance import Instance
from optsched.problem.interference import Interference
from optsched.problem.job_speeds import JobSpeeds, Nodes
from optsched.problem.job_table import LONGEST, REPORTED, SHORTEST
from optsched.problem.speed_model import SPEED_MODELS, NamedModel, SpeedModel
from optsched.registry import near_matches

MOST_ITERATIONS = 1e12


class TasksDocument(Document):
    """One iteration, task by task: forward and backward on each GPU, then an all-reduce. Seconds and bytes."""

    forward: Number = Field(ge=0, description="seconds on each GPU")
    backward: Number = Field(ge=0)
    message: Number | None = Field(None, gt=0, description="bytes that are all-reduced; absent: nothing is")


class TaskSpeeds(JobSpeeds):
    """Jobs share GPUs and network with any number of others, so that nothing bounds the time of an iteration from above."""

    def paces(self) -> tuple[Floats, Floats]:
        fastest, instance = self._alone(), self.instance
        alone = instance.work * fastest
        for j in np.flatnonzero(~((alone >= SHORTEST) & (alone <= LONGEST)))[:1].tolist():
            raise InputError(
                f"job {instance.ids[j]!r} takes {alone[j]:g} s when nothing is in its way",
                field="tasks",
                value=instance.table["profile"][j],
                legal=f"iterations that take {SHORTEST:g} to {LONGEST:g} seconds, also where the gang is on one node",
            )
        return fastest, np.full(instance.n, np.inf)

    def _alone(self) -> Floats:
        """t_j, plus a + b M_j where the gang is wider than every node it may use: seconds an iteration takes at least."""
        instance = self.instance
        seconds = instance.forward + instance.backward
        if instance.contention is None:
            return seconds
        cost, widest = instance.contention, (instance.class_eligible * instance.cluster.node_gpus).max(axis=1)
        spans = (instance.gpus > widest[instance.job_class]) & (instance.message > 0)
        return seconds + np.where(spans, cost.latency + cost.seconds_per_byte * instance.message, 0.0)

    def paces_on(self, jobs: Ints, nodes: Callable[[int], Nodes]) -> Floats:
        # of an iteration's compute: how long its all-reduce takes, no placement says
        return (self.instance.forward + self.instance.backward)[jobs]


@SPEED_MODELS.register("tasks")
class IterationsOfTasks(NamedModel[IterationTasks]):
    """Given by name. Where there are some, every job of the instance has them, and GPUs are shared."""

    formulas = TaskSpeeds
    name, noun, rank = "tasks", "the tasks of an iteration", 3
    description = "what an iteration is made of, by name, for jobs simulated task by task"
    value, entry = IterationTasks, TasksDocument

    def stands_beside(self, others: Sequence[SpeedModel], interference: Interference | None) -> None:
        if self.names and interference is not None:
            legal = "none; contention says what jobs with tasks cost each other"
            raise InputError(
                "jobs with tasks take turns on a GPU", field="interference", value=interference.ratio, legal=legal
            )
        if self.names and others:
            legal = "either tasks, or profiles, throughputs and scalings"
            raise InputError("jobs with tasks and jobs at other speeds do not run together", field="tasks", legal=legal)

    def problems(self, table: pl.DataFrame, cluster: Cluster) -> list[RowProblem]:
        """A gang takes one GPU a worker, each with room for the job's memory, and a job does whole iterations."""
        if not self.names:
            return []
        rows, known = table.with_row_index("__row"), list(self.names)
        unknown = pl.col("profile").is_null() | ~pl.col("profile").is_in(known)
        broken = (pl.col("iterations") != pl.col("iterations").floor()) & pl.col("iterations").is_finite()
        of_time = pl.col("duration").is_not_null()
        problems = [
            RowProblem(row + 1, "profile", name, near_matches(str(name), known, kind="profile"), "no tasks")
            for row, name in rows.filter(unknown & ~of_time).head(REPORTED).select("__row", "profile").iter_rows()
        ]
        for field, wrong, legal, message in (
            ("duration", of_time, "iterations with a profile: jobs beside jobs with tasks have tasks", "not legal"),
            ("iterations", broken, "a whole number", "not legal"),
            ("iterations", pl.col("iterations") > MOST_ITERATIONS, f"at most {MOST_ITERATIONS:g}", "too many"),
        ):
            found = rows.filter(wrong).head(REPORTED).select("__row", field).iter_rows()
            problems += [RowProblem(row + 1, field, value, legal, message) for row, value in found]
        return problems

    def check(self, instance: Instance) -> None:
        # Without its cost a transfer has no duration; one node, or gangs of one GPU, transfer nothing.
        if not self.names or instance.cluster.node_count == 1:
            return
        sends = (instance.message > 0) & (instance.gpus > 1)
        if not sends.any():
            return
        if instance.contention is None:
            raise InputError(
                f"missing: job {instance.ids[int(np.argmax(sends))]!r} may send a message over the network",
                field="contention",
                legal="Contention(seconds_per_byte=..., penalty=...), e.g. optsched.problem.contention.ETHERNET_10G",
            )
        if instance.contention.measured:
            kinds = instance.contention.kinds
            for name in sorted(set(instance.table["profile"].filter(pl.Series(sends)).to_list())):
                if name not in kinds:
                    legal = near_matches(name, list(kinds), kind="kind")
                    raise InputError("no measured ratios", field="contention.kinds", value=name, legal=legal)

    def digest(self, instance: Instance, names: Sequence[str]) -> list[Any]:
        cost = instance.contention
        return [*super().digest(instance, names), None if cost is None else cost.to_json()]
