"""The referee of the task level: forward and backward tasks, all-reduces and what contends, from the log alone.

============== =======================================================================================================
instance       the schedule was made for this instance, and the jobs of the instance have tasks
completeness   every job is resident once; every worker runs I forward and I backward tasks; a gang over several nodes with
               a message runs I all-reduces, any other none; every task names a job; every number is finite
arrival        nothing starts before the job has arrived, or before its placement; nothing ends after its completion, and
               the last of its tasks ends then
gang           a residency holds exactly the job's number of GPUs, and tasks name workers of it
capacity       the GPUs exist, a gang names each of them once, and a GPU runs one whole task at a time
type, memory   the GPUs are of a type the job may use; at every moment those that are resident on a GPU fit its memory
rate           a forward task lasts exactly t_f and a backward task t_b; by start they alternate in every worker; the
               all-reduce of an iteration begins when all its backward tasks have ended, or later, and the forward tasks of
               the next one when it has ended (without all-reduce: when the backward tasks have), or later
transfer       every all-reduce moved exactly its message, by the rates that the log of all of them gives
               (`optsched.transferred_bytes`)
work           the work of a residency is the job's iterations
============== =======================================================================================================

**Tolerance** as in `optsched.feasibility`: of lengths 1e-9 and 8 units in the last place of the clock; of bytes 1e-9 of the
message and what moves in 8 such units; two times that are compared with each other, the 8 units only. A task of no length
occupies its GPU too: it may not lie inside another.

**Complexity** O(R log R) in numpy for R tasks, plus that of `transferred_bytes`; about 200 bytes of memory a task.

A schedule without a log claims residencies only: `check_residency`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from optsched.claim import claim_of
from optsched.feasibility import RELATIVE, ULPS, Case, Findings, Violation, judge_gangs, number, slack
from optsched.instance import Instance
from optsched.schedule import Schedule
from optsched.task_claim import TaskClaim, task_claim_of
from optsched.task_log import TaskSchedule
from optsched.transferred_bytes import Gangs, transferred_bytes

__all__ = ["check_residency", "check_tasks", "judge_residency", "judge_tasks"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def check_tasks(instance: Instance, schedule: TaskSchedule) -> list[Violation]:
    """Every rule that a schedule with a log breaks, in the order of `optsched.feasibility.RULES`; empty when it is feasible.

    Raises
    ------
    InputError
        When it has no log, or its arrays do not fit together.
    """
    claim = task_claim_of(schedule, instance)
    return judge_tasks(Case(instance, claim.gangs), claim).violations()


def check_residency(instance: Instance, schedule: Schedule) -> list[Violation]:
    """What can be said of a schedule at the task level without its log: necessary conditions only.

    Instance, completeness, arrival, gang, type, memory at every moment, work; under rate, that a residency is long enough
    for its iterations when no other job is there: I (t_f + t_b + (a + b M if it spans nodes)); and under capacity, that
    the compute of the jobs that lie within an interval of time fits into it, for each GPU and each interval between a
    placement and a completion. **It cannot show** that tasks on a GPU can be ordered around barriers and all-reduces, nor
    that the all-reduces fit the network beside each other: a residency that passes may still be impossible. Keep the log.

    Raises
    ------
    InputError
        When the schedule's arrays do not fit together.
    """
    return judge_residency(Case(instance, claim_of(schedule, instance))).violations()


def judge_tasks(case: Case, claim: TaskClaim) -> Findings:
    """Apply every rule but ``value`` to gangs and tasks; ``case`` holds the gangs of ``claim``."""
    found = Findings()
    if not _has_tasks(case, found):
        return found
    with np.errstate(all="ignore"):
        residency = _judge_residents(case, found)
        tasks = _Tasks(residency, claim)
        for rule in (_rows, _counts, _stay, _one_task_at_a_time, _lengths, _order, _bytes):
            rule(tasks, found)
    return found


def judge_residency(case: Case) -> Findings:
    """Apply the rules of `check_residency`."""
    found = Findings()
    if not _has_tasks(case, found):
        return found
    with np.errstate(all="ignore"):
        residency = _judge_residents(case, found)
        _long_enough(residency, found)
        _volume(residency, found)
    return found


def _has_tasks(case: Case, found: Findings) -> bool:
    if case.instance.at_task_level or not case.instance.n:
        return True
    message = "tasks of an instance whose jobs have none (legal: jobs with iterations and tasks)"
    found.add("instance", np.zeros(1, dtype=np.int64), lambda _: Violation("instance", message))
    return False


# --- residencies ---------------------------------------------------------------------------------------------------------


class _Residency:
    """The first segment of every job. Arrays over jobs: ``segment`` i64[n] (-1: none), ``whole`` (finite, on its number of
    different GPUs that exist), ``spans`` (over several nodes), ``sends`` (and with a message), ``start``, ``end``.
    """

    def __init__(self, case: Case) -> None:
        self.case, instance, claim = case, case.instance, case.claim
        self.segment: Ints = np.full(instance.n, -1, dtype=np.int64)
        named = np.flatnonzero(case.known)[::-1]
        self.segment[claim.job[named]] = named  # the first of each job is written last
        count = claim.job.size
        fine = np.bincount(case.segment[case.first], minlength=count) == np.diff(claim.offset)
        fine &= case.sound & (np.diff(claim.offset) == case.per_segment(instance.gpus))
        self.whole: Bools = (self.segment >= 0) & np.append(fine, False)[self.segment]
        self.start: Floats = np.append(claim.start, np.nan)[self.segment]
        self.end: Floats = np.append(claim.end, np.nan)[self.segment]
        self.spans: Bools = np.diff(self.nodes[0]) > 1
        self.sends: Bools = self.spans & (instance.message > 0)

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """(offset i64[n + 1], pairs): the (segment, GPU) pairs of every whole job's workers in order."""
        offset = self.case.claim.offset
        width = np.where(self.whole, self.case.instance.gpus, 0)
        first = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
        begin = np.where(self.whole, offset[self.segment], 0)
        return first, np.arange(first[-1]) + np.repeat(begin - first[:-1], width)

    @cached_property
    def nodes(self) -> tuple[Ints, Ints]:
        """(offset i64[n + 1], nodes): the different nodes of every whole job."""
        offset, pairs = self.pairs
        n, nodes = self.case.instance.n, self.case.instance.cluster.node_count
        job = np.repeat(np.arange(n), np.diff(offset))
        key = np.unique(job * nodes + self.case.node[pairs])
        return np.searchsorted(key, np.arange(n + 1) * nodes).astype(np.int64), key % nodes

    def name(self, j: int) -> str:
        """The residency of a job in words."""
        return self.case.name(int(self.segment[j]))


