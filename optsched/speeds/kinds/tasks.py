"""Jobs that are simulated task by task: forward and backward on each GPU, then an all-reduce, in every iteration.

If other jobs of the instance have no tasks, there is no task level: then all are whole jobs (`WholeIterations`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from optsched.classes import usual_class
from optsched.errors import InputError, RowProblem
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.documents import Document, Number
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.job_speeds import JobSpeeds, ModelledJobs, Nodes
from optsched.problem.job_table import LONGEST, SHORTEST, rows_that_are
from optsched.problem.scaling import Scaling
from optsched.problem.speed_model import SPEED_MODELS, NamedModel
from optsched.registry import check_known
from optsched.speeds.kinds.scaling_speeds import ScalingSpeeds

MOST_ITERATIONS = 1e12


class TasksDocument(Document):
    """One iteration, task by task: forward and backward on each GPU, then an all-reduce. Seconds and bytes."""

    forward: Number = Field(ge=0, description="seconds on each GPU")
    backward: Number = Field(ge=0)
    message: Number | None = Field(None, gt=0, description="bytes that are all-reduced; absent: nothing is")


class TaskSpeeds(JobSpeeds):
    """Speeds without an upper bound on iteration times: jobs share GPUs and network with any number of others."""

    def paces(self) -> tuple[Floats, Floats]:
        instance = self.instance
        fastest = instance.forward + instance.backward
        if instance.contention is not None:  # an all-reduce where the gang is wider than every node it may use
            cost, spans = instance.contention, instance.too_wide & (instance.message > 0)
            fastest = fastest + np.where(spans, cost.latency + cost.seconds_per_byte * instance.message, 0.0)
        alone = instance.work * fastest
        for j in np.flatnonzero(~((alone >= SHORTEST) & (alone <= LONGEST)))[:1].tolist():
            raise InputError(
                f"job {instance.ids[j]!r} takes {alone[j]:g} s when nothing is in its way",
                field="tasks",
                value=instance.table["profile"][j],
                legal=f"iterations that take {SHORTEST:g} to {LONGEST:g} seconds, also where the gang is on one node",
            )
        return fastest, np.full(instance.n, np.inf)

    def paces_on(self, jobs: Ints, nodes: Callable[[int], Nodes]) -> Floats:
        """Return the seconds of a unit of work of many jobs, f64[S].

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[S].
        nodes
            Function that returns the nodes of the k-th one.
        """
        # The compute of an iteration: no placement determines the time of its all-reduce.
        return (self.instance.forward + self.instance.backward)[jobs]


def at_job_level(instance: Source) -> Instance:
    """Return the same jobs with a speed instead of tasks: they hold whole GPUs, for any policy of whole jobs.

    An iteration of t = forward + backward seconds and a message of M bytes takes t on one node, t + a + b M over
    several (a scaling profile of the job's gang, one sample a worker), and longer next to other jobs on its network
    interfaces: contention remains, at the job level (`optsched.speeds.interface_sharing`). GPUs are no longer shared,
    except by policies that share them if the instance states the cost.

    Parameters
    ----------
    instance
        Jobs with tasks, or their SOURCE. Any other instance is returned unchanged: jobs with tasks next to jobs at other
        speeds are whole jobs anyway.

    Raises
    ------
    InputError
        An iteration consists of a message alone.

    Examples
    --------
    >>> import optsched as osd
    >>> jobs = [osd.Job(name, gpus=2, iterations=10, profile="net") for name in "ab"]
    >>> tasks = {"net": osd.IterationTasks(forward=0.25, backward=0.25, message=5e8)}
    >>> made = osd.Instance(jobs, "2x1", tasks=tasks, contention=osd.Contention(1e-9))
    >>> osd.simulate(osd.at_job_level(made), "fifo").schedule.completion.tolist()
    [10.0, 20.0]
    """
    made = instance_of(instance)
    if usual_class(made).whole:
        return made
    return made.replace(
        jobs=made.table.with_columns(batch_size=pl.col("gpus")),
        tasks=None,
        scalings={name: whole_iterations(tasks, made.contention) for name, tasks in made.tasks.items()},
    )


def whole_iterations(tasks: IterationTasks, cost: Contention | None) -> Scaling:
    """Return the scaling profile of a gang with one sample a worker that does these iterations.

    Parameters
    ----------
    tasks
        Tasks of an iteration.
    cost
        Costs of an all-reduce; None: it is free.
    """
    latency, per_byte = (0.0, 0.0) if cost is None else (cost.latency, cost.seconds_per_byte)
    across = 0.0 if tasks.message is None else latency + per_byte * tasks.message
    return Scaling(compute=tasks.compute, per_sample=0.0, across=across, most_local=1)


class WholeIterations(ScalingSpeeds):
    """Speeds of jobs with tasks in an instance with jobs at other speeds, each on its own GPUs: see `at_job_level`."""

    elastic = False

    def __init__(self, instance: ModelledJobs, jobs: Ints, given: Mapping[str, IterationTasks]) -> None:
        speeds = {name: whole_iterations(tasks, instance.contention) for name, tasks in given.items()}
        super().__init__(instance, jobs, speeds)

    def _batches(self) -> list[int]:
        gangs: list[int] = self.instance.gpus[self.jobs].tolist()
        return gangs


@SPEED_MODELS.register("tasks")
class IterationsOfTasks(NamedModel[IterationTasks]):
    """Tasks of an iteration by name, for jobs that share GPUs and are simulated task by task if all jobs have them."""

    formulas = TaskSpeeds
    name, noun, rank = "tasks", "the tasks of an iteration", 3
    closed = True
    description = "what an iteration is made of, by name, for jobs simulated task by task"
    value, entry = IterationTasks, TasksDocument

    def speeds(self, instance: ModelledJobs, jobs: Ints) -> JobSpeeds:
        """Return the speeds of the jobs that run by the model.

        Parameters
        ----------
        instance
            Jobs and a cluster.
        jobs
            Numbers of the jobs, i64[k].
        """
        return (TaskSpeeds if instance.at_task_level else WholeIterations)(instance, jobs, self.given)

    def problems(self, table: pl.DataFrame, cluster: Cluster) -> list[RowProblem]:
        """Return the jobs with a number of iterations that is not an integer, or too large.

        Parameters
        ----------
        table
            Table of the jobs.
        cluster
            The cluster.
        """
        if not self.names:
            return []
        rows = table.with_row_index("__row").filter(pl.Series(self.applies_to(table)))
        broken = (pl.col("iterations") != pl.col("iterations").floor()) & pl.col("iterations").is_finite()
        too_many = pl.col("iterations") > MOST_ITERATIONS
        return [
            *rows_that_are(broken, rows, "iterations", "a whole number", "invalid"),
            *rows_that_are(too_many, rows, "iterations", f"at most {MOST_ITERATIONS:g}", "too many"),
        ]

    def check(self, instance: ModelledJobs) -> None:
        """Check that the instance has all that its jobs need.

        Parameters
        ----------
        instance
            Jobs and a cluster.
        """
        # Without its cost a transfer has no duration; one node, or gangs of one GPU, transfer nothing.
        if instance.at_task_level and instance.interference is not None:
            legal = "none; contention says what jobs with tasks cost each other"
            value = instance.interference.ratio
            raise InputError("jobs with tasks take turns on a GPU", field="interference", value=value, legal=legal)
        sends = np.zeros(instance.n, dtype=bool)
        for j in instance.jobs_at(self.name).tolist() if instance.cluster.node_count > 1 else ():
            sends[j] = instance.gpus[j] > 1 and bool(self.given[instance.table["profile"][j]].message)
        if not sends.any():
            return
        if instance.contention is None:
            raise InputError(
                f"missing: job {instance.ids[int(np.argmax(sends))]!r} may send a message over the network",
                field="contention",
                legal="Contention(seconds_per_byte=..., penalty=...), e.g. optsched.problem.contention.ETHERNET_10G",
            )
        if instance.contention.measured:
            for name in sorted(set(instance.table["profile"].filter(pl.Series(sends)).to_list())):
                kinds, where = instance.contention.kinds, {"field": "contention.kinds", "value": name}
                check_known(name, kinds, "kind", "no measured ratios", **where)

    def digest(self, instance: ModelledJobs, names: Sequence[str]) -> list[Any]:
        """Return the documents that decide the speeds of jobs, for the digest of the instance.

        Parameters
        ----------
        instance
            Jobs and a cluster.
        names
            Profiles that jobs name.
        """
        cost = instance.contention
        return [*super().digest(instance, names), None if cost is None else cost.to_json()]
