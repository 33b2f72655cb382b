"""A log of tasks that holds and in which transfers contend, and a table of what a forger does to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
from simulation.task_reference import as_schedule, reference_run

from optsched.check.referee import check_schedule
from optsched.classes.task_sharing.problem.task_log import TaskSchedule
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job

CLUSTER = Cluster((NodeGroup(count=2, gpus=2, gpu="V100", gpu_memory=16), NodeGroup(gpus=2, gpu="K80", gpu_memory=12)))
INSTANCE = Instance(
    [
        Job("wide", gpus=3, iterations=4, profile="large", gpu_memory=6),
        Job("pair", arrival=1, gpus=2, iterations=5, profile="small", gpu_memory=4, gpu_types=("V100",)),
        Job("near", arrival=0.5, gpus=2, iterations=3, profile="large", gpu_memory=5),  # on one node: no all-reduce
        Job("quiet", arrival=2, gpus=2, iterations=6, profile="silent", gpu_memory=2),  # over two nodes, no message
        Job("late", arrival=40, gpus=2, iterations=2, profile="small", gpu_memory=12),
    ],
    CLUSTER,
    tasks={
        "large": IterationTasks(0.5, 0.75, 5),
        "small": IterationTasks(0.25, 0.5, 2),
        "silent": IterationTasks(0.3, 0.2),
    },
    contention=Contention(0.5, 0.2, latency=0.1),
)
GANGS = {
    0: [(0, 0), (1, 0), (1, 1)],
    1: [(0, 1), (1, 1)],
    2: [(0, 0), (0, 1)],
    3: [(0, 0), (2, 1)],
    4: [(2, 0), (1, 0)],
}
WIDE, PAIR, NEAR, QUIET, LATE = range(5)
Rows = list[list[Any]]


@dataclass
class Forged:
    """A schedule as lists: segments of (job, gang, start, end, work), tasks of (job, worker, start, end)."""

    segments: Rows
    tasks: Rows
    instance: Instance = INSTANCE

    def schedule(self) -> TaskSchedule:
        return as_schedule(self.instance, self.segments, self.tasks)

    def rules(self) -> set[str]:
        return {violation.rule for violation in check_schedule(self.instance, self.schedule())}

    def of(self, job: int, worker: int) -> Rows:
        """The tasks of a worker (-1: the all-reduces) by start."""
        return sorted((row for row in self.tasks if row[:2] == [job, worker]), key=lambda row: row[2:])

    def segment(self, job: int) -> list[Any]:
        return next(row for row in self.segments if row[0] == job)

    def ends_with_its_tasks(self, job: int) -> None:
        self.segment(job)[3] = max(row[3] for row in self.tasks if row[0] == job)


def untouched() -> Forged:
    """A valid schedule, in floats, in which transfers contend."""
    segments, tasks = reference_run(INSTANCE, GANGS, lambda world, job: True)
    return Forged(
        [[job, gang, float(start), float(end), work] for job, gang, start, end, work in segments],
        [[job, worker, float(start), float(end)] for job, worker, start, end in tasks],
    )


# --- what is done --------------------------------------------------------------------------------------------------------

Touch = Callable[[Forged], Any]
START, END, WORK = 2, 3, 4


def task(job: int, worker: int, k: int, start: float, end: float) -> Touch:
    """The k-th task of a worker starts and ends so much later."""

    def touch(forged: Forged) -> None:
        row = forged.of(job, worker)[k]
        row[START:] = [row[START] + start, row[END] + end]

    return touch


def moved(job: int, worker: int, k: int, by: float) -> Touch:
    return task(job, worker, k, by, by)


def put_task(job: int, worker: int, k: int, column: int, value: float) -> Touch:
    return lambda forged: forged.of(job, worker)[k].__setitem__(column, value)


def dropped(job: int, worker: int, k: int) -> Touch:
    return lambda forged: forged.tasks.remove(forged.of(job, worker)[k])


def sent(job: int, seconds: float) -> Touch:
    """A transfer after the second task of the first worker."""

    def touch(forged: Forged) -> None:
        end = forged.of(job, 0)[1][END]
        forged.tasks.append([job, -1, end, end + seconds])

    return touch


def last_transfer(seconds: Callable[[float], float]) -> Touch:
    """The last transfer of ``LATE`` lasts, and with it the job, a function of what it did."""

    def touch(forged: Forged) -> None:
        row = forged.of(LATE, -1)[-1]
        row[END] = forged.segment(LATE)[END] = row[START] + seconds(row[END] - row[START])

    return touch


def put(job: int, column: int, value: Any) -> Touch:
    return lambda forged: forged.segment(job).__setitem__(column, value)


def longer(job: int, column: int, by: float) -> Touch:
    return lambda forged: put(job, column, forged.segment(job)[column] + by)(forged)


def on(job: int, *gpus: tuple[int, int]) -> Touch:
    return put(job, 1, list(gpus))


def shifted(job: int, seconds: Callable[[Forged], float]) -> Touch:
    def touch(forged: Forged) -> None:
        by = seconds(forged)
        for row in [forged.segment(job), *(row for row in forged.tasks if row[0] == job)]:
            row[START : END + 1] = [row[START] + by, row[END] + by]

    return touch


def judged_by(**changes: Any) -> Touch:
    return lambda forged: setattr(forged, "instance", INSTANCE.replace(**changes))


def one_worker_runs_ahead(forged: Forged) -> None:
    """Of a gang without all-reduce."""
    other = forged.of(QUIET, 1)
    for row in other[-2:]:
        row[START:] = [row[START] + 5, row[END] + 5]
    for row in other[2:]:
        row[START:] = [row[START] - 0.2, row[END] - 0.2]
    forged.ends_with_its_tasks(QUIET)


def one_iteration_less(forged: Forged) -> None:
    """Consistent in everything but the number of iterations."""
    for worker in (0, 1):
        for row in forged.of(QUIET, worker)[-2:]:
            forged.tasks.remove(row)
    forged.ends_with_its_tasks(QUIET)


MEMORY = INSTANCE.table.with_columns(gpu_memory=pl.Series([6.0, 4, 5, 7, 12]))
# what is done, the rule that it breaks, whether it breaks no other, how
FORGERIES: list[tuple[str, str, bool, list[Touch]]] = [
    ("a task is shifted", "rate", False, [moved(QUIET, 1, 3, -0.01)]),
    ("a task is longer", "rate", True, [task(QUIET, 1, -1, 0, 1e-6), longer(QUIET, END, 1e-6)]),
    ("a task is shorter", "rate", False, [task(WIDE, 2, 0, 0, -1e-6)]),
    ("backward before forward", "rate", True, [task(WIDE, 1, 0, 0, 0.25), task(WIDE, 1, 1, 0.25, 0)]),
    ("a task ends before it starts", "rate", False, [task(QUIET, 1, -1, 0.2, -0.2)]),
    ("a transfer before the barrier", "rate", False, [moved(WIDE, -1, -1, -0.1)]),
    ("the next iteration before a transfer has ended", "rate", False, [moved(PAIR, -1, -2, 0.3)]),
    ("the next iteration before the barrier", "rate", False, [one_worker_runs_ahead]),
    ("a task of another worker", "completeness", False, [put_task(WIDE, 0, 2, 1, 1)]),
    ("a transfer is missing", "completeness", False, [dropped(WIDE, -1, 1)]),
    ("a backward task is missing", "completeness", True, [dropped(PAIR, 1, 3)]),
    ("a task twice", "completeness", False, [lambda forged: forged.tasks.append(list(forged.of(PAIR, 1)[3]))]),
    ("a transfer within a node", "completeness", False, [sent(NEAR, 2)]),
    ("a transfer without a message", "completeness", False, [sent(QUIET, 1)]),
    ("a foreign job", "completeness", True, [lambda forged: forged.tasks.append([17, 0, 0.0, 0.5])]),
    ("an end that is no number", "completeness", False, [put_task(WIDE, 0, 0, END, math.nan)]),
    ("a start without end", "completeness", False, [put_task(WIDE, -1, 0, START, -math.inf)]),
    ("a placement that is no number", "completeness", False, [put(WIDE, START, math.nan)]),
    ("a job never runs", "completeness", False, [lambda forged: forged.segments.remove(forged.segment(LATE))]),
    ("a job is there twice", "completeness", False, [
        lambda forged: forged.segments.append([LATE, [(2, 0), (1, 0)], 60.0, 61.0, 0.0])
    ]),
    ("an iteration less", "completeness", True, [one_iteration_less]),
    ("too few iterations", "work", True, [put(QUIET, WORK, 5)]),
    ("workers are swapped", "capacity", False, [on(PAIR, (1, 1), (0, 1))]),
    ("two tasks at once", "capacity", False, [
        on(LATE, (0, 0), (1, 0)), shifted(LATE, lambda forged: -forged.segment(LATE)[START])
    ]),
    ("a GPU twice", "capacity", False, [on(NEAR, (0, 0), (0, 0))]),
    ("a GPU that is not there", "capacity", False, [on(QUIET, (0, 0), (2, 2))]),
    ("a node that is not there", "capacity", False, [on(QUIET, (0, 0), (9, 0))]),
    ("a transfer too slow", "transfer", True, [last_transfer(lambda seconds: seconds * (1 + 1e-6))]),
    ("a transfer too fast", "transfer", True, [last_transfer(lambda seconds: seconds * (1 - 1e-6))]),
    ("a transfer within its latency", "transfer", False, [last_transfer(lambda _: 0.05)]),
    ("a transfer without latency", "transfer", False, [last_transfer(lambda _: 1)]),  # alone, 2 bytes in a second
    ("made for other costs", "transfer", True, [judged_by(contention=Contention(0.5, 0.1, latency=0.1))]),
    ("a start before the arrival", "arrival", True, [shifted(LATE, lambda _: -0.5)]),
    ("a task before the placement", "arrival", False, [longer(WIDE, START, 0.1)]),
    ("a task after the completion", "arrival", False, [longer(QUIET, END, -0.1)]),
    ("a completion after the last task", "arrival", True, [longer(LATE, END, 0.1)]),
    ("a gang too small", "gang", False, [on(WIDE, (0, 0), (1, 0))]),
    ("a worker that is not there", "gang", False, [put_task(PAIR, 1, 0, 1, 2)]),
    ("a worker below all", "gang", False, [put_task(PAIR, 1, 0, 1, -2)]),
    ("too much memory", "memory", True, [judged_by(jobs=MEMORY)]),  # `late` needs two thirds of a V100 that `wide` is on
    ("a wrong type", "type", False, [on(PAIR, (0, 1), (2, 0))]),
]  # fmt: skip