def _judge_residents(case: Case, found: Findings) -> _Residency:
    judge_gangs(case, found)
    residency = _Residency(case)
    again = np.flatnonzero(case.known & (residency.segment[case.claim.job] != np.arange(case.claim.job.size)))
    legal = "one residency, from placement to completion"
    found.add(
        "completeness", again, lambda s: case.of_segment("completeness", s, "is a second residency of its job", legal)
    )
    backward = np.flatnonzero(case.finite & (case.claim.end < case.claim.start))
    found.add("rate", backward, lambda s: case.of_segment("rate", s, "ends before it starts", "an end after the start"))
    _memory(case, found)
    return residency


def _memory(case: Case, found: Findings) -> None:
    """At every moment the residents of a GPU fit its memory; two that miss each other by rounding do not meet."""
    claim, instance = case.claim, case.instance
    pairs = np.flatnonzero(case.first & case.sound[case.segment])
    row, gpu = case.segment[pairs], case.gpu[pairs]
    start, end, need = claim.start[row], claim.end[row], instance.gpu_memory[claim.job[row]]
    end = np.maximum(end - slack(end - start, start, end), start)
    offer = instance.cluster.node_memory[case.node[pairs]]
    moment, which = np.concatenate([end, start]), np.concatenate([pairs, pairs])
    change, gpu = np.concatenate([-need, need]), np.concatenate([gpu, gpu])
    order = np.lexsort((np.arange(moment.size), moment, gpu))  # at one moment, ends first
    gpu, which = gpu[order], which[order]
    held = np.cumsum(change[order])
    # The sum before the first event of each GPU: 0 but for rounding.
    first = np.flatnonzero(np.diff(gpu, prepend=-1))
    held -= np.repeat(np.append(0.0, held)[first], np.diff(np.append(first, gpu.size)))
    offer = np.concatenate([offer, offer])[order]
    # One job alone that is too large has been told of already.
    over = (change[order] > 0) & (held > offer * (1 + RELATIVE)) & (change[order] <= offer)

    def too_much(i: int) -> Violation:
        s = int(case.segment[which[i]])
        message = f"makes residents need {number(held[i])} bytes on {case.place(int(which[i]))}"
        return case.of_segment("memory", s, message, f"at most its {number(offer[i])} bytes")

    found.add("memory", np.flatnonzero(over), too_much)


