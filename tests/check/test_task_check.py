"""The referee of the task level: accepts what a second simulator does, and names the rule that any forgery breaks."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from examples import explored, few
from simulation.task_instances import random_task_instance
from simulation.task_reference import BARRIER, FORWARD, Running, World, as_schedule, reference_run

from check.task_forgeries import FORGERIES, GANGS, INSTANCE, NEAR, PAIR, QUIET, WIDE, Forged, Touch, untouched
from optsched.check.referee import check_schedule, schedule_value
from optsched.errors import InputError
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule

PLACEMENTS = ("first-fit", ("lwf", 1), ("lwf", 2), ("lwf", math.inf))
COMMUNICATION = (("srsf", 1), ("srsf", 2), ("srsf", 3), "adadual", "k-way", lambda world, job: True)


@pytest.fixture
def forged() -> Forged:
    return untouched()


# --- what holds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", few(range(24), 8))
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


@pytest.mark.parametrize(
    ("rule", "alone", "touches"), [row[1:] for row in FORGERIES], ids=[row[0] for row in FORGERIES]
)
def test_every_forgery_breaks_its_rule(forged: Forged, rule: str, alone: bool, touches: list[Touch]) -> None:
    for touch in touches:
        touch(forged)
    found = check_schedule(forged.instance, forged.schedule())
    rules = {violation.rule for violation in found}
    assert rule in rules
    assert rules == {rule} or not alone
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
    for seed in range(24 if explored() else 12):
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
