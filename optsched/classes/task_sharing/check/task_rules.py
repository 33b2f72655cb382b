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
               (`transferred_bytes`)
work           the work of a residency is the job's iterations
============== =======================================================================================================

**Tolerance** as in `optsched.check.tolerance`: of lengths 1e-9 and 8 units in the last place (ulp) of the clock; of
bytes 1e-9 of the message and what moves in 8 ulp; two times that are compared with each other, the 8 ulp only. What the
tasks of a worker (the all-reduces of a job) take from this is forgiven once: overlaps and early starts add up, and m
tasks may together be shorter by 1e-9 of their seconds and 8 + 2 sqrt(m) ulp, and by the half ulp by which every one
ends too early where the clock always rounds the same way, as long as that is less than 1e-6 of their seconds. A task of
no length occupies its GPU too: it may not lie inside another.

**Complexity** O(R log R) in numpy for R tasks, plus that of `transferred_bytes`; about 200 bytes of memory a task.

A schedule without a log documents residencies only: `residency`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from optsched.check.context import CheckContext, Violation, Violations
from optsched.check.tolerance import (
    MOST,
    RELATIVE,
    ROOT_ULPS,
    ULPS,
    job_tolerance,
    largest_of_jobs,
    number,
    of_jobs,
    overspent,
    slack,
)
from optsched.classes.task_sharing.check.residency import Residency, has_tasks, judge_residents
from optsched.classes.task_sharing.check.task_document import TaskDocument
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.contention import Contention


def judge_tasks(context: CheckContext, document: TaskDocument) -> Violations:
    """Apply every rule but ``value`` to gangs and tasks.

    Parameters
    ----------
    context
        The gangs of ``document``.
    document
        The log.
    """
    found = Violations()
    if not has_tasks(context, found):
        return found
    with np.errstate(all="ignore"):
        residency = judge_residents(context, found)
        tasks = _Tasks(residency, document)
        for rule in (_rows, _counts, _stay, _one_task_at_a_time, _lengths, _order, _bytes):
            rule(tasks, found)
    return found


# --- tasks ---------------------------------------------------------------------------------------------------------------


class _Tasks:
    """The log, row by row: ``known`` (of a job), ``finite``, ``manned`` (names a worker, or an all-reduce), bool[R].

    Slots: one for the all-reduces of every job and one for each worker, ``first[j]``, ``first[j] + 1``, ...
    """

    def __init__(self, residency: Residency, document: TaskDocument) -> None:
        self.residency, self.document = residency, document
        instance = residency.context.instance
        self.instance = instance
        self.known: Bools = document.job >= 0
        self.finite: Bools = np.isfinite(document.start) & np.isfinite(document.end)
        self.manned: Bools = (document.worker >= -1) & (document.worker < np.append(instance.gpus, 0)[document.job])
        self.first: Ints = np.concatenate([[0], np.cumsum(instance.gpus + 1)]).astype(np.int64)
        self.slot: Ints = np.where(self.known & self.manned, self.first[document.job] + document.worker + 1, -1)
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
        fine[self.document.job[self.known & ~(self.finite & self.manned)]] = False
        return fine

    @cached_property
    def by_time(self) -> Ints:
        """`whole_rows` by (start, end); so a task of no length comes before what starts with it."""
        rows = np.flatnonzero(self.whole_rows)
        return rows[np.lexsort((self.document.end[rows], self.document.start[rows]))]

    @cached_property
    def sequence(self) -> _Sequence:
        """Its tasks by worker and time."""
        return _Sequence(self)

    @cached_property
    def whole_rows(self) -> Bools:
        """Tasks with nothing missing whose job has a whole residency."""
        whole = np.append(self.residency.whole, False)[self.document.job]
        return np.asarray((self.slot >= 0) & self.finite & whole)

    def name(self, r: int) -> str:
        """A task in words."""
        document, j, worker = self.document, int(self.document.job[r]), int(self.document.worker[r])
        who = "of no job" if j < 0 else f"of job {self.instance.ids[j]!r}"
        what = f"all-reduce {who}" if worker == -1 else f"task of worker {worker} {who}"
        return f"row {r} (a {what}, {number(document.start[r])} to {number(document.end[r])} s)".replace(
            "a all", "an all"
        )

    def of_row(self, rule: str, r: int, message: str, legal: str) -> Violation:
        """A task is to blame."""
        j = int(self.document.job[r])
        return Violation(rule, f"{self.name(r)} {message} (expected: {legal})", None if j < 0 else self.instance.ids[j])