def _long_enough(residency: _Residency, found: Findings) -> None:
    case, instance = residency.case, residency.case.instance
    iteration = instance.forward + instance.backward
    if instance.contention is not None:
        alone = instance.contention.latency + instance.contention.seconds_per_byte * instance.message
        iteration = iteration + np.where(residency.sends, alone, 0.0)
    need, length = iteration * instance.iterations, residency.end - residency.start
    short = residency.whole & (need - length > slack(need, residency.start, residency.end, need))
    found.add(
        "rate",
        np.flatnonzero(short),
        lambda j: case.of_segment(
            "rate",
            int(residency.segment[j]),
            f"lasts {number(length[j])} s",
            f"at least {number(need[j])} s, its iterations without other jobs",
        ),
    )


def _volume(residency: _Residency, found: Findings) -> None:
    """On every GPU: the compute of jobs that lie within [start of one, end of another] is at most its length."""
    case, instance = residency.case, residency.case.instance
    offset, pairs = residency.pairs
    job = np.repeat(np.arange(instance.n), np.diff(offset))
    need = (instance.forward + instance.backward) * instance.iterations
    order = np.lexsort((residency.end[job], case.gpu[pairs]))
    for own in np.split(order, np.flatnonzero(np.diff(case.gpu[pairs][order])) + 1):
        jobs = job[own]
        end = residency.end[jobs]
        for j in jobs.tolist():
            start = residency.start[j]
            inside = np.cumsum(np.where(residency.start[jobs] >= start, need[jobs], 0.0))
            room = np.maximum(end - start, 0.0)
            over = np.flatnonzero(
                (inside - room > slack(inside, end, np.full(end.size, start), inside)) & (end > start)
            )
            if over.size:
                _say_volume(residency, found, int(pairs[own[0]]), j, float(inside[over[0]]), float(end[over[0]]))
                break


def _say_volume(residency: _Residency, found: Findings, pair: int, j: int, need: float, end: float) -> None:
    case = residency.case
    message = f"and other jobs compute {number(need)} s on {case.place(pair)} until {number(end)} s"
    legal = f"at most the {number(end - residency.start[j])} s from its start"
    violation = case.of_segment("capacity", int(residency.segment[j]), message, legal)
    found.add("capacity", np.zeros(1, dtype=np.int64), lambda _: violation)


# --- tasks ---------------------------------------------------------------------------------------------------------------


