"""The referee of the task level, of residencies without a log and of files."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from simulation.task_reference import as_schedule, reference_run

from check.task_forgeries import END, FORGERIES, GANGS, INSTANCE, LATE, QUIET, Forged, Touch, put, untouched
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.classes.task_sharing.problem.task_log import TaskLog, TaskSchedule
from optsched.errors import InputError
from optsched.problem.contention import IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment


@pytest.fixture
def forged() -> Forged:
    return untouched()


# --- residencies without a log ---------------------------------------------------------------------------------------


def residency(forged: Forged) -> set[str]:
    plain = Schedule.from_segments(forged.instance, [Segment(*row) for row in forged.segments])
    found = check_schedule(forged.instance, plain)
    assert found == check_schedule(forged.instance, dataclasses.replace(forged.schedule(), tasks=None))
    return {violation.rule for violation in found}


RESIDENCIES = [
    (name, rule, touches)
    for name, rule, _, touches in FORGERIES
    if rule in ("work", "memory", "type")
    or name.startswith(("a start before", "a gang too", "a GPU", "a placement", "a job"))
]
RESIDENCIES += [
    ("as long as it takes alone, nearly", "rate", [put(LATE, END, 40 + 2 * (0.75 + 1.1) - 1e-6)]),
    ("as long as it takes alone", "", [put(LATE, END, 40 + 2 * (0.75 + 1.1))]),
    ("much too short", "rate", [put(QUIET, END, 1)]),
    ("untouched", "", []),
]


@pytest.mark.parametrize(("rule", "touches"), [row[1:] for row in RESIDENCIES], ids=[row[0] for row in RESIDENCIES])
def test_residencies(forged: Forged, rule: str, touches: list[Touch]) -> None:
    for touch in touches:
        touch(forged)
    assert residency(forged) >= ({rule} if rule else set())
    assert rule or residency(forged) == set()


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
