"""The referee of the task level: accepts what a second simulator does, and names the rule that any forgery breaks."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from simulation.task_instances import random_task_instance
from simulation.task_reference import BARRIER, FORWARD, Running, World, as_schedule, reference_run

from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.errors import InputError
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment
from optsched.problem.task_log import TaskLog, TaskSchedule

PLACEMENTS = ("first-fit", ("lwf", 1), ("lwf", 2), ("lwf", math.inf))
COMMUNICATION = (("srsf", 1), ("srsf", 2), ("srsf", 3), "adadual", "k-way", lambda world, job: True)

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

    def shift_job(self, job: int, seconds: float) -> None:
        for row in [*self.segments, *self.tasks]:
            if row[0] == job:
                row[-3 if row in self.segments else -2] += seconds
                row[-2 if row in self.segments else -1] += seconds


@pytest.fixture
def forged() -> Forged:
    """A valid schedule, in floats, in which transfers contend."""
    segments, tasks = reference_run(INSTANCE, GANGS, lambda world, job: True)
    return Forged(
        [[job, gang, float(start), float(end), work] for job, gang, start, end, work in segments],
        [[job, worker, float(start), float(end)] for job, worker, start, end in tasks],
    )


# --- what holds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_what_the_reference_does_is_feasible(seed: int) -> None:
    instance = random_task_instance(seed)
    placement, rule = PLACEMENTS[seed % 4], COMMUNICATION[seed % 5 + (seed > 14)]
    schedule = as_schedule(instance, *reference_run(instance, placement, rule, exact=seed % 2 == 0))
    assert check_schedule(instance, schedule) == []
    assert check_schedule(instance, dataclasses.replace(schedule, tasks=None)) == []
    flow = sum(Fraction(end) - Fraction(r) for end, r in zip(ends(schedule), instance.arrival.tolist(), strict=True))
    assert schedule_value(instance, schedule, "total_flow_time") == flow
    assert check_schedule(instance, schedule, objective="total_flow_time", value=flow) == []
    wrong = check_schedule(instance, schedule, objective="total_flow_time", value=float(flow) * 1.001)
    assert [violation.rule for violation in wrong] == ["value"]


def ends(schedule: Schedule) -> list[float]:
    return schedule.end[np.argsort(schedule.job)].tolist()


def test_the_forged_schedules_begin_with_one_that_holds_and_contends(forged: Forged) -> None:
    assert forged.rules() == set()
    transfers = forged.of(WIDE, -1) + forged.of(PAIR, -1)
    assert len(transfers) == 4 + 5
    assert forged.of(NEAR, -1) == forged.of(QUIET, -1) == []
    assert any(a[3] > b[2] and b[3] > a[2] for a in forged.of(WIDE, -1) for b in forged.of(PAIR, -1))


def test_the_order_of_the_log_does_not_matter(forged: Forged) -> None:
    forged.tasks = [forged.tasks[i] for i in np.random.default_rng(5).permutation(len(forged.tasks))]
    assert forged.rules() == set()


def test_no_jobs_no_violations() -> None:
    empty = INSTANCE.replace(jobs=[])
    assert check_schedule(empty, as_schedule(empty, [], [])) == []


@pytest.mark.parametrize("unit", [1e-3, 1e6])
def test_the_unit_of_time_does_not_matter(unit: float) -> None:
    contention = Contention(0.5 * unit, 0.2 * unit, latency=0.1 * unit)
    tasks = {
        name: IterationTasks(each.forward * unit, each.backward * unit, each.message)
        for name, each in INSTANCE.tasks.items()
    }
    jobs = INSTANCE.table.with_columns(pl.col("arrival") * unit)
    scaled = INSTANCE.replace(jobs=jobs, tasks=tasks, contention=contention)
    segments, rows = reference_run(scaled, GANGS, ("srsf", 2))
    assert check_schedule(scaled, as_schedule(scaled, segments, rows)) == []
    slower = [[*row[:3], row[3] + unit * 1e-6 * (row[1] == -1)] for row in rows]
    assert check_schedule(scaled, as_schedule(scaled, segments, slower)) != []


def test_far_from_time_0_the_clock_is_forgiven_and_no_more() -> None:
    jobs = INSTANCE.table.with_columns(pl.col("arrival") + 1e7)
    late = INSTANCE.replace(jobs=jobs)
    segments, rows = reference_run(late, GANGS, ("srsf", 2))
    assert check_schedule(late, as_schedule(late, segments, rows)) == []
    shorter = [[*row[:3], row[3] - Fraction(1, 10**6) * (row[1] == -1)] for row in rows]
    assert {violation.rule for violation in check_schedule(late, as_schedule(late, segments, shorter))} >= {"transfer"}


# --- a log that was changed by hand ----------------------------------------------------------------------------------


def shift_a_task(forged: Forged) -> None:
    row = forged.of(QUIET, 1)[3]
    row[2] -= 0.01
    row[3] -= 0.01


def lengthen_a_task(forged: Forged) -> None:
    forged.of(QUIET, 1)[-1][3] += 1e-6
    forged.segment(QUIET)[3] += 1e-6


def shorten_a_task(forged: Forged) -> None:
    forged.of(WIDE, 2)[0][3] -= 1e-6


def exchange_forward_and_backward(forged: Forged) -> None:
    first, second = forged.of(WIDE, 1)[:2]
    first[3] = second[2] = first[2] + 0.75


def swap_a_task_of_two_workers(forged: Forged) -> None:
    forged.of(WIDE, 0)[2][1] = 1


def swap_two_workers(forged: Forged) -> None:
    gang = forged.segment(PAIR)[1]
    forged.segment(PAIR)[1] = gang[::-1]


def drop_a_transfer(forged: Forged) -> None:
    forged.tasks.remove(forged.of(WIDE, -1)[1])


def drop_a_backward_task(forged: Forged) -> None:
    forged.tasks.remove(forged.of(PAIR, 1)[3])


def double_a_task(forged: Forged) -> None:
    forged.tasks.append(list(forged.of(PAIR, 1)[3]))


def transfer_within_a_node(forged: Forged) -> None:
    end = forged.of(NEAR, 0)[1][3]
    forged.tasks.append([NEAR, -1, end, end + 2])


def transfer_without_a_message(forged: Forged) -> None:
    end = forged.of(QUIET, 0)[1][3]
    forged.tasks.append([QUIET, -1, end, end + 1])


def transfer_before_the_barrier(forged: Forged) -> None:
    row = forged.of(WIDE, -1)[-1]
    row[2] -= 0.1
    row[3] -= 0.1


def next_iteration_before_the_transfer_ended(forged: Forged) -> None:
    row = forged.of(PAIR, -1)[-2]
    row[2] += 0.3
    row[3] += 0.3


def next_iteration_before_the_barrier(forged: Forged) -> None:
    """One worker of a gang without all-reduce runs ahead of the other."""
    other = forged.of(QUIET, 1)
    other[-1][2:] = [other[-1][2] + 5, other[-1][3] + 5]
    other[-2][2:] = [other[-2][2] + 5, other[-2][3] + 5]
    for row in other[2:]:
        row[2:] = [row[2] - 0.2, row[3] - 0.2]
    forged.segment(QUIET)[3] = max(row[3] for row in forged.tasks if row[0] == QUIET)


def two_tasks_at_once(forged: Forged) -> None:
    segment = forged.segment(LATE)
    segment[1] = [(0, 0), (1, 0)]
    forged.shift_job(LATE, -segment[2])


def transfer_too_slow(forged: Forged) -> None:
    row = forged.of(LATE, -1)[-1]
    row[3] += 1e-6 * (row[3] - row[2])
    forged.segment(LATE)[3] = row[3]


def transfer_too_fast(forged: Forged) -> None:
    row = forged.of(LATE, -1)[-1]
    row[3] -= 1e-6 * (row[3] - row[2])
    forged.segment(LATE)[3] = row[3]


def transfer_of_no_length(forged: Forged) -> None:
    row = forged.of(LATE, -1)[-1]
    row[3] = forged.segment(LATE)[3] = row[2] + 0.05


def transfer_within_its_latency(forged: Forged) -> None:
    """As if there were no latency: alone, 2 bytes in a second."""
    row = forged.of(LATE, -1)[-1]
    row[3] = forged.segment(LATE)[3] = row[2] + 1


def starts_before_its_arrival(forged: Forged) -> None:
    forged.shift_job(LATE, -0.5)


def task_before_the_placement(forged: Forged) -> None:
    forged.segment(WIDE)[2] += 0.1


def task_after_the_completion(forged: Forged) -> None:
    forged.segment(QUIET)[3] -= 0.1


def completion_after_the_last_task(forged: Forged) -> None:
    forged.segment(LATE)[3] += 0.1


def gang_too_small(forged: Forged) -> None:
    forged.segment(WIDE)[1] = forged.segment(WIDE)[1][:2]


def gpu_twice(forged: Forged) -> None:
    forged.segment(NEAR)[1] = [(0, 0), (0, 0)]


def gpu_that_does_not_exist(forged: Forged) -> None:
    forged.segment(QUIET)[1] = [(0, 0), (2, 2)]


def node_that_does_not_exist(forged: Forged) -> None:
    forged.segment(QUIET)[1] = [(0, 0), (9, 0)]


def too_much_memory(forged: Forged) -> None:
    """`late` needs a K80 for itself, or two thirds of a V100; `wide` is there until its end."""
    forged.instance = INSTANCE.replace(jobs=INSTANCE.table.with_columns(gpu_memory=pl.Series([6.0, 4, 5, 7, 12])))


def wrong_type(forged: Forged) -> None:
    forged.segment(PAIR)[1] = [(0, 1), (2, 0)]


def foreign_job(forged: Forged) -> None:
    forged.tasks.append([17, 0, 0.0, 0.5])


def worker_that_does_not_exist(forged: Forged) -> None:
    forged.of(PAIR, 1)[0][1] = 2


def worker_below_all(forged: Forged) -> None:
    forged.of(PAIR, 1)[0][1] = -2


def not_a_number(forged: Forged) -> None:
    forged.of(WIDE, 0)[0][3] = math.nan


def infinite(forged: Forged) -> None:
    forged.of(WIDE, -1)[0][2] = -math.inf


def placement_not_a_number(forged: Forged) -> None:
    forged.segment(WIDE)[2] = math.nan


def too_few_iterations(forged: Forged) -> None:
    forged.segment(QUIET)[4] = 5


def never_runs(forged: Forged) -> None:
    forged.segments.remove(forged.segment(LATE))


def resident_twice(forged: Forged) -> None:
    forged.segments.append([LATE, [(2, 0), (1, 0)], 60.0, 61.0, 0.0])


def one_iteration_less(forged: Forged) -> None:
    """Consistent in everything but the number of iterations."""
    for worker in (0, 1):
        for row in forged.of(QUIET, worker)[-2:]:
            forged.tasks.remove(row)
    forged.segment(QUIET)[3] = max(row[3] for row in forged.tasks if row[0] == QUIET)


def ends_before_it_starts(forged: Forged) -> None:
    row = forged.of(QUIET, 1)[-1]
    row[2], row[3] = row[3], row[2]


def made_for_other_costs(forged: Forged) -> None:
    forged.instance = INSTANCE.replace(contention=Contention(0.5, 0.1, latency=0.1))


FORGERIES: list[tuple[Callable[[Forged], None], str]] = [
    (shift_a_task, "rate"),
    (lengthen_a_task, "rate"),
    (shorten_a_task, "rate"),
    (exchange_forward_and_backward, "rate"),
    (swap_a_task_of_two_workers, "completeness"),
    (swap_two_workers, "capacity"),
    (drop_a_transfer, "completeness"),
    (drop_a_backward_task, "completeness"),
    (double_a_task, "completeness"),
    (transfer_within_a_node, "completeness"),
    (transfer_without_a_message, "completeness"),
    (transfer_before_the_barrier, "rate"),
    (next_iteration_before_the_transfer_ended, "rate"),
    (next_iteration_before_the_barrier, "rate"),
    (two_tasks_at_once, "capacity"),
    (transfer_too_slow, "transfer"),
    (transfer_too_fast, "transfer"),
    (transfer_of_no_length, "transfer"),
    (transfer_within_its_latency, "transfer"),
    (starts_before_its_arrival, "arrival"),
    (task_before_the_placement, "arrival"),
    (task_after_the_completion, "arrival"),
    (completion_after_the_last_task, "arrival"),
    (gang_too_small, "gang"),
    (gpu_twice, "capacity"),
    (gpu_that_does_not_exist, "capacity"),
    (node_that_does_not_exist, "capacity"),
    (too_much_memory, "memory"),
    (wrong_type, "type"),
    (foreign_job, "completeness"),
    (worker_that_does_not_exist, "gang"),
    (worker_below_all, "gang"),
    (not_a_number, "completeness"),
    (infinite, "completeness"),
    (placement_not_a_number, "completeness"),
    (too_few_iterations, "work"),
    (never_runs, "completeness"),
    (resident_twice, "completeness"),
    (one_iteration_less, "completeness"),
    (ends_before_it_starts, "rate"),
    (made_for_other_costs, "transfer"),
]
ALONE = {  # forgeries that break one rule and no other
    transfer_too_slow: "transfer",
    transfer_too_fast: "transfer",
    lengthen_a_task: "rate",
    exchange_forward_and_backward: "rate",
    completion_after_the_last_task: "arrival",
    starts_before_its_arrival: "arrival",
    too_few_iterations: "work",
    too_much_memory: "memory",
    one_iteration_less: "completeness",
    foreign_job: "completeness",
    drop_a_backward_task: "completeness",
    made_for_other_costs: "transfer",
}


@pytest.mark.parametrize(("tamper", "rule"), FORGERIES, ids=lambda x: getattr(x, "__name__", x))
def test_every_forgery_breaks_its_rule(forged: Forged, tamper: Callable[[Forged], None], rule: str) -> None:
    tamper(forged)
    found = check_schedule(forged.instance, forged.schedule())
    rules = {violation.rule for violation in found}
    assert rule in rules
    assert rules == {rule} or tamper not in ALONE
    assert all("expected: " in violation.message or violation.count > 1 for violation in found)


def test_a_schedule_of_another_instance_is_judged_by_the_names_of_its_jobs(forged: Forged) -> None:
    other = INSTANCE.replace(jobs=INSTANCE.table.reverse())
    assert {violation.rule for violation in check_schedule(other, forged.schedule())} == {"instance"}
    fewer = INSTANCE.replace(jobs=INSTANCE.table.head(4))
    found = check_schedule(fewer, forged.schedule())
    assert {violation.rule for violation in found} == {"instance", "completeness"}
    assert any("'late' " in violation.message or "late" in violation.message for violation in found)


def test_the_tasks_of_jobs_that_have_none(forged: Forged) -> None:
    plain = Instance([Job("a", duration=1)], "1x1")
    assert [violation.rule for violation in check_schedule(plain, forged.schedule())] == ["instance"]


def test_a_log_with_columns_of_different_lengths(forged: Forged) -> None:
    schedule = forged.schedule()
    assert schedule.tasks is not None
    broken = dataclasses.replace(schedule.tasks, start=schedule.tasks.start[1:])
    with pytest.raises(InputError, match="different lengths"):
        check_schedule(INSTANCE, dataclasses.replace(schedule, tasks=broken))


# --- tasks of no length ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("moment", "legal"), [(0, True), (1, False), (2, True), (2.5, False), (3, True)])
def test_a_task_of_no_length_waits_for_a_free_gpu_too(moment: float, legal: bool) -> None:
    instance = Instance(
        [Job("a", iterations=1, profile="a"), Job("b", iterations=1, profile="b")],
        "1x1",
        tasks={"a": IterationTasks(2, 1), "b": IterationTasks(0, 1)},
    )
    rows = [[0, 0, 0, 2], [0, 0, 2, 3], [1, 0, moment, moment], [1, 0, 3, 4]]
    schedule = as_schedule(instance, [(0, [(0, 0)], 0, 3, 1), (1, [(0, 0)], 0, 4, 1)], rows)
    assert {violation.rule for violation in check_schedule(instance, schedule)} == (set() if legal else {"capacity"})


@pytest.mark.parametrize(("work", "rules"), [(2, set()), (1.5, {"work"}), (3, {"work"})])
def test_iterations_that_only_send(work: float, rules: set[str]) -> None:
    instance = Instance(
        [Job("a", gpus=2, iterations=2, profile="a"), Job("b", arrival=1, gpus=2, iterations=3, profile="a")],
        "2x1",
        tasks={"a": IterationTasks(0, 0, 3)},
        contention=Contention(1),
    )
    segments, rows = reference_run(instance, "first-fit", ("srsf", 2))
    segments = [(*row[:4], work if row[0] == 0 else row[4]) for row in segments]
    assert {violation.rule for violation in check_schedule(instance, as_schedule(instance, segments, rows))} == rules


# --- engines with a defect -------------------------------------------------------------------------------------------


class CountsTwice(World):
    """Whoever tests a running transfer gives it another sixteenth of a second of progress."""

    def admit(self, job: int) -> bool:
        beside = [each for node in self.resident[job].nodes for each in self.running(node)]
        for each in beside[:1]:
            if each.moving:
                each.left -= min(each.left / 2, Fraction(1, 16) / each.pace)
                each.end = self.now + each.left * each.pace
        return super().admit(job)


class NeverContends(World):
    def pace_on(self, each: Any, node: int) -> Any:
        return self.b


class ForgetsThePenalty(World):
    def pace_on(self, each: Any, node: int) -> Any:
        return self.b * sum(other.moving for other in self.running(node))


class LooksAtTheFirstNode(World):
    def pace_on(self, each: Any, node: int) -> Any:
        return super().pace_on(each, each.nodes[0])


class ContendsInItsLatency(World):
    def pace_on(self, each: Any, node: int) -> Any:
        k = len(self.running(node))
        return k * self.b + (k - 1) * self.eta


class KeepsItsFirstPace(World):
    def set_paces(self) -> None:
        kept = {job: (each.pace, each.end) for job, each in self.transfers.items() if each.pace is not None}
        super().set_paces()
        for job, (pace, end) in kept.items():
            self.transfers[job].pace, self.transfers[job].end = pace, end


class ForgetsMemory(World):
    def fits(self, job: int, gpu: tuple[int, int]) -> bool:
        return bool(self.instance.eligible(job)[gpu[0]])


class ForgetsTypes(World):
    def fits(self, job: int, gpu: tuple[int, int]) -> bool:
        used = sum(self.memory[other] for other, resident in self.resident.items() if gpu in resident.gang)
        return bool(used + self.memory[job] <= self.instance.cluster.node_memory[gpu[0]])


class ForgetsArrivals(World):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.arrival = [Fraction(0)] * self.instance.n


class GpusRunAllAtOnce(World):
    def compute(self) -> None:
        for job, resident in self.resident.items():
            for worker, gpu in enumerate(resident.gang):
                key: Any = (gpu, job)
                if resident.phase[worker] != BARRIER and key not in self.busy:
                    length = self.forward[job] if resident.phase[worker] == FORWARD else self.backward[job]
                    self.busy[key] = Running(job, worker, self.now, self.now + length)


DEFECTS = [
    (CountsTwice, ("srsf", 2), "transfer"),
    (NeverContends, ("srsf", 2), "transfer"),
    (ForgetsThePenalty, ("srsf", 2), "transfer"),
    (LooksAtTheFirstNode, ("srsf", 9), "transfer"),
    (ContendsInItsLatency, ("srsf", 2), "transfer"),
    (KeepsItsFirstPace, ("srsf", 2), "transfer"),
    (ForgetsMemory, ("srsf", 2), "memory"),
    (ForgetsTypes, ("srsf", 2), "type"),
    (ForgetsArrivals, ("srsf", 2), "arrival"),
    (GpusRunAllAtOnce, ("srsf", 2), "capacity"),
]


@pytest.mark.parametrize(("world", "rule", "broken"), DEFECTS, ids=lambda x: getattr(x, "__name__", None))
def test_an_engine_with_a_defect_is_found_out(world: type[World], rule: Any, broken: str) -> None:
    """The defect breaks its rule somewhere, and no other anywhere: all the rest of these schedules is consistent."""
    found: set[str] = set()
    for seed in range(24):
        instance = random_task_instance(seed)
        schedule = as_schedule(instance, *reference_run(instance, "first-fit", rule, world=world))
        found |= {violation.rule for violation in check_schedule(instance, schedule)}
    assert found == {broken}


def test_progress_that_is_counted_twice_where_it_happens() -> None:
    """No contention, and candidates that wait: SRSF(1) is faithful, its double-counting twin is not."""
    honest = as_schedule(INSTANCE, *reference_run(INSTANCE, GANGS, ("srsf", 1)))
    twice = as_schedule(INSTANCE, *reference_run(INSTANCE, GANGS, ("srsf", 1), world=CountsTwice))
    assert check_schedule(INSTANCE, honest) == []
    assert twice.end.sum() < honest.end.sum()
    assert {violation.rule for violation in check_schedule(INSTANCE, twice)} == {"transfer"}


def test_measured_ratios_are_read_row_by_row() -> None:
    """The speed that a kind keeps beside another is not the speed that the other keeps."""

    class Transposed(World):
        def __post_init__(self) -> None:
            super().__post_init__()
            self.ratio = {(other, kind): value for (kind, other), value in self.ratio.items()}

    found = set()
    for seed in (5, 11, 17, 23, 29, 35):
        instance = random_task_instance(seed)
        assert instance.contention is not None
        assert instance.contention.measured
        honest = as_schedule(instance, *reference_run(instance, "first-fit", ("srsf", 3)))
        assert check_schedule(instance, honest) == []
        wrong = as_schedule(instance, *reference_run(instance, "first-fit", ("srsf", 3), world=Transposed))
        found |= {violation.rule for violation in check_schedule(instance, wrong)}
    assert found == {"transfer"}


# --- residencies without a log ---------------------------------------------------------------------------------------


def residency(forged: Forged) -> set[str]:
    plain = Schedule.from_segments(forged.instance, [Segment(*row) for row in forged.segments])
    found = check_schedule(forged.instance, plain)
    assert found == check_schedule(forged.instance, dataclasses.replace(forged.schedule(), tasks=None))
    return {violation.rule for violation in found}


RESIDENCIES: list[tuple[Callable[[Forged], Any], str | None]] = [
    (lambda forged: None, None),
    (starts_before_its_arrival, "arrival"),
    (gang_too_small, "gang"),
    (gpu_twice, "capacity"),
    (gpu_that_does_not_exist, "capacity"),
    (too_much_memory, "memory"),
    (wrong_type, "type"),
    (placement_not_a_number, "completeness"),
    (never_runs, "completeness"),
    (resident_twice, "completeness"),
    (too_few_iterations, "work"),
    (lambda forged: forged.segment(LATE).__setitem__(3, 40 + 2 * (0.75 + 1.1) - 1e-6), "rate"),
    (lambda forged: forged.segment(LATE).__setitem__(3, 40 + 2 * (0.75 + 1.1)), None),
    (lambda forged: forged.segment(QUIET).__setitem__(3, 1), "rate"),
]


@pytest.mark.parametrize(("tamper", "rule"), RESIDENCIES)
def test_residencies(forged: Forged, tamper: Callable[[Forged], Any], rule: str | None) -> None:
    tamper(forged)
    assert residency(forged) >= ({rule} if rule else set())
    assert rule is not None or residency(forged) == set()


def test_compute_that_does_not_fit_the_residencies_it_lies_in() -> None:
    instance = Instance(
        [Job(name, iterations=2, profile="one") for name in "abc"], "1x1", tasks={"one": IterationTasks(1, 1)}
    )
    gpu = ((0, 0),)
    for last, rules in ((12, []), (11, ["capacity"])):
        segments = [Segment(0, gpu, 0, 4, 2), Segment(1, gpu, 0, 12, 2), Segment(2, gpu, 2, last, 2)]
        segments[1] = Segment(1, gpu, 0, last, 2)
        found = check_schedule(instance, Schedule.from_segments(instance, segments))
        assert [violation.rule for violation in found] == rules


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(forged: Forged, tmp_path: Path) -> Path:
    path = tmp_path / "tasks.parquet"
    forged.schedule().save_tasks(path)
    return path


def rewrite(path: Path, head: Callable[[dict[str, Any]], Any] | None = None, table: Any = None) -> None:
    """Change the header or the table of a file of tasks."""
    document = json.loads(pl.read_parquet_metadata(path)["optsched-tasks"])
    rows = pl.read_parquet(path)
    if head is not None:
        head(document)
    rows = rows if table is None else table(rows)
    rows.write_parquet(path, metadata={"optsched-tasks": json.dumps(document)})


def rules_of(path: Path) -> set[str]:
    verdict = check_file(path, INSTANCE)
    assert verdict.kind == "schedule"
    return {violation.rule for violation in verdict.violations}


def test_a_file_of_tasks_holds(file: Path) -> None:
    assert check_file(file, INSTANCE).holds
    assert check_schedule(INSTANCE, TaskSchedule.load_tasks(file, INSTANCE)) == []
    rewrite(file, lambda head: head.update(objective="makespan", value=1.0))
    assert rules_of(file) == {"value"}


def set_gang(position: int, value: Any, gang: int = 0) -> Callable[[dict[str, Any]], None]:
    return lambda head: head["gangs"][gang].__setitem__(position, value)


HEADS: list[tuple[Callable[[dict[str, Any]], Any], set[str]]] = [
    (lambda head: head.update(instance="another"), {"instance"}),
    (set_gang(0, "nobody"), {"completeness"}),
    (set_gang(1, [[7, 0], [0, 0]]), {"capacity"}),
    (set_gang(1, [[0, 0]]), {"gang"}),
    (set_gang(4, 99), {"work"}),
    (set_gang(2, float("nan")), {"completeness"}),
    (lambda head: head["gangs"].pop(), {"completeness"}),
    (lambda head: head.update(objective="beauty", value=1), {"value"}),
]


@pytest.mark.parametrize(("head", "rules"), HEADS)
def test_a_forged_head_is_a_broken_rule_with_a_name(file: Path, head: Any, rules: set[str]) -> None:
    rewrite(file, head)
    assert rules_of(file) >= rules


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("job", 99, "completeness"),
        ("job", 2**40, "completeness"),
        ("worker", 9, "gang"),
        ("end", math.inf, "completeness"),
    ],
)
def test_a_forged_row_is_a_broken_rule_with_a_name(file: Path, column: str, value: float, rule: str) -> None:
    first = pl.int_range(pl.len()) == 0
    rewrite(file, table=lambda rows: rows.with_columns(pl.when(first).then(value).otherwise(column).alias(column)))
    assert rule in rules_of(file)


UNREADABLE: list[tuple[Any, Any]] = [
    (lambda head: head.update(format="optsched-tasks/9"), None),
    (lambda head: head.pop("gangs"), None),
    (lambda head: head.pop("instance"), None),
    (lambda head: head["gangs"][0].pop(), None),
    (set_gang(1, "everywhere"), None),
    (set_gang(2, "noon"), None),
    (None, lambda rows: rows.drop("worker")),
    (None, lambda rows: rows.cast({"job": pl.String})),
    (None, lambda rows: rows.cast({"worker": pl.Float64})),
    (None, lambda rows: rows.with_columns(start=pl.lit(None, dtype=pl.Float64))),
]


@pytest.mark.parametrize(("head", "table"), UNREADABLE)
def test_what_says_nothing_definite_is_unreadable(file: Path, head: Any, table: Any) -> None:
    rewrite(file, head, table)
    with pytest.raises(InputError, match=r"tasks\.parquet"):
        check_file(file, INSTANCE)


def test_a_truncated_file(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match="damaged"):
        check_file(file, INSTANCE)


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_a_schedule_file_of_shared_gpus(forged: Forged, tmp_path: Path, suffix: str) -> None:
    path, schedule = tmp_path / f"shared.{suffix}", forged.schedule()
    value = float(schedule_value(INSTANCE, schedule, "makespan"))
    schedule.save(path, sharing=True, objective="makespan", value=value)
    assert check_file(path, INSTANCE).holds
    schedule.save(path, sharing=True, objective="makespan", value=value / 2)
    assert rules_of(path) == {"value"}
    schedule.save(path)  # it does not say that GPUs are shared
    assert rules_of(path) == {"capacity"}
    schedule.save(path, sharing="yes")
    with pytest.raises(InputError, match="sharing"):
        check_file(path, INSTANCE)


def test_jobs_with_durations_never_share(tmp_path: Path) -> None:
    instance = Instance([Job("a", duration=2), Job("b", duration=2)], "1x1")
    both = Schedule.from_segments(instance, [Segment(0, ((0, 0),), 0, 2, 2), Segment(1, ((0, 0),), 0, 2, 2)])
    both.save(tmp_path / "both.json", sharing=True)
    assert [violation.rule for violation in check_file(tmp_path / "both.json", instance).violations] == ["capacity"]


def test_a_log_is_not_needed_to_be_a_log() -> None:
    """A schedule with an empty log claims that nothing ran."""
    segments, _ = reference_run(INSTANCE, GANGS, ("srsf", 1))
    silent = as_schedule(INSTANCE, segments, [])
    silent = dataclasses.replace(silent, tasks=TaskLog())
    assert {violation.rule for violation in check_schedule(INSTANCE, silent)} == {"completeness"}