def _rows(tasks: _Tasks, found: Violations) -> None:
    tell, jobs = tasks.of_row, f"one of the {tasks.instance.n} jobs of the instance"
    found.blame(tell, "completeness", ~tasks.known, "names no job", jobs)
    found.blame(tell, "completeness", ~tasks.finite, "has no finite times", "finite times")

    def workers(r: int) -> str:
        return f"0 to {tasks.instance.gpus[tasks.document.job[r]] - 1}, or -1 for an all-reduce"

    found.blame(tell, "gang", tasks.known & ~tasks.manned, "names no worker", workers)


def _counts(tasks: _Tasks, found: Violations) -> None:
    wrong = np.flatnonzero((tasks.counted != tasks.expected) & tasks.residency.whole[tasks.slot_job])

    def spell_out(slot: int) -> Violation:
        j, worker = int(tasks.slot_job[slot]), int(tasks.slot_worker[slot])
        job, count, legal = tasks.instance.ids[j], tasks.counted[slot], tasks.expected[slot]
        if worker >= 0:
            message = f"worker {worker} of job {job!r} runs {count} tasks (expected: {legal}, forward and backward)"
        else:
            why = "one an iteration" if legal else "its gang is on one node, or it has no message"
            message = f"job {job!r} runs {count} all-reduces (expected: {legal}, {why})"
        return Violation("completeness", message, job)

    found.add("completeness", wrong, spell_out)


def _stay(tasks: _Tasks, found: Violations) -> None:
    """Tasks lie between placement and completion, and the last one ends there."""
    residency, document = tasks.residency, tasks.document
    rows = np.flatnonzero(tasks.whole_rows)
    job = document.job[rows]
    start = np.maximum(residency.start, tasks.instance.arrival)
    early = rows[later(start[job], document.start[rows], tasks.slot[rows])]

    def since(r: int) -> str:
        return f"from {number(start[document.job[r]])} s, arrival and placement"

    def until(r: int) -> str:
        return f"until {number(residency.end[document.job[r]])} s, the completion"

    found.blame(tasks.of_row, "arrival", early, "starts too early", since)
    late = rows[later(document.end[rows], residency.end[job], tasks.slot[rows])]
    found.blame(tasks.of_row, "arrival", late, "ends too late", until)
    last = np.full(tasks.instance.n, -np.inf)
    np.maximum.at(last, job, document.end[rows])
    after = residency.whole & np.isfinite(last) & later(residency.end, last, np.arange(last.size))

    def at_last(j: int) -> str:
        return f"at {number(last[j])} s, with the last of them"

    found.blame(residency.context.of_segment, "arrival", after, "ends after its tasks", at_last, residency.segment)


def _one_task_at_a_time(tasks: _Tasks, found: Violations) -> None:
    residency, document = tasks.residency, tasks.document
    offset, pairs = residency.pairs
    gpu_of_slot = np.full(tasks.slots + 1, -1, dtype=np.int64)
    width = np.diff(offset)
    workers = np.repeat(tasks.first[:-1] + 1 - offset[:-1], width) + np.arange(pairs.size)
    gpu_of_slot[workers] = residency.context.gpu[pairs]
    gpu = gpu_of_slot[tasks.slot]
    rows = tasks.by_time
    rows = rows[gpu[rows] >= 0]
    rows = rows[_few_keys(gpu[rows])]
    gpu = gpu[rows]
    # In the order of the starts: where each task waits for the one before it, it waits for all before it.
    held, start = document.end[rows[:-1]], document.start[rows[1:]]
    clash = np.flatnonzero((gpu[:-1] == gpu[1:]) & ~(held <= start))
    before, after = rows[clash], rows[clash + 1]
    length = np.minimum(document.end[before] - document.start[before], document.end[after] - document.start[after])
    held, start = document.end[before], document.start[after]
    both, each = held - start, slack(length, held, start)
    clash = clash[first_beyond(tasks.slot[after], both, each, length, np.abs(held))]

    def beside(i: int) -> str:
        return f"runs on the GPU of {tasks.name(int(rows[i]))}"

    found.blame(tasks.of_row, "capacity", clash, beside, "one whole task at a time", rows[1:])


