"""Random logs of tasks that are legal, and ways to forge them: for `test_forged_task_logs`.

A log is what the second simulator (`simulation.task_reference`) does in fractions, rounded to floats, so it holds; or its
residencies alone. Then somebody touches it: by hand as in `test_task_check` but at random, by some ulp, by the head.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from simulation.task_instances import random_task_instance
from simulation.task_reference import reference_run

from check.exact_task_referee import LOG, RESIDENCIES, TRANSFER, Document, Facts, Kind, Row
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
        segments, tasks = reference_run(instance, _pick(rng, PLACEMENTS), _pick(rng, RULES))
        sent = sorted((start, end) for _, worker, start, end in tasks if worker == TRANSFER)
        if any(other[0] < one[1] for one, other in pairwise(sent)):
            break
    return segments, tasks


def _with_empty_tasks(rng: Rng, instance: Instance) -> Instance:
    """The odd jobs, whose backward tasks take no time, have sometimes empty forward tasks too, or instead."""
    odd = IterationTasks(*_pick(rng, [(0.25, 0.0), (0.25, 0.0), (0.0, 0.25), (0.0, 0.0)]), 3)
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
    if what == 0:
        b, eta = cost.seconds_per_byte * by, cost.penalty
        return instance.replace(contention=Contention(b, eta, cost.latency, cost.kinds, cost.ratios))
    if what == 1:
        eta = cost.penalty + cost.seconds_per_byte * (by - 1)
        return instance.replace(
            contention=Contention(cost.seconds_per_byte, eta, cost.latency, cost.kinds, cost.ratios)
        )
    if what == 2:
        latency = cost.latency + cost.seconds_per_byte * (by - 1)
        return instance.replace(
            contention=Contention(cost.seconds_per_byte, cost.penalty, latency, cost.kinds, cost.ratios)
        )
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
        name, value = _pick(rng, [("gpu_types", ("K80",)), ("gpu_memory", 20.0)])
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


# --- forging -------------------------------------------------------------------------------------------------------------


def forged(rng: Rng, case: Case) -> tuple[Document, bool]:
    """The document of a case after one to three forgeries, and whether all of these were harmless."""
    document, harmless = copy.deepcopy(case.document), True
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        log = document["rows"] is not None
        ways = [*WAYS, *(ROW_WAYS if document["rows"] else [])] if log else WAYS + RESIDENCY_WAYS
        way = ways[int(rng.integers(len(ways)))]
        if document["head"]["gangs"]:
            way(rng, case, document)
            harmless = harmless and way in HARMLESS
    if document["narrow"]:
        with np.errstate(over="ignore"):
            for row in document["rows"]:
                row[2:] = np.array(row[2:], dtype=np.float32).tolist()
    return document, harmless


def _pick(rng: Rng, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _gang(rng: Rng, document: Document) -> Row:
    gang: Row = _pick(rng, document["head"]["gangs"])
    return gang


def _own_gang(document: Document, case: Case, job: int) -> Row | None:
    names = [each.name for each in case.jobs]
    return next((g for g in document["head"]["gangs"] if 0 <= job < len(names) and g[0] == names[job]), None)


def _task(rng: Rng, document: Document, *, transfer: bool | None = None) -> Row:
    """Any task; if possible, a transfer or none."""
    wanted = [row for row in document["rows"] if transfer is None or (row[1] == TRANSFER) == transfer]
    task: Row = _pick(rng, wanted or document["rows"])
    return task


def _slot(document: Document, job: int, worker: int) -> list[Row]:
    return sorted((row for row in document["rows"] if row[0] == job and row[1] == worker), key=lambda row: row[2:])


def _amount(rng: Rng, case: Case, near: float, length: float) -> float:
    """Seconds of either sign: near what rounding may be, some ulp, a part of a length, a part of the unit, or many units."""
    tick = math.ulp(near) if math.isfinite(near) else 1.0
    edge = [*(tick * k for k in (7, 9, 20, 30, 60, 200)), *(length * x for x in (9e-10, 5e-9, 1e-8, 5e-8))]
    sizes = [
        *(tick * k for k in (0.5, 1, 2, 1000)),
        *(length * x for x in (1, 1e-3, 1e-6, 1e-10, 1e-12)),
        *(case.unit * x for x in (0.125, 0.25, 0.5, 1, 1e-3, 1e-6, 10)),
    ]
    sizes = edge if rng.random() < 0.4 else sizes
    return float(rng.choice([-1, 1])) * float(_pick(rng, sizes))


def _ends_with_its_tasks(case: Case, document: Document, job: int) -> None:
    """The residency of a job ends when the last of its tasks does: what a careful forger thinks of."""
    gang, ends = _own_gang(document, case, job), [row[3] for row in document["rows"] if row[0] == job]
    if gang is not None and ends:
        gang[3] = max(ends)


def _shift_a_task(rng: Rng, case: Case, document: Document) -> None:
    row = _task(rng, document, transfer=_pick(rng, [True, False]))
    by = _amount(rng, case, row[3], row[3] - row[2])
    row[2], row[3] = row[2] + by, row[3] + by
    if rng.random() < 0.5:
        _ends_with_its_tasks(case, document, row[0])


def _stretch_a_task(rng: Rng, case: Case, document: Document) -> None:
    row = _task(rng, document, transfer=_pick(rng, [True, False]))
    row[_pick(rng, [2, 3])] += _amount(rng, case, row[3], row[3] - row[2])
    if rng.random() < 0.7:
        _ends_with_its_tasks(case, document, row[0])


def _stretch_the_last(rng: Rng, case: Case, document: Document) -> None:
    """The last task of a job: nobody waits for it."""
    job = _task(rng, document)[0]
    row = max((row for row in document["rows"] if row[0] == job), key=lambda row: row[3])
    by = _amount(rng, case, row[3], row[3] - row[2])
    row[3] += by
    if rng.random() < 0.4:
        row[2] += by
    _ends_with_its_tasks(case, document, job)


def _tick(rng: Rng, case: Case, document: Document) -> None:
    """One number, or one that occurs in many places everywhere, by some ulp."""
    row = _task(rng, document)
    old = row[_pick(rng, [2, 3])]
    if not math.isfinite(old):
        return
    new = old + float(rng.choice([-1, 1])) * float(_pick(rng, [1, 2, 7, 9, 30, 100])) * math.ulp(old)
    if rng.random() < 0.5:
        row[2:] = [new if x == old else x for x in row[2:]]
        return
    for each in document["rows"]:
        each[2:] = [new if x == old else x for x in each[2:]]
    for gang in document["head"]["gangs"]:
        gang[2:4] = [new if x == old else x for x in gang[2:4]]


def _exchange(rng: Rng, case: Case, document: Document) -> None:
    """Backward before forward, in as much time together."""
    row = _task(rng, document, transfer=False)
    tasks = _slot(document, *row[:2])
    i = 2 * int(rng.integers(max(len(tasks) // 2, 1)))
    if i + 1 < len(tasks):
        first, second = tasks[i], tasks[i + 1]
        first[3] = second[2] = first[2] + (second[3] - second[2])


def _other_worker(rng: Rng, case: Case, document: Document) -> None:
    row = _task(rng, document)
    gpus = case.jobs[row[0]].gpus if 0 <= row[0] < len(case.jobs) else 1
    row[1] = int(_pick(rng, [TRANSFER, 0, gpus - 1, gpus, -2, 2**31 - 1, 2**40, -(2**40)]))


def _other_job(rng: Rng, case: Case, document: Document) -> None:
    row = _task(rng, document)
    row[0] = int(_pick(rng, [0, len(case.jobs) - 1, len(case.jobs), -1, 2**31 - 1, 2**32, 2**40]))


def _swap_two_workers(rng: Rng, case: Case, document: Document) -> None:
    """Of a job: all of one's tasks are the other's."""
    job = _task(rng, document)[0]
    if not 0 <= job < len(case.jobs):
        return
    one, other = (int(x) for x in rng.integers(0, case.jobs[job].gpus, 2))
    _rename_workers(document, job, {one: other, other: one})


def _rename_workers(document: Document, job: int, new: dict[int, int]) -> None:
    for row in document["rows"]:
        if row[0] == job:
            row[1] = new.get(row[1], row[1])


def _swap_two_jobs(rng: Rng, case: Case, document: Document) -> None:
    one, other = (int(x) for x in rng.integers(0, len(case.jobs), 2))
    for row in document["rows"]:
        row[0] = {one: other, other: one}.get(row[0], row[0])


def _drop(rng: Rng, case: Case, document: Document) -> None:
    document["rows"].remove(_task(rng, document, transfer=_pick(rng, [True, False])))


def _double(rng: Rng, case: Case, document: Document) -> None:
    row = _task(rng, document, transfer=_pick(rng, [True, False]))
    copies = [list(row) for _ in range(int(_pick(rng, [1, 1, 2, 50])))]
    for each in copies:
        if rng.random() < 0.5:
            each[3] = each[2]  # a task of no length
    document["rows"] += copies


def _add_a_transfer(rng: Rng, case: Case, document: Document) -> None:
    """Of any job, also of one that sends nothing."""
    row = _task(rng, document, transfer=False)
    document["rows"].append([row[0], TRANSFER, row[3], row[3] + float(_pick(rng, [0, 1e-9, 1, 5])) * case.unit])


def _run_ahead(rng: Rng, case: Case, document: Document) -> None:
    """A worker, or the whole job, is earlier (or later) from some task on."""
    row = _task(rng, document)
    by = _amount(rng, case, row[3], row[3] - row[2])
    whole = rng.random() < 0.5
    for each in document["rows"]:
        if each[0] == row[0] and (whole or each[1] == row[1]) and each[2] >= row[2]:
            each[2], each[3] = each[2] + by, each[3] + by
    if rng.random() < 0.7:
        _ends_with_its_tasks(case, document, row[0])


def _as_if_alone(rng: Rng, case: Case, document: Document) -> None:
    """A transfer takes what it would without latency, without others, or no time; and the job goes on from there."""
    row = _task(rng, document, transfer=True)
    if row[1] != TRANSFER or not 0 <= row[0] < len(case.jobs):
        return
    facts, job = case.facts[0], case.jobs[row[0]]
    alone = float(facts.cost * job.message)
    end = row[2] + _pick(rng, [alone, alone + float(facts.latency), float(facts.latency) / 2, 0.0, alone / 2])
    if not math.isfinite(end) or not math.isfinite(row[3]):
        return
    by, since = end - row[3], row[3]
    row[3] = end
    if rng.random() < 0.6:
        for each in document["rows"]:
            if each[0] == row[0] and each[2] >= since:
                each[2], each[3] = each[2] + by, each[3] + by
    _ends_with_its_tasks(case, document, row[0])


def _shave(rng: Rng, case: Case, document: Document) -> None:
    """All tasks of a job, or of a worker, are a little shorter, and what follows is earlier: it adds up."""
    row = _task(rng, document)
    whole, part = rng.random() < 0.6, float(_pick(rng, [0, 1e-10, 5e-10, 9e-10, 3e-9, 1e-7]))
    tick = float(_pick(rng, [0, 0.5, 1, 4, 7, 7.9])) * math.ulp(row[3] if math.isfinite(row[3]) else 1.0)
    lost: dict[int, float] = {}
    for each in sorted((each for each in document["rows"] if each[0] == row[0]), key=lambda each: each[2:]):
        if not whole and each[1] != row[1]:
            continue
        before = lost.get(each[1], 0.0)
        lost[each[1]] = after = before + tick + part * (each[3] - each[2])
        each[2], each[3] = each[2] - before, max(each[3] - after, each[2] - before)
    _ends_with_its_tasks(case, document, row[0])


def _creep(rng: Rng, case: Case, document: Document) -> None:
    """Many tasks of a worker (all transfers of a job) begin some ulp before what they wait for has ended."""
    row = _task(rng, document, transfer=_pick(rng, [True, False]))
    tick = float(_pick(rng, [0.5, 2, 5, 7, 7.5])) * math.ulp(row[3] if math.isfinite(row[3]) else 1.0)
    together, wait = rng.random() < 0.5, 0.0
    step = 2 if row[1] != TRANSFER and not together else 1
    for each in _slot(document, *row[:2])[int(rng.integers(0, 2)) :: step]:
        wait = wait + tick if together else tick
        each[2], each[3] = each[2] - wait, each[3] - wait
    _ends_with_its_tasks(case, document, row[0])


def _hollow(rng: Rng, case: Case, document: Document) -> None:
    """Tasks of a worker, or all of a job, take no time, where they began or all at once."""
    row = _task(rng, document)
    whole, at = rng.random() < 0.5, _pick(rng, [None, row[2]])
    for each in document["rows"]:
        if each[0] == row[0] and (whole or each[1] == row[1]):
            each[2] = each[2] if at is None else at
            each[3] = each[2]
    if rng.random() < 0.5:
        _ends_with_its_tasks(case, document, row[0])


def _crumbs(rng: Rng, case: Case, document: Document) -> None:
    """A task in many that are empty or tiny, in a time as long."""
    row = _task(rng, document, transfer=_pick(rng, [True, False]))
    if not (math.isfinite(row[2]) and math.isfinite(row[3])):
        return
    document["rows"].remove(row)
    count = int(_pick(rng, [2, 10, 100]))
    length = (row[3] - row[2]) / count * float(_pick(rng, [0, 0.5, 1]))
    document["rows"] += [[*row[:2], row[2] + k * length, row[2] + (k + 1) * length] for k in range(count)]


def _other_iterations(rng: Rng, case: Case, document: Document) -> None:
    """One less, or one more, by everybody; or only the first tasks of those that are missing are filled in, empty."""
    job = _task(rng, document)[0]
    less, empty = rng.random() < 0.7, rng.random() < 0.3
    for worker in sorted({row[1] for row in document["rows"] if row[0] == job}):
        last = _slot(document, job, worker)[-1 if worker == TRANSFER else -2 :]
        for row in last:
            if less:
                document["rows"].remove(row)
            if empty or not less:
                document["rows"].append([*row[:2], row[2], row[2] if empty else row[3]])
    _ends_with_its_tasks(case, document, job)


def _turn_round(rng: Rng, case: Case, document: Document) -> None:
    row = _task(rng, document)
    row[2], row[3] = row[3], row[2]


def _odd(rng: Rng, case: Case, document: Document) -> None:
    value = float(_pick(rng, [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e308, -1e308, 5e-324, 1.7e9]))
    _task(rng, document)[_pick(rng, [2, 3])] = value


def _odd_gang(rng: Rng, case: Case, document: Document) -> None:
    value = float(_pick(rng, [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e308, -1e308, 5e-324, 0.5]))
    _gang(rng, document)[_pick(rng, [2, 3, 4])] = value


def _residency(rng: Rng, case: Case, document: Document) -> None:
    """A residency begins or ends elsewhere."""
    gang = _gang(rng, document)
    gang[_pick(rng, [2, 3])] += _amount(rng, case, gang[3], gang[3] - gang[2])


def _longer_residency(rng: Rng, case: Case, document: Document) -> None:
    """Placed at its arrival: often harmless, if there is memory."""
    gang = _gang(rng, document)
    gang[2] = next((job.arrival for job in case.jobs if job.name == gang[0]), gang[2])
    gang[2] -= float(_pick(rng, [0, 0, math.ulp(gang[2] or 1e-9), 20 * math.ulp(gang[2] or 1e-9), case.unit]))


def _shift_a_job(rng: Rng, case: Case, document: Document) -> None:
    """A job with all its tasks: a little, to its arrival, before it, or behind everybody."""
    gang = _gang(rng, document)
    names = [job.name for job in case.jobs]
    if gang[0] not in names or not math.isfinite(gang[2]):
        return
    job = names.index(gang[0])
    last = max((each[3] for each in document["head"]["gangs"] if math.isfinite(each[3])), default=0.0)
    by = float(
        _pick(
            rng,
            [
                _amount(rng, case, gang[3], gang[3] - gang[2]),
                case.jobs[job].arrival - gang[2],
                case.jobs[job].arrival - gang[2] - case.unit / 2,
                last - gang[2],
                last - gang[2] + case.unit,
            ],
        )
    )
    gang[2], gang[3] = gang[2] + by, gang[3] + by
    for row in document["rows"] or []:
        if row[0] == job:
            row[2], row[3] = row[2] + by, row[3] + by


def _shift_all(rng: Rng, case: Case, document: Document) -> None:
    """Everything by as much; later is harmless but for rounding."""
    by = float(_pick(rng, [1, 64, 1024, -0.25, -1])) * case.unit
    for row in document["rows"] or []:
        row[2], row[3] = row[2] + by, row[3] + by
    for gang in document["head"]["gangs"]:
        gang[2], gang[3] = gang[2] + by, gang[3] + by


def _other_gpus(rng: Rng, case: Case, document: Document) -> None:
    gang = _gang(rng, document)
    every = [[node, index] for node, (_, gpus, _) in enumerate(case.facts[0].nodes) for index in range(gpus)]
    what = int(rng.integers(0, 7))
    if what <= 2:
        chosen = rng.choice(len(every), min(len(gang[1]), len(every)), replace=False)
        gang[1] = [list(every[k]) for k in chosen]
    elif what == 3:
        gang[1] = gang[1][:-1] if rng.random() < 0.5 else [*gang[1], list(_pick(rng, every))]
    elif what == 4:
        gang[1] = [gang[1][0] if gang[1] else [0, 0]] * max(len(gang[1]), 1)
    elif what == 5:
        gang[1] = [*gang[1][:-1], [int(rng.integers(-2, 6)), int(rng.integers(-2, 5))]]
    else:
        gang[1] = [list(gang[1][k]) for k in rng.permutation(len(gang[1]))]


def _exchange_gangs(rng: Rng, case: Case, document: Document) -> None:
    one, other = _gang(rng, document), _gang(rng, document)
    what = _pick(rng, [0, 1])  # each other's names, or each other's GPUs
    one[what], other[what] = other[what], one[what]


def _whose(rng: Rng, case: Case, document: Document) -> None:
    gangs, gang = document["head"]["gangs"], _gang(rng, document)
    what = int(rng.integers(0, 4))
    if what == 0:
        gang[0] = "stranger"
    elif what == 1:
        gangs.remove(gang)
    elif what == 2:
        gangs.append(copy.deepcopy(gang))
    else:  # once more, for no time and no work
        gangs.insert(int(rng.integers(len(gangs) + 1)), [gang[0], copy.deepcopy(gang[1]), gang[3], gang[3], 0])


def _work(rng: Rng, case: Case, document: Document) -> None:
    gang = _gang(rng, document)
    if rng.random() < 0.5:
        gang[4] += int(_pick(rng, [-1, 1, 7]))
    else:
        gang[4] *= 1 + float(rng.choice([-1, 1])) * 10.0 ** -int(rng.integers(0, 17))


def _head(rng: Rng, case: Case, document: Document) -> None:
    head = document["head"]
    name = str(_pick(rng, ["format", "instance", "preemptive", "forking", "sharing", "sharing", "elastic"]))
    if name == "format":
        head["format"] = _pick(rng, ["optsched-tasks/9", "tasks", LOG, RESIDENCIES])
    elif name == "instance":
        head["instance"] = _pick(rng, ["another", *(facts.digest for facts in case.facts)])
    else:
        head[name] = _pick(rng, [True, False, False, None, "yes", 1])


def _stated(rng: Rng, case: Case, document: Document) -> None:
    """The value of the drawn schedule, or nearly, or none."""
    head = document["head"]
    objective = str(_pick(rng, ["total_flow_time", "total_completion_time", "makespan", "beauty"]))
    ends = [Fraction(gang[3]) for gang in case.witness["head"]["gangs"]]
    values = {
        "total_flow_time": sum(ends) - sum(Fraction(job.arrival) for job in case.jobs),
        "total_completion_time": sum(ends),
    }
    value = float(values.get(objective, max(ends)))
    head["objective"] = objective
    head["value"] = _pick(
        rng, [None, value, value, value * (1 - 10.0 ** -int(rng.integers(1, 17))), math.nan, True, value / 2]
    )


def _other_instance(rng: Rng, case: Case, document: Document) -> None:
    """Judged by an instance that differs a little, as if it were made for that."""
    document["instance"] = 1
    document["head"]["instance"] = case.facts[1].digest


def _spoil(rng: Rng, case: Case, document: Document) -> None:
    document["spoilt"] = int(rng.integers(len(SPOILT)))


def _narrow(rng: Rng, case: Case, document: Document) -> None:
    """Times of 32 bits: right where they are short fractions near 0."""
    document["narrow"] = True


def _wide(rng: Rng, case: Case, document: Document) -> None:
    document["wide"] = True


def _another_order(rng: Rng, case: Case, document: Document) -> None:
    if document["rows"]:
        document["rows"] = [document["rows"][k] for k in rng.permutation(len(document["rows"]))]
    gangs = document["head"]["gangs"]
    document["head"]["gangs"] = [gangs[k] for k in rng.permutation(len(gangs))]


def _other_numbers_of_workers(rng: Rng, case: Case, document: Document) -> None:
    """Which worker of a gang is the first, nothing depends on."""
    gang, names = _gang(rng, document), [job.name for job in case.jobs]
    order = rng.permutation(len(gang[1])).tolist()
    gang[1] = [gang[1][k] for k in order]
    if document["rows"] and gang[0] in names:
        _rename_workers(document, names.index(gang[0]), {old: new for new, old in enumerate(order)})


def _policy(rng: Rng, case: Case, document: Document) -> None:
    document["head"]["policy"] = _pick(rng, ["", "another", "optimal"])


def _short_residency(rng: Rng, case: Case, document: Document) -> None:
    """As long as its iterations take without others, or a little less."""
    gang = _gang(rng, document)
    job = next((job for job in case.jobs if job.name == gang[0]), case.jobs[0])
    need = job.iterations * (job.forward + job.backward)
    if len({node for node, _ in gang[1]}) > 1 and job.message:
        need += job.iterations * (case.facts[0].latency + case.facts[0].cost * job.message)
    gang[3] = gang[2] + float(need) * (1 - float(_pick(rng, [0, 0, 1e-12, 1e-9, 1e-6, 0.1, -0.1])))


def _all_at_once(rng: Rng, case: Case, document: Document) -> None:
    """Everybody that is on a GPU with a job is there when it is, and no longer."""
    gang = _gang(rng, document)
    for other in document["head"]["gangs"]:
        if any(gpu in gang[1] for gpu in other[1]):
            other[2], other[3] = max(other[2], gang[2]), gang[3]


Way = Callable[[Rng, Case, Document], None]
HARMLESS: tuple[Way, ...] = (_another_order, _other_numbers_of_workers, _policy, _wide)
WAYS: list[Way] = [
    *HARMLESS[:-1],
    *(_odd_gang, _residency, _residency, _longer_residency, _shift_a_job, _shift_a_job, _shift_all, _other_gpus),
    *(_other_gpus, _exchange_gangs, _whose, _work, _head, _stated, _stated, _other_instance, _other_instance),
]
ROW_WAYS: list[Way] = [
    *(_wide, _shift_a_task, _shift_a_task, _stretch_a_task, _stretch_a_task, _stretch_the_last, _stretch_the_last),
    *(_tick, _tick, _exchange, _other_worker, _other_job, _swap_two_workers, _swap_two_jobs, _drop, _double),
    *(
        _add_a_transfer,
        _run_ahead,
        _run_ahead,
        _as_if_alone,
        _as_if_alone,
        _shave,
        _shave,
        _creep,
        _creep,
        _hollow,
        _crumbs,
    ),
    *(_other_iterations, _turn_round, _odd, _spoil, _narrow),
]
RESIDENCY_WAYS: list[Way] = [_short_residency, _short_residency, _all_at_once, _longer_residency]


def cases(seed: int, count: int, forgeries: int) -> Iterator[tuple[Case, list[tuple[Document, bool]]]]:
    """``count`` cases, every fourth of residencies alone, with so many forged documents each."""
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        case = Case(rng, 1000 * seed + k, log=k % 4 != 3)
        yield case, [forged(rng, case) for _ in range(forgeries)]
