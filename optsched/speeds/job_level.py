"""`at_job_level`: jobs that have tasks, as whole jobs, for policies that know nothing of forwards and all-reduces."""

from __future__ import annotations

import polars as pl

from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance
from optsched.problem.instance_source import Source, instance_of
from optsched.problem.scaling import Scaling


def at_job_level(instance: Source) -> Instance:
    """The same jobs with a speed in the place of tasks: they hold whole GPUs, and any policy of whole jobs runs them.

    An iteration of t = forward + backward seconds and a message of M bytes takes t on one node, t + a + b M over several
    (a scaling profile of the job's gang, one sample a worker), and longer beside others on its network interfaces:
    contention stays, at the job level (`optsched.speeds.interface_sharing`). GPUs are not shared any more, except by
    policies that share them where the instance says what that costs.

    Parameters
    ----------
    instance : jobs with tasks, or the SOURCE that names them; any other instance comes back as it is: jobs with tasks
        beside jobs at other speeds are whole jobs anyway.

    Raises
    ------
    InputError
        An iteration consists of a message alone.

    >>> import optsched as osd
    >>> jobs = [osd.Job(name, gpus=2, iterations=10, profile="net") for name in "ab"]
    >>> tasks = {"net": osd.IterationTasks(forward=0.25, backward=0.25, message=5e8)}
    >>> made = osd.Instance(jobs, "2x1", tasks=tasks, contention=osd.Contention(1e-9))
    >>> osd.simulate(osd.at_job_level(made), "fifo").schedule.completion.tolist()
    [10.0, 20.0]
    """
    made = instance_of(instance)
    if not made.at_task_level:
        return made
    return made.replace(
        jobs=made.table.with_columns(batch_size=pl.col("gpus")),
        tasks=None,
        scalings={name: whole_iterations(each, made.contention) for name, each in made.tasks.items()},
    )


def whole_iterations(tasks: IterationTasks, cost: Contention | None) -> Scaling:
    """The scaling profile of a gang with one sample a worker that does these iterations."""
    latency, per_byte = (0.0, 0.0) if cost is None else (cost.latency, cost.seconds_per_byte)
    across = 0.0 if tasks.message is None else latency + per_byte * tasks.message
    return Scaling(compute=tasks.compute, per_sample=0.0, across=across, most_local=1)