class _Sequence:
    """The tasks of `_Tasks.complete` jobs by (slot, start).

    Arrays over these tasks: ``row``, ``job``, ``backward``, ``transfer``, ``iteration``, and ``cell``, the number
    of (job, iteration) among all of them.
    """

    def __init__(self, tasks: _Tasks) -> None:
        document, expected = tasks.document, np.where(tasks.complete[tasks.slot_job], tasks.expected, 0)
        row = tasks.by_time
        row = row[tasks.complete[document.job[row]]]
        self.row: Ints = row[_few_keys(tasks.slot[row])]
        self.job: Ints = document.job[self.row]
        place = np.arange(self.row.size) - np.repeat(np.cumsum(expected) - expected, expected)
        self.transfer: Bools = document.worker[self.row] < 0
        self.backward: Bools = ~self.transfer & (place % 2 == 1)
        self.iteration: Ints = np.where(self.transfer, place, place // 2)
        iterations = np.where(tasks.complete, tasks.instance.iterations, 0).astype(np.int64)
        self.cells = int(iterations.sum())
        self.cell: Ints = (np.cumsum(iterations) - iterations)[self.job] + self.iteration


def _lengths(tasks: _Tasks, found: Violations) -> None:
    sequence, document = tasks.sequence, tasks.document
    need = np.where(sequence.backward, tasks.instance.backward[sequence.job], tasks.instance.forward[sequence.job])
    start, end = document.start[sequence.row], document.end[sequence.row]
    off = np.flatnonzero(~sequence.transfer & ~(end - start == need))
    shorter, each = need[off] - (end[off] - start[off]), slack(need[off], start[off], end[off], need[off])
    slot = tasks.slot[sequence.row[off]]
    wrong = ~(np.abs(shorter) <= each)
    wrong[last_beyond(slot, shorter, need[off], np.spacing(np.abs(end[off])))] = True

    def lasts(i: int) -> str:
        kind = "backward" if sequence.backward[i] else "forward"
        return f"is a {kind} task and lasts {number(end[i] - start[i])} s"

    found.blame(tasks.of_row, "rate", off[wrong], lasts, lambda i: f"{number(need[i])} s", sequence.row)


def _order(tasks: _Tasks, found: Violations) -> None:
    """Forward, backward, barrier, all-reduce, forward: nothing starts before what it needs has ended."""
    sequence, document = tasks.sequence, tasks.document
    start, end = document.start[sequence.row], document.end[sequence.row]
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

    def starts(i: int) -> str:
        before = "the backward tasks of its iteration" if sequence.transfer[i] else "the iteration before it"
        return f"starts before {'its forward task' if sequence.backward[i] else before} ended"

    wrong = later(needs, start, tasks.slot[sequence.row])
    found.blame(tasks.of_row, "rate", wrong, starts, lambda i: f"from {number(needs[i])} s", sequence.row)


def _bytes(tasks: _Tasks, found: Violations) -> None:
    """The bytes that every all-reduce moved are its message."""
    residency, instance, document = tasks.residency, tasks.instance, tasks.document
    rows = np.flatnonzero(tasks.whole_rows & (document.worker < 0) & np.append(residency.sends, False)[document.job])
    if not rows.size or instance.contention is None:
        return
    contention = instance.contention
    kinds = {name: position for position, name in enumerate(contention.kinds)}
    kind = np.array([kinds.get(name, -1) for name in instance.table["profile"].to_list()], dtype=np.int64)
    offset, nodes = residency.nodes
    start, end = document.start[rows], document.end[rows]
    moved = transferred_bytes(contention, Gangs(offset, nodes, kind), document.job[rows], start, end)
    message = instance.message[document.job[rows]]
    clock = np.spacing(np.maximum(np.abs(start), np.abs(end))) / contention.seconds_per_byte
    wrong = ~(np.abs(moved - message) <= RELATIVE * message + ULPS * clock)
    wrong[last_beyond(document.job[rows], message - moved, message, clock)] = True

    def said(i: int) -> str:
        return f"{number(message[i])} bytes, its message"

    found.blame(tasks.of_row, "transfer", wrong, lambda i: f"moved {number(moved[i])} bytes", said, rows)


# --- order and time ------------------------------------------------------------------------------------------------------


def later(a: Floats, b: Floats, key: Ints) -> Bools:
    """Return a mask of the rows where time a is after time b by more than the rounding of the clock.

    The delays of the rows of a key are also added up. If the sum is beyond its tolerance, the row with the largest
    delay is marked.

    Parameters
    ----------
    a
        Times that may be too late, f64[R] seconds.
    b
        Times that they are compared with, f64[R] seconds.
    key
        Key of every row, i64[R].

    Returns
    -------
    Bools
        The mask, bool[R].
    """
    found = np.asarray(~(a <= b))
    rows = np.flatnonzero(found)
    found[rows] = False
    late = a[rows] - b[rows]
    each = slack(np.zeros(rows.size), a[rows], b[rows])
    found[rows[first_beyond(key[rows], late, each, np.zeros(rows.size), np.abs(a[rows]))]] = True
    return found


def first_beyond(key: Ints, lost: Floats, each: Floats, seconds: Floats, clock: Floats) -> Ints:
    """Return the rows that lose more than their tolerance, and one row of every key that loses too much in sum.

    The row of such a key is the one that loses most.

    Parameters
    ----------
    key
        Key of every row, i64[R].
    lost
        Seconds that every row loses, f64[R].
    each
        Tolerance of every row in seconds, f64[R].
    seconds
        Seconds of every row to which the relative tolerance of its key applies, f64[R].
    clock
        Absolute times of the rows, f64[R]; their rounding sets the tolerance of the clock.
    """
    keys, group = np.unique(key, return_inverse=True)
    ulp = largest_of_jobs(group, np.spacing(clock), keys.size)
    alone, over = overspent(group, lost, each, job_tolerance(of_jobs(group, seconds, keys.size), ulp))
    worst = np.lexsort((lost, group))  # the last of every group loses most
    last = np.searchsorted(group[worst], over, side="right") - 1
    return np.concatenate([alone, worst[last]])


def last_beyond(key: Ints, shorter: Floats, need: Floats, ulp: Floats) -> Ints:
    """Return the last row of every key whose rows are together too short.

    Together means beyond the sum that roundings of either sign may reach.

    Parameters
    ----------
    key
        Key of every row, i64[R].
    shorter
        Amount by which every row is too short (negative: too long), f64[R].
    need
        Amount that every row needs, in the same unit, f64[R].
    ulp
        Unit in the last place of every row, in the same unit, f64[R].
    """
    keys, group = np.unique(key, return_inverse=True)
    count, most = np.bincount(group, minlength=keys.size), largest_of_jobs(group, ulp, keys.size)
    seconds = of_jobs(group, need, keys.size)
    allowed = (
        RELATIVE * seconds + (ULPS + ROOT_ULPS * np.sqrt(count)) * most + np.minimum(count / 2 * most, MOST * seconds)
    )
    over = np.flatnonzero(~(of_jobs(group, shorter, keys.size) <= allowed))
    last = np.zeros(keys.size, dtype=np.int64)
    np.maximum.at(last, group, np.arange(group.size))
    return last[over]


def _few_keys(key: Ints) -> Ints:
    """The stable order of keys >= 0; in linear time where they are below 2**16."""
    small: npt.NDArray[np.uint16] | Ints = key.astype(np.uint16) if key.size and key.max() < 2**16 else key
    return np.argsort(small, kind="stable")


# How many bytes every logged all-reduce moved, rebuilt from the starts and ends of all of them.
#
# A transfer moves from the end of its latency to its own end. While k(t), the largest number of moving transfers on a node
# of its gang, is k, it moves 1 / (k b + (k - 1) eta) bytes a second; where ratios are measured, 1/b times the least, over
# its nodes, of the product of its ratios beside the others there. Integrated over its time that must be its message:
# progress that is counted twice, or a rate that missed a start or an end, shows here. Written apart from the engine, which
# steps from event to event; here one job after the other is looked at, over the events of the whole cluster in its
# lifetime.
@dataclass(frozen=True)
class Gangs:
    """The nodes of job j, each once: ``node[offset[j] : offset[j + 1]]``; ``kind`` i64[n] is its row of measured ratios."""

    offset: Ints
    node: Ints
    kind: Ints


def transferred_bytes(contention: Contention, gangs: Gangs, job: Ints, start: Floats, end: Floats) -> Floats:
    """Return the bytes that each of T transfers moves: the integral of its rate, f64[T].

    A transfer that ends before its latency does moves 0 bytes.

    Parameters
    ----------
    contention
        Latency and rates of transfers.
    gangs
        Nodes and kinds of the jobs.
    job
        Job of every transfer, i64[T].
    start
        Start of every transfer, f64[T] finite seconds.
    end
        End of every transfer, f64[T] finite seconds.

    Notes
    -----
    Complexity: O(P log P + sum_j m_j L_j) for P (transfer, node) pairs, m_j the nodes of job j and L_j the starts
    and ends in the cluster between its first and its last transfer.
    """
    moved = np.zeros(job.size)
    begin = start + contention.latency
    rows = np.flatnonzero(end > begin)
    if not rows.size:
        return moved
    grid, position = np.unique(np.concatenate([begin[rows], end[rows]]), return_inverse=True)
    first, last = position[: rows.size], position[rows.size :]
    seconds = np.append(np.diff(grid), 0.0)
    counts = _Counts(gangs, job[rows], first, last, 1 + int(gangs.kind.max()) if contention.measured else 1)
    rate = _measured_rate if contention.measured else _linear_rate
    order = np.argsort(job[rows], kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(job[rows][order])) + 1):
        low, high = int(first[own].min()), int(last[own].max())
        bytes_then = rate(contention, gangs, counts, int(job[rows[own[0]]]), low, high) * seconds[low:high]
        bounds = np.stack([first[own], last[own]], axis=1).reshape(-1) - low
        moved[rows[own]] = np.add.reduceat(np.append(bytes_then, 0.0), bounds)[::2]
    return moved


