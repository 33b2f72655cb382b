"""Random logs of tasks that hold, and the files that say so: for `forged_task_logs`.

A log is what the second simulator (`simulation.task_reference`) does in fractions, rounded to floats; or its residencies
alone.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from simulation.task_instances import random_task_instance
from simulation.task_reference import reference_run

from check.exact_task_referee import LOG, RESIDENCIES, TRANSFER, Document, Facts, Kind
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance

PLACEMENTS = ("first-fit", ("lwf", 1), ("lwf", 2), ("lwf", math.inf))
RULES = (("srsf", 1), ("srsf", 2), ("srsf", 3), "adadual", "k-way", lambda world, job: True, lambda world, job: True)
TRIES = 4  # at a run in which transfers contend
# Where the clock begins, and what a second of the random instance lasts: never less than some thousand ulp of the clock.
CLOCKS = (
    *((0.0, 1.0), (0.0, 1.0), (0.0, 1e-3), (0.0, 1e3), (1e6, 1.0), (1e6, 1e-3), (1e6, 1e3), (0.0, 2.0**-10)),
    *((1.7e9, 1.0), (1.7e9, 0.1), (1.7e9, 1e3), (1e12, 1.0), (1e12, 1e3)),
)
# Tasks of a few ulp, or of none: nothing can be said of forgeries, but what is drawn holds.
COARSE_CLOCKS = (
    (1e12, 1e-4),
    (1e12, 1e-3),
    (1e12, 1e-2),
    (1e12, 0.1),
    (1.7e9, 1e-5),
    (1.7e9, 1e-3),
    (0.0, 1e-12),
    (0.0, 1e9),
)
MOST_JOBS = 6
Rng = np.random.Generator


def pick(rng: Rng, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


class Case:
    """An instance, a second one that differs a little, both as plain numbers, and a document that holds."""

    def __init__(self, rng: Rng, seed: int, *, log: bool, clocks: Sequence[tuple[float, float]] = CLOCKS) -> None:
        self.epoch, self.unit = clocks[int(rng.integers(len(clocks)))]
        instance = _at_clock(_with_empty_tasks(rng, random_task_instance(seed, MOST_JOBS)), self.epoch, self.unit)
        self.instances = [instance, _a_little_different(rng, instance)]
        self.facts = [_facts(each) for each in self.instances]
        segments, tasks = _run(rng, instance)
        ids = instance.ids
        gangs = [
            [ids[job], [list(gpu) for gpu in gang], float(start), float(end), work]
            for job, gang, start, end, work in segments
        ]
        head = {"format": LOG, "instance": instance.digest, "policy": "drawn", "gangs": gangs}
        rows = [[job, worker, float(start), float(end)] for job, worker, start, end in tasks]
        self.witness = {"head": head, "rows": rows, "instance": 0, "spoilt": None, "wide": False, "narrow": False}
        self.document: Document = copy.deepcopy(self.witness)
        if not log:
            self.document["head"].update(format=RESIDENCIES, sharing=True)
            self.document["rows"] = None

    @property
    def jobs(self) -> tuple[Kind, ...]:
        return self.facts[0].jobs


def _run(rng: Rng, instance: Instance) -> tuple[Any, Any]:
    for _ in range(TRIES):
        segments, tasks = reference_run(instance, pick(rng, PLACEMENTS), pick(rng, RULES))
        sent = sorted((start, end) for _, worker, start, end in tasks if worker == TRANSFER)
        if any(other[0] < one[1] for one, other in pairwise(sent)):
            break
    return segments, tasks


def _with_empty_tasks(rng: Rng, instance: Instance) -> Instance:
    """The odd jobs, whose backward tasks take no time, have sometimes empty forward tasks too, or instead."""
    odd = IterationTasks(*pick(rng, [(0.25, 0.0), (0.25, 0.0), (0.0, 0.25), (0.0, 0.0)]), 3)
    return instance.replace(tasks={**instance.tasks, "odd": odd})


def _at_clock(instance: Instance, epoch: float, unit: float) -> Instance:
    cost = instance.contention
    assert cost is not None
    return instance.replace(
        jobs=instance.table.with_columns(pl.col("arrival") * unit + epoch),
        tasks={
            name: IterationTasks(each.forward * unit, each.backward * unit, each.message)
            for name, each in instance.tasks.items()
        },
        contention=Contention(
            cost.seconds_per_byte * unit, cost.penalty * unit, cost.latency * unit, cost.kinds, cost.ratios
        ),
    )


def _a_little_different(rng: Rng, instance: Instance) -> Instance:
    """Other costs, tasks, memory, types or arrivals: what was made for the first is invalid in the second, or it is."""
    cost, jobs = instance.contention, instance.table
    assert cost is not None
    by = 1 + float(rng.choice([0.25, 1e-3, 1e-6, 1e-8, 1e-10]))
    what = int(rng.integers(0, 7))
    if what == 6 and any(group.gpu == "K80" for group in instance.cluster.nodes):
        return _picky(rng, instance)
    if what <= 2:
        costs = [cost.seconds_per_byte, cost.penalty, cost.latency]
        costs[what] = costs[0] * by if what == 0 else costs[what] + costs[0] * (by - 1)
        return instance.replace(contention=Contention(*costs, cost.kinds, cost.ratios))
    if what == 3:
        tasks = {
            name: IterationTasks(each.forward * by, each.backward, each.message)
            for name, each in instance.tasks.items()
        }
        return instance.replace(tasks=tasks)
    if what == 4:
        return instance.replace(jobs=jobs.with_columns(gpu_memory=pl.Series(rng.permutation(instance.gpu_memory))))
    late = instance.arrival.copy()
    late[int(rng.integers(late.size))] *= by
    return instance.replace(jobs=jobs.with_columns(arrival=pl.Series(late)))


def _picky(rng: Rng, instance: Instance) -> Instance:
    """A job may run on K80s alone, by their type or by their memory."""
    jobs = instance.jobs
    k = int(rng.choice([j for j, job in enumerate(jobs) if job.gpus <= 3] or [-1]))
    if k >= 0:
        name, value = pick(rng, [("gpu_types", ("K80",)), ("gpu_memory", 20.0)])
        jobs[k] = replace(jobs[k], **{name: value, "gpu_types": value if name == "gpu_types" else None})
    return instance.replace(jobs=jobs)


def _facts(instance: Instance) -> Facts:
    cost = instance.contention
    assert cost is not None
    jobs = []
    for job in instance.jobs:
        tasks = instance.tasks[str(job.profile)]
        numbers = [Fraction(x) for x in (tasks.forward, tasks.backward, tasks.message or 0)]
        types = job.gpu_types or ()
        jobs.append(
            Kind(
                str(job.id), str(job.profile), job.arrival, job.gpus, int(job.iterations or 0), *numbers,
                job.gpu_memory, types,
            )
        )  # fmt: skip
    nodes = [
        (group.gpu or "", group.gpus, group.gpu_memory or math.inf)
        for group in instance.cluster.nodes
        for _ in range(group.count)
    ]
    ratios = {
        (kind, other): Fraction(value)
        for kind, row in zip(cost.kinds, cost.ratios, strict=True)
        for other, value in zip(cost.kinds, row, strict=True)
    }
    costs = [Fraction(x) for x in (cost.seconds_per_byte, cost.penalty, cost.latency)]
    return Facts(instance.digest, tuple(jobs), tuple(nodes), *costs, ratios)


# --- files ---------------------------------------------------------------------------------------------------------------


def write(document: Document, folder: Path) -> Path:
    """The file that says what a document says."""
    head, rows = document["head"], document["rows"]
    if rows is None:
        path = folder / "residencies.json"
        fields = ("job", "gpus", "start", "end", "work")
        segments = [dict(zip(fields, row, strict=True)) for row in head["gangs"]]
        rest = {name: value for name, value in head.items() if name != "gangs"}
        path.write_text(json.dumps({**rest, "segments": segments}))
        return path
    path = folder / "tasks.parquet"
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    whole, times = pl.Int64 if document["wide"] else pl.Int32, pl.Float32 if document["narrow"] else pl.Float64
    if any(abs(x) >= 2**31 for column in columns[:2] for x in column):
        whole = pl.Int64
    table = pl.DataFrame(
        [
            pl.Series(name, column, dtype=dtype)
            for name, column, dtype in zip(
                ("job", "worker", "start", "end"), columns, (whole, whole, times, times), strict=True
            )
        ]
    )
    if document["wide"]:
        table = table.with_columns(note=pl.lit("nothing"))
    if document["spoilt"] is not None:
        table = SPOILT[document["spoilt"]](table)
    table.write_parquet(path, metadata={"optsched-tasks": json.dumps(head)})
    return path


SPOILT: list[Callable[[pl.DataFrame], pl.DataFrame]] = [
    lambda table: table.drop("worker"),
    lambda table: table.drop("end"),
    lambda table: table.cast({"job": pl.String}),
    lambda table: table.cast({"worker": pl.Float64}),
    lambda table: table.with_columns(worker=pl.col("worker") < 0),
    lambda table: table.cast({"start": pl.String}),
    lambda table: table.with_columns(start=pl.lit(None, dtype=pl.Float64)),
    lambda table: table.with_columns(job=pl.lit(None, dtype=pl.Int32)),
]
