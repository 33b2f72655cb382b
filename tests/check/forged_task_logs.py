"""Ways to forge a log of tasks: for `test_forged`.

Somebody touches a log that holds (`task_cases`): by hand as in `task_forgeries` but at random, by some ulp, by the head.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from check.exact_task_referee import LOG, RESIDENCIES, TRANSFER, Document, Row
from check.task_cases import SPOILT, Case, Rng, pick


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


def _gang(rng: Rng, document: Document) -> Row:
    gang: Row = pick(rng, document["head"]["gangs"])
    return gang


def _own_gang(document: Document, case: Case, job: int) -> Row | None:
    names = [each.name for each in case.jobs]
    return next((g for g in document["head"]["gangs"] if 0 <= job < len(names) and g[0] == names[job]), None)


def _task(rng: Rng, document: Document, *, transfer: bool | None = None) -> Row:
    """Any task; if possible, a transfer or none."""
    wanted = [row for row in document["rows"] if transfer is None or (row[1] == TRANSFER) == transfer]
    task: Row = pick(rng, wanted or document["rows"])
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
    return float(rng.choice([-1, 1])) * float(pick(rng, sizes))


def _ends_with_its_tasks(case: Case, document: Document, job: int) -> None:
    """The residency of a job ends when the last of its tasks does: what a careful forger thinks of."""
    gang, ends = _own_gang(document, case, job), [row[3] for row in document["rows"] if row[0] == job]
    if gang is not None and ends:
        gang[3] = max(ends)


def _shift_a_task(rng: Rng, case: Case, document: Document) -> None:
    row = _task(rng, document, transfer=pick(rng, [True, False]))
    by = _amount(rng, case, row[3], row[3] - row[2])
    row[2], row[3] = row[2] + by, row[3] + by
    if rng.random() < 0.5:
        _ends_with_its_tasks(case, document, row[0])


def _stretch_a_task(rng: Rng, case: Case, document: Document) -> None:
    """Often the last of its job: nobody waits for that."""
    row = _task(rng, document, transfer=pick(rng, [True, False]))
    if rng.random() < 0.5:
        row = max((each for each in document["rows"] if each[0] == row[0]), key=lambda each: each[3])
    row[pick(rng, [2, 3, 3])] += _amount(rng, case, row[3], row[3] - row[2])
    if rng.random() < 0.8:
        _ends_with_its_tasks(case, document, row[0])


def _tick(rng: Rng, case: Case, document: Document) -> None:
    """One number, or one that occurs in many places everywhere, by some ulp."""
    row = _task(rng, document)
    old = row[pick(rng, [2, 3])]
    if not math.isfinite(old):
        return
    new = old + float(rng.choice([-1, 1])) * float(pick(rng, [1, 2, 7, 9, 30, 100])) * math.ulp(old)
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
    row[1] = int(pick(rng, [TRANSFER, 0, gpus - 1, gpus, -2, 2**31 - 1, 2**40, -(2**40)]))


def _other_job(rng: Rng, case: Case, document: Document) -> None:
    row = _task(rng, document)
    row[0] = int(pick(rng, [0, len(case.jobs) - 1, len(case.jobs), -1, 2**31 - 1, 2**32, 2**40]))


def _swap(rng: Rng, case: Case, document: Document) -> None:
    """All tasks of two workers of a job, or of two jobs, or the names or GPUs of two gangs are exchanged."""
    what = int(rng.integers(0, 4)) if document["rows"] else int(rng.integers(2, 4))
    if what >= 2:
        one, other = _gang(rng, document), _gang(rng, document)
        one[what - 2], other[what - 2] = other[what - 2], one[what - 2]
        return
    job = _task(rng, document)[0]
    if what == 0 and 0 <= job < len(case.jobs):
        first, second = (int(x) for x in rng.integers(0, case.jobs[job].gpus, 2))
        _rename_workers(document, job, {first: second, second: first})
    elif what == 1:
        first, second = (int(x) for x in rng.integers(0, len(case.jobs), 2))
        for row in document["rows"]:
            row[0] = {first: second, second: first}.get(row[0], row[0])


def _odd(rng: Rng, case: Case, document: Document) -> None:
    row, columns = _gang(rng, document), [2, 3, 4]
    if document["rows"] and rng.random() < 0.5:
        row, columns = _task(rng, document), [2, 3]
        if rng.random() < 0.5:
            row[2], row[3] = row[3], row[2]
            return
    row[pick(rng, columns)] = float(
        pick(rng, [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e308, -1e308, 5e-324, 0.5, 1.7e9])
    )


def _as_written(rng: Rng, case: Case, document: Document) -> None:
    """A column is missing or of another type, or times have 32 bits: right where they are short fractions near 0."""
    if rng.random() < 0.5:
        document["spoilt"] = int(rng.integers(len(SPOILT)))
    else:
        document["narrow"] = True


def _label(rng: Rng, case: Case, document: Document) -> None:
    document["head"]["policy"] = pick(rng, ["", "another", "optimal"])
    document["wide"] = document["rows"] is not None


def _rename_workers(document: Document, job: int, new: dict[int, int]) -> None:
    for row in document["rows"]:
        if row[0] == job:
            row[1] = new.get(row[1], row[1])


def _drop(rng: Rng, case: Case, document: Document) -> None:
    document["rows"].remove(_task(rng, document, transfer=pick(rng, [True, False])))


def _double(rng: Rng, case: Case, document: Document) -> None:
    row = _task(rng, document, transfer=pick(rng, [True, False]))
    copies = [list(row) for _ in range(int(pick(rng, [1, 1, 2, 50])))]
    for each in copies:
        if rng.random() < 0.5:
            each[3] = each[2]  # a task of no length
    document["rows"] += copies


def _add_a_transfer(rng: Rng, case: Case, document: Document) -> None:
    """Of any job, also of one that sends nothing."""
    row = _task(rng, document, transfer=False)
    document["rows"].append([row[0], TRANSFER, row[3], row[3] + float(pick(rng, [0, 1e-9, 1, 5])) * case.unit])


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
    end = row[2] + pick(rng, [alone, alone + float(facts.latency), float(facts.latency) / 2, 0.0, alone / 2])
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
    whole, part = rng.random() < 0.6, float(pick(rng, [0, 1e-10, 5e-10, 9e-10, 3e-9, 1e-7]))
    tick = float(pick(rng, [0, 0.5, 1, 4, 7, 7.9])) * math.ulp(row[3] if math.isfinite(row[3]) else 1.0)
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
    row = _task(rng, document, transfer=pick(rng, [True, False]))
    tick = float(pick(rng, [0.5, 2, 5, 7, 7.5])) * math.ulp(row[3] if math.isfinite(row[3]) else 1.0)
    together, wait = rng.random() < 0.5, 0.0
    step = 2 if row[1] != TRANSFER and not together else 1
    for each in _slot(document, *row[:2])[int(rng.integers(0, 2)) :: step]:
        wait = wait + tick if together else tick
        each[2], each[3] = each[2] - wait, each[3] - wait
    _ends_with_its_tasks(case, document, row[0])


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


def _residency(rng: Rng, case: Case, document: Document) -> None:
    """A residency begins or ends elsewhere."""
    gang = _gang(rng, document)
    gang[pick(rng, [2, 3])] += _amount(rng, case, gang[3], gang[3] - gang[2])


def _longer_residency(rng: Rng, case: Case, document: Document) -> None:
    """Placed at its arrival: often harmless, if there is memory."""
    gang = _gang(rng, document)
    gang[2] = next((job.arrival for job in case.jobs if job.name == gang[0]), gang[2])
    gang[2] -= float(pick(rng, [0, 0, math.ulp(gang[2] or 1e-9), 20 * math.ulp(gang[2] or 1e-9), case.unit]))


def _shift_a_job(rng: Rng, case: Case, document: Document) -> None:
    """A job with all its tasks: a little, to its arrival, before it, or behind everybody."""
    gang = _gang(rng, document)
    names = [job.name for job in case.jobs]
    if gang[0] not in names or not math.isfinite(gang[2]):
        return
    job = names.index(gang[0])
    last = max((each[3] for each in document["head"]["gangs"] if math.isfinite(each[3])), default=0.0)
    by = float(
        pick(
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
    by = float(pick(rng, [1, 64, 1024, -0.25, -1])) * case.unit
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
        gang[1] = gang[1][:-1] if rng.random() < 0.5 else [*gang[1], list(pick(rng, every))]
    elif what == 4:
        gang[1] = [gang[1][0] if gang[1] else [0, 0]] * max(len(gang[1]), 1)
    elif what == 5:
        gang[1] = [*gang[1][:-1], [int(rng.integers(-2, 6)), int(rng.integers(-2, 5))]]
    else:
        gang[1] = [list(gang[1][k]) for k in rng.permutation(len(gang[1]))]


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
        gang[4] += int(pick(rng, [-1, 1, 7]))
    else:
        gang[4] *= 1 + float(rng.choice([-1, 1])) * 10.0 ** -int(rng.integers(0, 17))


def _head(rng: Rng, case: Case, document: Document) -> None:
    head = document["head"]
    name = str(pick(rng, ["format", "instance", "preemptive", "forking", "sharing", "sharing", "elastic"]))
    if name == "format":
        head["format"] = pick(rng, ["optsched-tasks/9", "tasks", LOG, RESIDENCIES])
    elif name == "instance":
        head["instance"] = pick(rng, ["another", *(facts.digest for facts in case.facts)])
    else:
        head[name] = pick(rng, [True, False, False, None, "yes", 1])


def _stated(rng: Rng, case: Case, document: Document) -> None:
    """The value of the drawn schedule, or nearly, or none."""
    head = document["head"]
    objective = str(pick(rng, ["total_flow_time", "total_completion_time", "makespan", "beauty"]))
    ends = [Fraction(gang[3]) for gang in case.witness["head"]["gangs"]]
    values = {
        "total_flow_time": sum(ends) - sum(Fraction(job.arrival) for job in case.jobs),
        "total_completion_time": sum(ends),
    }
    value = float(values.get(objective, max(ends)))
    head["objective"] = objective
    head["value"] = pick(
        rng, [None, value, value, value * (1 - 10.0 ** -int(rng.integers(1, 17))), math.nan, True, value / 2]
    )


def _other_instance(rng: Rng, case: Case, document: Document) -> None:
    """Judged by an instance that differs a little, as if it were made for that."""
    document["instance"] = 1
    document["head"]["instance"] = case.facts[1].digest


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


def _short_residency(rng: Rng, case: Case, document: Document) -> None:
    """As long as its iterations take without others, or a little less."""
    gang = _gang(rng, document)
    job = next((job for job in case.jobs if job.name == gang[0]), case.jobs[0])
    need = job.iterations * (job.forward + job.backward)
    if len({node for node, _ in gang[1]}) > 1 and job.message:
        need += job.iterations * (case.facts[0].latency + case.facts[0].cost * job.message)
    gang[3] = gang[2] + float(need) * (1 - float(pick(rng, [0, 0, 1e-12, 1e-9, 1e-6, 0.1, -0.1])))


def _all_at_once(rng: Rng, case: Case, document: Document) -> None:
    """Everybody that is on a GPU with a job is there when it is, and no longer."""
    gang = _gang(rng, document)
    for other in document["head"]["gangs"]:
        if any(gpu in gang[1] for gpu in other[1]):
            other[2], other[3] = max(other[2], gang[2]), gang[3]


Way = Callable[[Rng, Case, Document], None]
HARMLESS: tuple[Way, ...] = (_another_order, _other_numbers_of_workers, _label)
WAYS: list[Way] = [
    *HARMLESS,
    *(_odd, _odd, _residency, _residency, _longer_residency, _shift_a_job, _shift_a_job, _shift_all, _other_gpus),
    *(_other_gpus, _swap, _swap, _whose, _work, _head, _stated, _stated, _other_instance, _other_instance),
]
ROW_WAYS: list[Way] = [
    *[_shift_a_task, _stretch_a_task, _stretch_a_task, _tick, _run_ahead, _as_if_alone, _shave, _creep] * 2,
    *(_exchange, _other_worker, _other_job, _swap, _drop, _double, _add_a_transfer, _other_iterations, _as_written),
]
RESIDENCY_WAYS: list[Way] = [_short_residency, _short_residency, _all_at_once, _longer_residency]


def cases(seed: int, count: int, forgeries: int) -> Iterator[tuple[Case, list[tuple[Document, bool]]]]:
    """``count`` cases, every fourth of residencies alone, with so many forged documents each."""
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        case = Case(rng, 1000 * seed + k, log=k % 4 != 3)
        yield case, [forged(rng, case) for _ in range(forgeries)]