class _Counts:
    """The number of moving transfers on every node, by kind (or all as one kind), as steps on the grid of times."""

    def __init__(self, gangs: Gangs, job: Ints, first: Ints, last: Ints, kinds: int) -> None:
        self._kinds, self._nodes = kinds, int(gangs.node.max()) + 1
        span = np.diff(gangs.offset)[job]
        row = np.repeat(np.arange(job.size), span)
        node = gangs.node[np.arange(row.size) + np.repeat(gangs.offset[job] - (np.cumsum(span) - span), span)]
        kind = gangs.kind[job[row]] if kinds > 1 else 0
        track = kind * self._nodes + node
        size = int(last.max()) + 1
        key = np.concatenate([track * size + first[row], track * size + last[row]])
        order = np.argsort(key, kind="stable")
        # What begins on a track ends on it: the running sum is 0 again where the next track begins.
        self._after = np.cumsum(np.where(order < row.size, 1, -1)).astype(np.int32)
        key = key[order]
        self._bounds = np.searchsorted(key, np.arange(kinds * self._nodes + 1) * size)
        self._position = key % size

    def window(self, kind: int, node: int, low: int, high: int) -> npt.NDArray[np.int32]:
        """Return the number of moving transfers on ``node`` in the intervals ``low`` .. ``high`` - 1 of the grid."""
        track = kind * self._nodes + node
        a, b = int(self._bounds[track]), int(self._bounds[track + 1])
        position = self._position[a:b]
        left, right = a + int(np.searchsorted(position, low, "right")), a + int(np.searchsorted(position, high, "left"))
        before = self._after[left - 1] if left > a else 0
        values = np.append(before, self._after[left:right]).astype(np.int32)
        steps = np.diff(np.concatenate([[low], self._position[left:right], [high]]))
        return np.repeat(values, steps)


