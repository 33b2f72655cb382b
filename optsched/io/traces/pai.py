"""Dialect ``pai``: jobs of Alibaba's PAI cluster, 2020, from the three tables of its folder.

PATH is the folder with ``pai_job_table.csv``, ``pai_task_table.csv`` and ``pai_instance_table.csv``. The tables have no
header; ``*.header`` files next to them are read if they exist. A job has tasks (``ps``, ``worker``), a task has instances::

    job_name,inst_id,user,status,start_time,end_time
    job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type
    job_name,task_name,inst_name,worker_name,inst_id,status,start_time,end_time,machine

=====================  ============================================================  ==================================
column                 unit                                                          becomes
=====================  ============================================================  ==================================
job.job_name           text                                                          ``id``
job.user, job.status   text                                                          ``user``, ``status``
job.start_time         seconds: the **submission**                                   ``arrival``, from the earliest
task.inst_num          instances                                                     ``gpus`` = sum over the tasks of
task.plan_gpu          per cent of a GPU of **each** instance; empty: none           inst_num x plan_gpu / 100
task.gpu_type          name of a GPU type                                            ``gpu_types``, if the cluster names
                                                                                     its types
task.start_time        seconds: the launch                                           not kept
instance.start_time    seconds: when it ran                                          ``ran``: from the first start to the
instance.end_time      seconds                                                       last end of instances with GPUs, and
                                                                                     ``duration``
=====================  ============================================================  ==================================

A time of 0, or an empty one, is missing. Times count from an unknown day; read as UTC+8 they have the true hour and weekday.
Jobs with less than one GPU in total, with a total that is not whole, and with a task on GPUs without ``inst_num`` are left
out by reason.

Source: alibaba/clusterdata @7a6c496, cluster-trace-gpu-v2020 (README, ``.header`` files, ``utils.py``; CC-BY-4.0). Cite
Q. Weng et al., "MLaaS in the Wild", NSDI 2022.
"""

from __future__ import annotations

import hashlib

import polars as pl

from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.ran_jobs import allowed_types, runs, said_of, whole_gangs
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table

TIMES = ("status", "start_time", "end_time")
TABLES = {
    "job": ("job_name", "inst_id", "user", *TIMES),
    "task": ("job_name", "task_name", "inst_num", *TIMES, "plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
    "instance": ("job_name", "task_name", "inst_name", "worker_name", "inst_id", *TIMES, "machine"),
}
NO_GPU = "CPU"  # as a type
KEYS = ["job_name", "task_name"]


@dialect("pai", guesses_cluster=True)
def read(request: TraceRequest) -> TraceRead:
    """Alibaba PAI 2020, a folder with the tables of jobs, tasks and instances.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    if not request.path.is_dir():
        legal = f"the folder with {', '.join(f'pai_{table}_table.csv' for table in TABLES)}"
        why = "not a folder" if request.path.exists() else "no such file or folder"
        raise InputError(why, file=request.path, legal=legal)
    rows, tasks, instances = (_table(request, table) for table in TABLES)
    rows.sha256 = hashlib.sha256("".join(table.sha256 for table in (rows, tasks, instances)).encode()).hexdigest()
    asked, odd_tasks = _tasks(tasks)
    ran, odd_runs = _instances(instances, asked)
    if not request.skip_bad:
        tasks.raise_problems()
        instances.raise_problems()
    name = rows.unique("job_name")
    job = name.to_frame().join(_by_job(asked), on="job_name", how="left", maintain_order="left")
    job = job.join(ran, on="job_name", how="left", maintain_order="left")
    odd = name.is_in(odd_tasks.implode()) | name.is_in(odd_runs.implode())
    rows.reject(odd.fill_null(False), "job_name", "a job whose tasks and instances can be read")
    rows.leave_out(job["tasks"].is_null(), "no task")
    rows.leave_out(~job["uses"], "no GPUs")
    rows.leave_out(job["instances"].is_null(), "never started")
    submit = _times(rows, "start_time")
    rows.leave_out(submit.is_null(), "no submission time")
    end = job.select(pl.when("open").then(_times(rows, "end_time")).otherwise("end").alias("end"))["end"]
    run = runs(rows, job["start"], end, ends="instances", unfinished="still running")
    rows.leave_out(job["held"].is_null(), "no number of instances")
    gangs = whole_gangs(rows, job["held"].round(9), "gpus")
    said_of(rows, job["shares"], "{} of the jobs have instances with a share of a GPU each: their sum is the gang")
    jobs = {"id": name, "arrival": submit, "gpus": gangs, **run}
    jobs |= {field: rows.text(field, required=False) for field in ("user", "status")}
    jobs |= allowed_types(request, rows, job["types"])
    return finish(request, rows, jobs, from_earliest=("arrival",))


def _table(request: TraceRequest, table: str) -> Rows:
    file = request.path / f"pai_{table}_table.csv"
    header = file.with_suffix(".header")
    names = tuple(read_text_table(header).fields.columns) if header.is_file() else TABLES[table]
    rows = Rows(read_text_table(file, names={len(names): names}))
    rows.require(TABLES[table])
    return rows


def _times(rows: Rows, field: str) -> pl.Series:
    """Return seconds, f64[rows]; null where the time is 0 or empty."""
    seconds = rows.number(field, least=0, required=False)
    return seconds.set(seconds == 0, None)


def _tasks(rows: Rows) -> tuple[pl.DataFrame, pl.Series]:
    # the legal rows of tasks, and the names of the jobs of the others
    columns = [rows.text(name) for name in KEYS]
    columns += [rows.number("inst_num", least=0, whole=True, required=False)]
    columns += [rows.number("plan_gpu", least=0, required=False).fill_null(0.0)]
    columns += [rows.text("gpu_type", required=False)]
    table = pl.DataFrame(columns)
    return table.filter(rows.good), columns[0].filter(~rows.good)


def _by_job(tasks: pl.DataFrame) -> pl.DataFrame:
    used, part = pl.col("plan_gpu") > 0, pl.col("inst_num") * pl.col("plan_gpu")
    types = pl.col("gpu_type").filter(used & (pl.col("gpu_type") != NO_GPU)).drop_nulls().unique(maintain_order=True)
    return tasks.group_by("job_name").agg(
        pl.len().alias("tasks"),
        used.any().alias("uses"),
        pl.when(~pl.col("inst_num").filter(used).is_null().any()).then(part.filter(used).sum() / 100).alias("held"),
        (used & (pl.col("plan_gpu") % 100 != 0) & (pl.col("inst_num") > 1)).any().alias("shares"),
        pl.when(types.implode().list.len() > 0).then(types.implode()).alias("types"),
    )


def _instances(rows: Rows, tasks: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    # by job, of tasks with GPUs: first start, last end and whether an end is missing; and the jobs of bad rows
    columns = [rows.text(name) for name in KEYS]
    columns += [_times(rows, name) for name in TIMES[1:]]
    table = pl.DataFrame(columns)
    with_gpus = tasks.filter(pl.col("plan_gpu") > 0).select(KEYS).unique()
    start, end = (pl.col(name) for name in TIMES[1:])
    by_job = table.filter(rows.good).join(with_gpus, on=KEYS, how="semi").group_by("job_name")
    ran = by_job.agg(
        pl.len().alias("instances"),
        start.min().alias("start"),
        end.filter(start.is_not_null()).max().alias("end"),
        (start.is_not_null() & end.is_null()).any().alias("open"),
    )
    return ran, columns[0].filter(~rows.good)
