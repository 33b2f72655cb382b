"""A second simulator of the task level, in plain Python fractions: the documented semantics word for word, slowly.

Shares no code with the engine. All that happens at an instant (tasks and transfers that end, latencies that are over,
arrivals) is applied before anything is decided; then waiting jobs are placed, then ready transfers are asked about (if one
has become ready or one has ended), then idle GPUs take tasks. Tasks of no length end in the next round of the same instant.

``reference_run(instance, placement, rule)`` returns (segments, tasks):

* a segment is (job, gang, start, end, iterations), ``gang`` the (node, index) of the workers in the order of their choice;
* a task is (job, worker, start, end), worker -1 for an all-reduce; both lists in the order of their ends.

Placements: ``"first-fit"``, ``("lwf", kappa)``, ``("lwf", math.inf)`` for list scheduling, or {job: gang}.
Rules: ``("srsf", k)``, ``"adadual"``, ``"k-way"``, or a function (world, job) -> bool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.classes.task_sharing.problem.task_log import TaskLog, TaskSchedule
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule, Segment
from simulation.transfer_reference import now_is_better

Number = Any  # Fraction, or float where `exact` is False
Gpu = tuple[int, int]
SegmentRow = tuple[int, tuple[Gpu, ...], Number, Number, int]
TaskRow = tuple[int, int, Number, Number]
FORWARD, BACKWARD, BARRIER = "forward", "backward", "barrier"
TRANSFER = -1


@dataclass
class Transfer:
    """An all-reduce that has started. ``moves_at``: when its latency is over; ``end`` is None until then."""

    job: int
    nodes: tuple[int, ...]
    start: Number
    moves_at: Number
    left: Number  # bytes
    moving: bool = False
    pace: Number = None  # seconds a byte
    end: Number = None


@dataclass
class Resident:
    """A job on its GPUs: ``phase`` is the task that each worker does next (or does now)."""

    gang: tuple[Gpu, ...]
    since: Number
    sends: bool
    phase: list[str]
    forwards: list[int]  # not finished, of each worker
    backwards: list[int]
    iterations: int  # not finished

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted({node for node, _ in self.gang}))

    @property
    def at_barrier(self) -> bool:
        return all(phase == BARRIER for phase in self.phase)


@dataclass
class Running:
    job: int
    worker: int
    start: Number
    end: Number


@dataclass
class World:
    """The state of one run."""

    instance: Instance
    placement: Any
    rule: Any
    exact: bool = True
    now: Number = 0
    waiting: list[int] = field(default_factory=list)
    resident: dict[int, Resident] = field(default_factory=dict)
    busy: dict[Gpu, Running] = field(default_factory=dict)
    ready: list[int] = field(default_factory=list)
    transfers: dict[int, Transfer] = field(default_factory=dict)
    segments: list[SegmentRow] = field(default_factory=list)
    tasks: list[TaskRow] = field(default_factory=list)
    ask: bool = False

    def __post_init__(self) -> None:
        instance, number = self.instance, Fraction if self.exact else float
        self.arrival, self.forward, self.backward, self.message, self.memory = (
            [number(x) for x in column.tolist()]
            for column in (instance.arrival, instance.forward, instance.backward, instance.message, instance.gpu_memory)
        )
        self.iterations = [int(x) for x in instance.iterations.tolist()]
        self.kind = instance.table["profile"].to_list()
        contention = instance.contention
        b, eta, latency = (
            (0, 0, 0) if contention is None else (contention.seconds_per_byte, contention.penalty, contention.latency)
        )
        self.b, self.eta, self.latency = number(b), number(eta), number(latency)
        self.ratio = {}
        if contention is not None and contention.measured:
            self.ratio = {
                (kind, other): number(value)
                for kind, row in zip(contention.kinds, contention.ratios, strict=True)
                for other, value in zip(contention.kinds, row, strict=True)
            }
        sizes = instance.cluster.node_gpus.tolist()
        self.all_gpus = [(node, index) for node, size in enumerate(sizes) for index in range(size)]
        self.to_come = sorted(range(instance.n), key=lambda j: (self.arrival[j], j))

    # --- time ---

    def run(self) -> None:
        while (time := self.next_event()) is not None:
            self.advance(time)
            self.apply()
            self.place()
            self.communicate()
            self.compute()

    def next_event(self) -> Number | None:
        times = [task.end for task in self.busy.values()]
        times += [each.end if each.moving else each.moves_at for each in self.transfers.values()]
        times += [self.arrival[j] for j in self.to_come[:1]]
        return min(times, default=None)

    def advance(self, time: Number) -> None:
        for each in self.transfers.values():
            if each.moving:
                each.left = 0 if each.end == time else each.left - (time - self.now) / each.pace
        self.now = time

    def apply(self) -> None:
        for gpu, task in sorted(self.busy.items()):
            if task.end == self.now:
                del self.busy[gpu]
                self.end_of_task(task)
        for job in sorted(self.transfers):
            if self.transfers[job].moving and self.transfers[job].end == self.now:
                each = self.transfers.pop(job)
                self.tasks.append((job, TRANSFER, each.start, self.now))
                self.ask = True
                self.end_of_iteration(job)
        for each in self.transfers.values():
            each.moving = each.moving or each.moves_at == self.now
        self.set_paces()
        while self.to_come and self.arrival[self.to_come[0]] == self.now:
            self.waiting.append(self.to_come.pop(0))

    def end_of_task(self, task: Running) -> None:
        job, worker = task.job, task.worker
        resident = self.resident[job]
        self.tasks.append((job, worker, task.start, self.now))
        if resident.phase[worker] == FORWARD:
            resident.forwards[worker] -= 1
            resident.phase[worker] = BACKWARD
            return
        resident.backwards[worker] -= 1
        resident.phase[worker] = BARRIER
        if resident.at_barrier:
            if resident.sends:
                self.ready.append(job)
                self.ask = True
            else:
                self.end_of_iteration(job)

    def end_of_iteration(self, job: int) -> None:
        resident = self.resident[job]
        resident.iterations -= 1
        if resident.iterations:
            resident.phase = [FORWARD] * len(resident.gang)
        else:
            del self.resident[job]
            self.segments.append((job, resident.gang, resident.since, self.now, self.iterations[job]))

    # --- 1: placement ---

    def place(self) -> None:
        for job in sorted(self.waiting, key=lambda j: (self.service(j), j)):
            gang = self.choose(job)
            if gang is None:
                continue
            self.waiting.remove(job)
            n = len(gang)
            sends = len({node for node, _ in gang}) > 1 and self.message[job] > 0
            count = self.iterations[job]
            self.resident[job] = Resident(gang, self.now, sends, [FORWARD] * n, [count] * n, [count] * n, count)

    def service(self, job: int) -> Number:
        """(t_f + t_b) I n."""
        compute = self.forward[job] + self.backward[job]
        return compute * self.iterations[job] * int(self.instance.gpus[job])

    def choose(self, job: int) -> tuple[Gpu, ...] | None:
        eligible = [gpu for gpu in self.all_gpus if self.fits(job, gpu)]
        n = int(self.instance.gpus[job])
        if isinstance(self.placement, Mapping):
            gang = tuple(self.placement[job])
            return gang if set(gang) <= set(eligible) else None
        if len(eligible) < n:
            return None
        if self.placement == "first-fit":
            return tuple(eligible[:n])
        _, kappa = self.placement
        load = {gpu: self.load(gpu) for gpu in self.all_gpus}
        if n <= kappa:
            return tuple(sorted(eligible, key=lambda gpu: (load[gpu], gpu))[:n])

        def mean_load(node: int) -> Number:
            own = [load[gpu] for gpu in self.all_gpus if gpu[0] == node]
            return sum(own) / len(own)

        mean = {node: mean_load(node) for node, _ in self.all_gpus}
        return tuple(sorted(eligible, key=lambda gpu: (mean[gpu[0]], gpu[0], load[gpu], gpu[1]))[:n])

    def fits(self, job: int, gpu: Gpu) -> bool:
        if not self.instance.eligible(job)[gpu[0]]:
            return False
        used = sum(self.memory[other] for other, resident in self.resident.items() if gpu in resident.gang)
        return bool(used + self.memory[job] <= self.instance.cluster.node_memory[gpu[0]])

    def load(self, gpu: Gpu) -> Number:
        """L_g: seconds of work that are left to the workers on a GPU, communication estimated."""
        total: Number = 0
        for job, resident in self.resident.items():
            if gpu in resident.gang:
                worker = resident.gang.index(gpu)
                total += resident.forwards[worker] * self.forward[job]
                total += resident.backwards[worker] * self.backward[job]
                total += resident.iterations * self.b * self.message[job] if resident.sends else 0
        return total

    # --- 2: communication ---

    def communicate(self) -> None:
        if not self.ask:
            return
        self.ask = False
        for job in sorted(self.ready, key=self.rank):
            if self.admit(job):
                self.ready.remove(job)
                nodes = self.resident[job].nodes
                each = Transfer(job, nodes, self.now, self.now + self.latency, self.message[job])
                each.moving = each.moves_at == self.now
                self.transfers[job] = each
                self.set_paces()

    def admit(self, job: int) -> bool:
        beside = [self.running(node) for node in self.resident[job].nodes]
        most = max(map(len, beside))
        if callable(self.rule):
            return bool(self.rule(self, job))
        if self.rule == "adadual":
            if most != 1:
                return most == 0
            theta = self.b / (2 * (self.b + self.eta))
            return all(self.message[job] / each.left < theta for on_node in beside for each in on_node)
        if self.rule == "k-way":
            left = [[each.left for each in on_node] for on_node in beside if on_node]
            return all(now_is_better(each, self.message[job], self.b, self.eta) for each in left)
        _, k = self.rule
        return most < k

    def running(self, node: int) -> list[Transfer]:
        return [each for each in self.transfers.values() if node in each.nodes]

    def set_paces(self) -> None:
        """The pace of every moving transfer; its end moves only when its pace changes."""
        for each in self.transfers.values():
            if not each.moving:
                continue
            pace = max(self.pace_on(each, node) for node in each.nodes)
            if pace != each.pace:
                each.pace = pace
                each.end = self.now + each.left * pace

    def pace_on(self, each: Transfer, node: int) -> Number:
        others = [other for other in self.running(node) if other.moving and other is not each]
        if self.ratio:
            kept = math.prod(self.ratio[self.kind[each.job], self.kind[other.job]] for other in others)
            return self.b / kept
        return (len(others) + 1) * self.b + len(others) * self.eta

    # --- 3: computation ---

    def compute(self) -> None:
        for gpu in self.all_gpus:
            if gpu in self.busy:
                continue
            able = [
                self.rank(job)
                for job, resident in self.resident.items()
                if gpu in resident.gang and resident.phase[resident.gang.index(gpu)] != BARRIER
            ]
            if able:
                job = min(able)[1]
                worker = self.resident[job].gang.index(gpu)
                forward = self.resident[job].phase[worker] == FORWARD
                length = self.forward[job] if forward else self.backward[job]
                self.busy[gpu] = Running(job, worker, self.now, self.now + length)

    def rank(self, job: int) -> tuple[Number, int]:
        """Remaining compute, summed over the workers."""
        resident = self.resident[job]
        return self.forward[job] * sum(resident.forwards) + self.backward[job] * sum(resident.backwards), job


def reference_run(
    instance: Instance,
    placement: str | tuple[str, float] | Mapping[int, Sequence[Gpu]],
    rule: str | tuple[str, int] | Callable[[World, int], bool],
    *,
    exact: bool = True,
    world: type[World] | None = None,
) -> tuple[list[SegmentRow], list[TaskRow]]:
    """(segments, tasks) of one run, see the module.

    ``exact``: Fractions of the floats of the instance. ``world``: a class with a defect, for tests that want it found.
    """
    run = (world or World)(instance, placement, rule, exact)
    run.run()
    if run.waiting or run.resident:
        raise AssertionError("jobs did not finish: a rule never admits, or a placement never fits")
    return run.segments, run.tasks


def as_schedule(instance: Instance, segments: Sequence[SegmentRow], tasks: Sequence[TaskRow]) -> TaskSchedule:
    """The same as a schedule with its log, times rounded to floats."""
    plain = Schedule.from_segments(
        instance,
        [Segment(job, gang, float(start), float(end), float(work)) for job, gang, start, end, work in segments],
    )
    columns = list(zip(*tasks, strict=True)) if tasks else [(), (), (), ()]
    log = TaskLog(
        np.array(columns[0], dtype=np.int32),
        np.array(columns[1], dtype=np.int32),
        np.array([float(x) for x in columns[2]]),
        np.array([float(x) for x in columns[3]]),
    )
    return TaskSchedule(
        instance,
        plain.job,
        plain.start,
        plain.end,
        plain.work,
        plain.gpu_offset,
        plain.gpu_node,
        plain.gpu_index,
        "reference",
        log,
    )