def _linear_rate(contention: Contention, gangs: Gangs, counts: _Counts, job: int, low: int, high: int) -> Floats:
    most = np.zeros(high - low, dtype=np.int32)
    for node in gangs.node[gangs.offset[job] : gangs.offset[job + 1]].tolist():
        np.maximum(most, counts.window(0, node, low, high), out=most)
    k = np.maximum(np.arange(int(most.max(initial=0)) + 1), 1)
    pace = k * contention.seconds_per_byte + (k - 1) * contention.penalty
    return np.asarray((1.0 / pace)[most])


def _measured_rate(contention: Contention, gangs: Gangs, counts: _Counts, job: int, low: int, high: int) -> Floats:
    own = int(gangs.kind[job])
    least = np.ones(high - low)
    for node in gangs.node[gangs.offset[job] : gangs.offset[job + 1]].tolist():
        kept = np.ones(high - low)
        for kind in range(int(gangs.kind.max()) + 1):
            beside = counts.window(kind, node, low, high) - (kind == own)  # beside itself it keeps its speed
            beside = np.maximum(beside, 0)
            if beside.any():
                kept *= (contention.ratios[own][kind] ** np.arange(int(beside.max()) + 1))[beside]
        np.minimum(least, kept, out=least)
    return least / contention.seconds_per_byte