class _Tasks:
    """The log, row by row: ``known`` (of a job), ``finite``, ``manned`` (names a worker, or an all-reduce), bool[R].

    Slots: one for the all-reduces of every job and one for each worker, ``first[j]``, ``first[j] + 1``, ...
    """

    def __init__(self, residency: _Residency, claim: TaskClaim) -> None:
        self.residency, self.claim = residency, claim
        instance = residency.case.instance
        self.instance = instance
        self.known: Bools = claim.job >= 0
        self.finite: Bools = np.isfinite(claim.start) & np.isfinite(claim.end)
        self.manned: Bools = (claim.worker >= -1) & (claim.worker < np.append(instance.gpus, 0)[claim.job])
        self.first: Ints = np.concatenate([[0], np.cumsum(instance.gpus + 1)]).astype(np.int64)
        self.slot: Ints = np.where(self.known & self.manned, self.first[claim.job] + claim.worker + 1, -1)
        self.slots = int(self.first[-1])
        self.slot_job: Ints = np.repeat(np.arange(instance.n), np.diff(self.first))
        self.slot_worker: Ints = np.arange(self.slots) - self.first[self.slot_job] - 1

    @cached_property
    def expected(self) -> Ints:
        """Tasks of every slot, i64[slots]."""
        iterations = self.instance.iterations.astype(np.int64)[self.slot_job]
        transfers = np.where(self.residency.sends[self.slot_job], iterations, 0)
        return np.where(self.slot_worker < 0, transfers, 2 * iterations)

    @cached_property
    def counted(self) -> Ints:
        """Tasks of every slot in the log, i64[slots]."""
        return np.bincount(self.slot[self.slot >= 0], minlength=self.slots)

    @cached_property
    def complete(self) -> Bools:
        """Jobs, bool[n], with a whole residency and exactly the tasks they need: only of these is the order judged."""
        fine = self.residency.whole.copy()
        fine[self.slot_job[self.counted != self.expected]] = False
        fine[self.claim.job[self.known & ~(self.finite & self.manned)]] = False
        return fine

    @cached_property
    def by_time(self) -> Ints:
        """`whole_rows` by (start, end); so a task of no length stands before what starts with it."""
        rows = np.flatnonzero(self.whole_rows)
        return rows[np.lexsort((self.claim.end[rows], self.claim.start[rows]))]

    @cached_property
    def sequence(self) -> _Sequence:
        """Its tasks by worker and time."""
        return _Sequence(self)

    @cached_property
    def whole_rows(self) -> Bools:
        """Tasks with nothing missing whose job has a whole residency."""
        whole = np.append(self.residency.whole, False)[self.claim.job]
        return np.asarray((self.slot >= 0) & self.finite & whole)

    def name(self, r: int) -> str:
        """A task in words."""
        claim, j, worker = self.claim, int(self.claim.job[r]), int(self.claim.worker[r])
        who = "of no job" if j < 0 else f"of job {self.instance.ids[j]!r}"
        what = f"all-reduce {who}" if worker == -1 else f"task of worker {worker} {who}"
        return f"row {r} (a {what}, {number(claim.start[r])} to {number(claim.end[r])} s)".replace("a all", "an all")

    def of_row(self, rule: str, r: int, message: str, legal: str) -> Violation:
        """A task is to blame."""
        j = int(self.claim.job[r])
        return Violation(rule, f"{self.name(r)} {message} (legal: {legal})", None if j < 0 else self.instance.ids[j])


def _rows(tasks: _Tasks, found: Findings) -> None:
    legal = f"one of the {tasks.instance.n} jobs of the instance"
    found.add(
        "completeness",
        np.flatnonzero(~tasks.known),
        lambda r: tasks.of_row("completeness", r, "names no job", legal),
    )
    found.add(
        "completeness",
        np.flatnonzero(~tasks.finite),
        lambda r: tasks.of_row("completeness", r, "has no finite times", "finite times"),
    )
    found.add(
        "gang",
        np.flatnonzero(tasks.known & ~tasks.manned),
        lambda r: tasks.of_row(
            "gang", r, "names no worker", f"0 to {tasks.instance.gpus[tasks.claim.job[r]] - 1}, or -1 for an all-reduce"
        ),
    )


def _counts(tasks: _Tasks, found: Findings) -> None:
    wrong = np.flatnonzero((tasks.counted != tasks.expected) & tasks.residency.whole[tasks.slot_job])

    def spell_out(slot: int) -> Violation:
        j, worker = int(tasks.slot_job[slot]), int(tasks.slot_worker[slot])
        job, count, legal = tasks.instance.ids[j], tasks.counted[slot], tasks.expected[slot]
        if worker >= 0:
            message = f"worker {worker} of job {job!r} runs {count} tasks (legal: {legal}, forward and backward)"
        else:
            why = "one an iteration" if legal else "its gang is on one node, or it has no message"
            message = f"job {job!r} runs {count} all-reduces (legal: {legal}, {why})"
        return Violation("completeness", message, job)

    found.add("completeness", wrong, spell_out)


def _stay(tasks: _Tasks, found: Findings) -> None:
    """Tasks lie between placement and completion, and the last one ends there."""
    residency, claim = tasks.residency, tasks.claim
    rows = np.flatnonzero(tasks.whole_rows)
    job = claim.job[rows]
    start = np.maximum(residency.start, tasks.instance.arrival)
    early = rows[later(start[job], claim.start[rows])]
    found.add(
        "arrival",
        early,
        lambda r: tasks.of_row(
            "arrival", r, "starts too early", f"from {number(start[claim.job[r]])} s, arrival and placement"
        ),
    )
    late = rows[later(claim.end[rows], residency.end[job])]
    found.add(
        "arrival",
        late,
        lambda r: tasks.of_row(
            "arrival", r, "ends too late", f"until {number(residency.end[claim.job[r]])} s, the completion"
        ),
    )
    last = np.full(tasks.instance.n, -np.inf)
    np.maximum.at(last, job, claim.end[rows])
    after = residency.whole & np.isfinite(last) & later(residency.end, last)
    found.add(
        "arrival",
        np.flatnonzero(after),
        lambda j: residency.case.of_segment(
            "arrival",
            int(residency.segment[j]),
            "ends after its tasks",
            f"at {number(last[j])} s, with the last of them",
        ),
    )


def _one_task_at_a_time(tasks: _Tasks, found: Findings) -> None:
    residency, claim = tasks.residency, tasks.claim
    offset, pairs = residency.pairs
    gpu_of_slot = np.full(tasks.slots + 1, -1, dtype=np.int64)
    width = np.diff(offset)
    workers = np.repeat(tasks.first[:-1] + 1 - offset[:-1], width) + np.arange(pairs.size)
    gpu_of_slot[workers] = residency.case.gpu[pairs]
    gpu = gpu_of_slot[tasks.slot]
    rows = tasks.by_time
    rows = rows[gpu[rows] >= 0]
    rows = rows[_few_keys(gpu[rows])]
    gpu = gpu[rows]
    # In the order of the starts: where each task waits for the one before it, it waits for all before it.
    held, start = claim.end[rows[:-1]], claim.start[rows[1:]]
    clash = np.flatnonzero((gpu[:-1] == gpu[1:]) & (held > start))
    before, after = rows[clash], rows[clash + 1]
    length = np.minimum(claim.end[before] - claim.start[before], claim.end[after] - claim.start[after])
    allowed = slack(length, claim.end[before], claim.start[after])
    clash = clash[claim.end[before] - claim.start[after] > allowed]

    def spell_out(i: int) -> Violation:
        message = f"runs on the GPU of {tasks.name(int(rows[i]))}"
        return tasks.of_row("capacity", int(rows[i + 1]), message, "one whole task at a time")

    found.add("capacity", clash, spell_out)


class _Sequence:
    """The tasks of `_Tasks.complete` jobs by (slot, start). Arrays over them: ``row``, ``job``, ``backward``, ``transfer``,
    and ``cell``, the number of (job, iteration) among all of these.
    """

    def __init__(self, tasks: _Tasks) -> None:
        claim, expected = tasks.claim, np.where(tasks.complete[tasks.slot_job], tasks.expected, 0)
        row = tasks.by_time
        row = row[tasks.complete[claim.job[row]]]
        self.row: Ints = row[_few_keys(tasks.slot[row])]
        self.job: Ints = claim.job[self.row]
        place = np.arange(self.row.size) - np.repeat(np.cumsum(expected) - expected, expected)
        self.transfer: Bools = claim.worker[self.row] < 0
        self.backward: Bools = ~self.transfer & (place % 2 == 1)
        self.iteration: Ints = np.where(self.transfer, place, place // 2)
        iterations = np.where(tasks.complete, tasks.instance.iterations, 0).astype(np.int64)
        self.cells = int(iterations.sum())
        self.cell: Ints = (np.cumsum(iterations) - iterations)[self.job] + self.iteration


def _lengths(tasks: _Tasks, found: Findings) -> None:
    sequence, claim = tasks.sequence, tasks.claim
    need = np.where(sequence.backward, tasks.instance.backward[sequence.job], tasks.instance.forward[sequence.job])
    start, end = claim.start[sequence.row], claim.end[sequence.row]
    off = np.flatnonzero(~sequence.transfer & (end - start != need))
    wrong = np.abs(end[off] - start[off] - need[off]) > slack(need[off], start[off], end[off], need[off])

    def spell_out(i: int) -> Violation:
        kind = "backward" if sequence.backward[i] else "forward"
        message = f"is a {kind} task and lasts {number(end[i] - start[i])} s"
        return tasks.of_row("rate", int(sequence.row[i]), message, f"{number(need[i])} s")

    found.add("rate", off[wrong], spell_out)


def _order(tasks: _Tasks, found: Findings) -> None:
    """Forward, backward, barrier, all-reduce, forward: nothing starts before what it needs has ended."""
    sequence, claim = tasks.sequence, tasks.claim
    start, end = claim.start[sequence.row], claim.end[sequence.row]
    barrier = np.full(sequence.cells, -np.inf)
    np.maximum.at(barrier, sequence.cell[sequence.backward], end[sequence.backward])
    over = barrier.copy()
    over[sequence.cell[sequence.transfer]] = end[sequence.transfer]
    needs = np.full(start.size, -np.inf)
    needs[sequence.transfer] = barrier[sequence.cell[sequence.transfer]]
    back = np.flatnonzero(sequence.backward)
    needs[back] = end[back - 1]
    again = np.flatnonzero(~sequence.transfer & ~sequence.backward & (sequence.iteration > 0))
    needs[again] = over[sequence.cell[again] - 1]

    def spell_out(i: int) -> Violation:
        before = "the backward tasks of its iteration" if sequence.transfer[i] else "the iteration before it"
        before = "its forward task" if sequence.backward[i] else before
        return tasks.of_row("rate", int(sequence.row[i]), f"starts before {before} ended", f"from {number(needs[i])} s")

    found.add("rate", np.flatnonzero(later(needs, start)), spell_out)


def _bytes(tasks: _Tasks, found: Findings) -> None:
    """The bytes that every all-reduce moved are its message."""
    residency, instance, claim = tasks.residency, tasks.instance, tasks.claim
    rows = np.flatnonzero(tasks.whole_rows & (claim.worker < 0) & np.append(residency.sends, False)[claim.job])
    if not rows.size or instance.contention is None:
        return
    contention = instance.contention
    kinds = {name: position for position, name in enumerate(contention.kinds)}
    kind = np.array([kinds.get(name, -1) for name in instance.table["profile"].to_list()], dtype=np.int64)
    offset, nodes = residency.nodes
    start, end = claim.start[rows], claim.end[rows]
    moved = transferred_bytes(contention, Gangs(offset, nodes, kind), claim.job[rows], start, end)
    message = instance.message[claim.job[rows]]
    clock = ULPS * np.spacing(np.maximum(np.abs(start), np.abs(end)))
    wrong = np.abs(moved - message) > RELATIVE * message + clock / contention.seconds_per_byte
    found.add(
        "transfer",
        np.flatnonzero(wrong),
        lambda i: tasks.of_row(
            "transfer", int(rows[i]), f"moved {number(moved[i])} bytes", f"{number(message[i])} bytes, its message"
        ),
    )


# --- order and time ------------------------------------------------------------------------------------------------------


def later(a: Floats, b: Floats) -> Bools:
    """Where time a lies after time b by more than the rounding of the clock, bool[...]."""
    found = a > b
    rows = np.flatnonzero(found)
    found[rows] = a[rows] - b[rows] > slack(np.zeros(rows.size), a[rows], b[rows])
    return found


def _few_keys(key: Ints) -> Ints:
    """The stable order of keys >= 0; in linear time where they are below 2**16."""
    small: npt.NDArray[np.uint16] | Ints = key.astype(np.uint16) if key.size and key.max() < 2**16 else key
    return np.argsort(small, kind="stable")
