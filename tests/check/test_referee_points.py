"""The referee: what rounding excuses, finer points, proven bounds, and many segments."""

from __future__ import annotations

import dataclasses
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import optsched.check.referee
from check.test_check import rules_of, valid_schedules
from optsched.bounds.certificate import Certificate
from optsched.check.class_rules import ClassRules
from optsched.check.context import LISTED
from optsched.check.feasibility import Violations
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.errors import InputError
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import OBJECTIVES
from optsched.problem.schedule import Schedule, Segment

# ------------------------------------------------------------------------------------------------------- tolerance


def rescaled(case: tuple[Instance, list[Segment]], unit: float, origin: float) -> tuple[Instance, list[Segment]]:
    """The schedule in another unit of time, with the rounding that this brings."""
    instance, segments = case
    jobs = [
        dataclasses.replace(
            job,
            arrival=origin + job.arrival * unit,
            duration=(job.duration or 0) * unit,
            due=None if job.due is None else origin + job.due * unit,
        )
        for job in instance.jobs
    ]
    rows = [
        dataclasses.replace(s, start=origin + s.start * unit, end=origin + s.end * unit, work=s.work * unit)
        for s in segments
    ]
    return instance.replace(jobs=jobs), rows


@given(valid_schedules(), st.sampled_from([(0.1, 0), (1 / 3, 7.7), (1e-7, 0), (1e6 / 7, 0), (0.3, 1e8)]), st.data())
def test_rounding_is_accepted_and_errors_of_a_millionth_are_not(
    case: tuple[Instance, list[Segment]], scale: tuple[float, float], data: st.DataObject
) -> None:
    unit, origin = scale
    instance, segments = rescaled(case, unit, origin)
    noisy = [
        dataclasses.replace(
            s, **{field: np.nextafter(getattr(s, field), data.draw(st.sampled_from([-np.inf, np.inf])))}
        )
        for s in segments
        for field in [data.draw(st.sampled_from(["start", "end", "work"]))]
    ]
    schedule = Schedule.from_segments(instance, noisy)
    assert check_schedule(instance, schedule) == []
    if origin == 0:  # at 1e8 s a millionth of 0.3 s is less than the clock's own rounding
        s = data.draw(st.integers(0, len(noisy) - 1))
        for factor in (1 - 1e-6, 1 + 1e-6):
            cheated = [*noisy[:s], dataclasses.replace(noisy[s], work=noisy[s].work * factor), *noisy[s + 1 :]]
            assert "work" in rules_of(check_schedule(instance, Schedule.from_segments(instance, cheated)))


def one_after_another(gap: float, unit: float = 0.1) -> tuple[Instance, Schedule]:
    """Two jobs of 30 units on one GPU, the second of which starts ``gap`` units after the end of the first."""
    instance = Instance([Job("a", duration=30 * unit), Job("b", arrival=7 * unit, duration=30 * unit)], "1x1")
    start = (30 + gap) * unit
    rows = [Segment(0, ((0, 0),), 0, 30 * unit, 30 * unit), Segment(1, ((0, 0),), start, start + 30 * unit, 30 * unit)]
    return instance, Schedule.from_segments(instance, rows)


@pytest.mark.parametrize("unit", [0.1, 1e-12, 1e12 / 7])
def test_overlaps_are_judged_relative_to_the_segments(unit: float) -> None:
    assert check_schedule(*one_after_another(0, unit)) == []
    assert check_schedule(*one_after_another(-1e-9, unit)) == []
    assert rules_of(check_schedule(*one_after_another(-30e-6, unit))) == {"capacity"}


def test_whole_numbers_are_compared_exactly_however_large() -> None:
    huge = 2**51
    instance = Instance([Job("a", duration=huge), Job("b", duration=huge)], "1x1")
    good = Schedule.from_starts(instance, [0, huge])
    assert check_schedule(instance, good, value=3 * huge) == []
    for start, end, work, rule in [
        (huge - 1, 2 * huge - 1, huge, "capacity"),
        (huge, 2 * huge - 1, huge, "rate"),
        (huge, 2 * huge, huge - 1, "work"),
    ]:
        rows = [Segment(0, ((0, 0),), 0, huge, huge), Segment(1, ((0, 0),), start, end, work)]
        assert rules_of(check_schedule(instance, Schedule.from_segments(instance, rows))) == {rule}
    assert rules_of(check_schedule(instance, good, value=3 * huge - 1)) == {"value"}


def test_one_fraction_does_not_loosen_the_whole_numbers_around_it() -> None:
    long = 4 * 10**9  # a relative 1e-9 of it would be 4 s
    instance = Instance([Job("a", duration=long), Job("b", duration=0.5)], "2x1")
    rows = [Segment(0, ((0, 0),), 0, long, long - 1), Segment(1, ((1, 0),), 0, 0.5, 0.5)]
    assert rules_of(check_schedule(instance, Schedule.from_segments(instance, rows))) == {"work"}


def test_values_of_floats_may_miss_by_rounding_only() -> None:
    jobs = [Job(f"j{j}", arrival=1e8 + j * 0.7, duration=0.1 + j / 3, weight=1.1 + j) for j in range(50)]
    instance = Instance(jobs, "50x1")
    schedule = Schedule.from_starts(instance, instance.arrival)
    for name in OBJECTIVES.names():
        value = OBJECTIVES.get(name).of(instance, schedule.completion)
        assert check_schedule(instance, schedule, objective=name, value=value) == []
        exact = schedule_value(instance, schedule, name)
        assert abs(value - float(exact)) <= 1e-6 * float(exact)
        wrong = float(exact) * (1 + 1e-5) if exact else 1.0
        assert rules_of(check_schedule(instance, schedule, objective=name, value=wrong)) == {"value"}


def test_a_flow_time_may_miss_by_the_rounding_of_its_clock() -> None:
    # 1e8 + 0.1 is rounded by more than 1e-9 of 0.1, and 0.1 is what a producer would state.
    instance = Instance([Job("a", arrival=1e8, duration=0.1)], "1x1")
    schedule = Schedule.from_starts(instance, [1e8])
    assert abs(schedule_value(instance, schedule) - Fraction(0.1)) > Fraction(1, 10**10)
    assert check_schedule(instance, schedule, value=0.1) == []
    assert rules_of(check_schedule(instance, schedule, value=0.1 + 1e-6)) == {"value"}


def test_a_float_cannot_hold_every_large_total() -> None:
    instance = Instance([Job(f"j{j}", duration=2**50 + j, weight=2**20 + 1) for j in range(4)], "4x1")
    schedule = Schedule.from_starts(instance, [0, 0, 0, 0])
    name = "total_weighted_completion_time"
    total = schedule_value(instance, schedule, name)
    assert total == (2**20 + 1) * (4 * 2**50 + 6)
    assert float(total) != total
    assert check_schedule(instance, schedule, objective=name, value=float(total)) == []
    assert rules_of(check_schedule(instance, schedule, objective=name, value=total + 1)) == {"value"}


# ---------------------------------------------------------------------------------------------------- finer points


def test_contiguous_segments_on_the_same_gpus_are_one_run() -> None:
    instance = Instance([Job("a", gpus=2, duration=4)], "2x2")
    first, second = ((0, 1), (1, 0)), ((1, 0), (0, 1))
    whole = [Segment(0, first, 0, 1, 1), Segment(0, second, 1, 4, 3)]
    gap = [Segment(0, first, 0, 1, 1), Segment(0, second, 2, 5, 3)]
    moved = [Segment(0, first, 0, 1, 1), Segment(0, ((1, 0), (1, 1)), 1, 4, 3)]
    assert check_schedule(instance, Schedule.from_segments(instance, whole), preemptive=False) == []
    for segments, words in ((gap, "0 to 1 s) began (expected"), (moved, "began on other GPUs")):
        assert check_schedule(instance, Schedule.from_segments(instance, segments)) == []
        (violation,) = check_schedule(instance, Schedule.from_segments(instance, segments), preemptive=False)
        assert (violation.rule, violation.job, violation.segment) == ("preemption", "a", 1)
        assert words in violation.message


def test_an_empty_segment_is_no_run_and_occupies_nothing() -> None:
    instance = Instance([Job("a", duration=4)], "2x1")
    rows = [Segment(0, ((0, 0),), 0, 4, 4), Segment(0, ((1, 0),), 2, 2, 0), Segment(0, ((0, 0),), 1, 1, 0)]
    assert check_schedule(instance, Schedule.from_segments(instance, rows), preemptive=False) == []


def test_a_long_segment_clashes_with_everything_it_covers() -> None:
    # Neighbours in time would show only the first clash: the later ones follow a shorter segment.
    instance = Instance([Job("long", duration=10), *(Job(f"s{j}", duration=1) for j in range(3))], "1x1")
    rows = [Segment(0, ((0, 0),), 0, 10, 10), *(Segment(j, ((0, 0),), 2 * j, 2 * j + 1, 1) for j in (1, 2, 3))]
    violations = check_schedule(instance, Schedule.from_segments(instance, rows))
    assert [(v.rule, v.job) for v in violations] == [("capacity", "s0"), ("capacity", "s1"), ("capacity", "s2")]
    assert all("job 'long'" in violation.message for violation in violations)


def test_two_gangs_that_meet_on_many_gpus_are_one_violation() -> None:
    instance = Instance([Job("a", gpus=8, duration=2), Job("b", gpus=8, duration=2)], "1x8")
    gang = tuple((0, i) for i in range(8))
    violations = check_schedule(
        instance, Schedule.from_segments(instance, [Segment(j, gang, j, j + 2, 2) for j in (0, 1)])
    )
    assert len(violations) == 1


def test_overhead_and_idle_gpus_are_legal() -> None:
    instance = Instance([Job("a", duration=3)], "1x1")
    segment = Segment(0, ((0, 0),), 1, 6, 3)
    assert check_schedule(instance, Schedule.from_segments(instance, [segment])) == []


def test_a_schedule_of_another_instance_is_read_by_its_ids() -> None:
    made_for = Instance([Job("b", duration=2), Job("a", duration=1), Job("c", duration=4)], "3x1")
    instance = Instance([Job("a", duration=1), Job("b", duration=2)], "3x1")
    violations = check_schedule(instance, Schedule.from_starts(made_for, [0, 0, 0]))
    assert [violation.rule for violation in violations] == ["instance", "completeness"]
    assert "'c'" in violations[1].message


def test_job_numbers_beyond_the_instance_are_unknown_jobs() -> None:
    instance = Instance([Job("a", duration=1)], "2x1")
    rows = [Segment(0, ((0, 0),), 0, 1, 1), Segment(1, ((1, 0),), 0, 1, 1), Segment(-1, ((1, 0),), 1, 2, 1)]
    violations = check_schedule(instance, Schedule.from_segments(instance, rows))
    assert [(violation.rule, violation.segment) for violation in violations] == [
        ("completeness", 1),
        ("completeness", 2),
    ]


def test_an_instance_without_jobs() -> None:
    instance = Instance(pl.DataFrame(schema={"duration": pl.Float64}), "1x1")
    assert check_schedule(instance, Schedule.from_segments(instance, []), value=0) == []
    stray = Schedule.from_segments(instance, [Segment(0, ((0, 0),), 0, 1, 1)])
    assert rules_of(check_schedule(instance, stray)) == {"completeness"}


def test_numbers_near_the_end_of_floats_do_not_crash_the_referee() -> None:
    instance = Instance([Job("a", duration=1), Job("b", duration=1)], "1x1")
    rows = [Segment(0, ((0, 0),), -1e308, 1e308, 1e308), Segment(1, ((0, 0),), 1e308, 1.7e308, 1)]
    found = check_schedule(instance, Schedule.from_segments(instance, rows), value=1.0)
    assert rules_of(found) == {"arrival", "work", "value"}


def test_arrays_that_do_not_fit_together_are_an_input_error() -> None:
    instance = Instance([Job("a", duration=1), Job("b", duration=1)], "2x1")
    good = Schedule.from_starts(instance, [0, 0])
    for field, wrong in [
        ("work", good.work[:1]),
        ("gpu_offset", np.array([0, 2, 1])),
        ("gpu_offset", np.array([0, 1, 3])),
        ("gpu_index", good.gpu_index[:1]),
    ]:
        with pytest.raises(InputError):
            check_schedule(instance, dataclasses.replace(good, **{field: wrong}))


def test_unknown_objectives_and_schedules_without_a_value_are_input_errors() -> None:
    instance = Instance([Job("a", duration=1)], "1x1")
    with pytest.raises(InputError, match="total_flow_time"):
        check_schedule(instance, Schedule.from_starts(instance, [0]), objective="total_happiness", value=1)
    with pytest.raises(InputError, match="never runs"):
        schedule_value(instance, Schedule.from_segments(instance, []))


def test_the_objective_of_the_instance_is_meant_when_none_is_named() -> None:
    instance = Instance([Job("a", arrival=1, duration=1)], "1x1", objective="makespan")
    schedule = Schedule.from_starts(instance, [1])
    assert check_schedule(instance, schedule, value=2) == []
    assert rules_of(check_schedule(instance, schedule, objective="total_flow_time", value=2)) == {"value"}


def test_certificates_are_proved_anew(tmp_path: Path) -> None:
    instance = Instance([Job("a", duration=1)], "1x1")
    path = tmp_path / "certificate.json"
    Certificate("0" * 64, "makespan", "gang", "no-such-proof", Fraction(1)).save(path)
    verdict = check_file(path, instance)
    assert (verdict.kind, verdict.holds, verdict.violations[0].rule) == ("certificate", False, "instance")
    Certificate(instance.digest, "makespan", "gang", "no-such-proof", Fraction(1)).save(path)
    assert check_file(path, instance).violations[0].rule == "kind"


# ----------------------------------------------------------------------------------------------------------- scale


def large(jobs: int) -> tuple[Instance, Schedule]:
    """``jobs`` gangs of 8, one after another on 128 nodes: 8 (segment, GPU) pairs a job."""
    position = np.arange(jobs)
    table = pl.DataFrame({"gpus": np.full(jobs, 8), "duration": np.full(jobs, 0.7), "arrival": np.zeros(jobs)})
    instance = Instance(table, "128x8")
    start = (position // 128) * 0.7
    offset, node = np.arange(jobs + 1) * 8, np.repeat(position % 128, 8)
    index = np.tile(np.arange(8), jobs)
    return instance, Schedule(instance, position, start, start + 0.7, instance.duration, offset, node, index)


def test_many_pairs() -> None:
    instance, schedule = large(25_000)
    assert schedule.gpu_node.size == 200_000
    value = float(np.sum(schedule.completion))
    assert check_schedule(instance, schedule, preemptive=False, value=value) == []
    longer = dataclasses.replace(schedule, end=schedule.end + 0.1)
    found = check_schedule(instance, longer)
    assert rules_of(found) == {"capacity"}
    assert len(found) == LISTED + 1
    assert sum(violation.count for violation in found) == 25_000 - 128
    assert found[-1].message == f"... and {25_000 - 128 - LISTED} more violations of this rule"


def test_only_the_violations_that_are_listed_become_objects() -> None:
    """The number of Python calls does not depend on the number of segments: nothing is done one by one."""

    def calls(jobs: int) -> int:
        instance, schedule = large(jobs)
        broken = dataclasses.replace(schedule, start=schedule.start - 0.1, work=schedule.work + 0.5)
        assert instance.ids  # what an instance caches is not the referee's doing
        count = 0

        def tally(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(tally)
        try:
            found = check_schedule(instance, broken, preemptive=False)
        finally:
            sys.setprofile(None)
        assert len(rules_of(found)) == 4
        return count

    assert calls(8_000) < calls(1_000) + 100


# --- A schedule that keeps the rules and is better than a proven bound: the referee says so, in every class --------------


FLAGS: list[dict[str, Any]] = [{}, {"preemptive": False}, {"forking": True}, {"sharing": True}]


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize(
    "objective", ["total_flow_time", "makespan", "total_weighted_tardiness", "total_utility", "max_fair_slowdown"]
)
def test_a_hole_in_all_other_rules_shows(
    flags: dict[str, Any], objective: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job(name, duration=60.5, due=10.0) for name in "abc"]
    instance = Instance(jobs, "1x1", interference=1.5)
    rows = [{"job": name, "gpus": [[0, 0]], "start": 0, "end": 1, "work": 60.5} for name in "abc"]
    head = {"format": "optsched-schedule/1", "instance": instance.digest, "objective": objective}
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps({**head, **flags, "segments": rows}))
    blind = ClassRules(judge=lambda *_: Violations())
    monkeypatch.setattr(optsched.check.referee.RULES, "of", lambda name: blind)
    if flags.get("forking") and objective == "total_utility":
        assert check_file(path, instance).holds  # there is no bound on it for copies
        return
    (violation,) = check_file(path, instance).violations
    assert violation.rule == "value"
    assert "than any schedule of the class" in violation.message


@pytest.mark.parametrize("epoch", [0.0, 1.7e9, 1e12])
def test_an_optimal_schedule_is_not_better_than_its_bound(epoch: float, tmp_path: Path) -> None:
    """One after the other on one GPU is optimal; ends are rounded to the clock, and the bound is exact."""
    jobs = [Job(str(k), arrival=epoch, duration=0.1 + 0.01 * k) for k in range(200)]
    instance, now, rows = Instance(jobs, "1x1"), epoch, []
    for job in jobs:
        assert job.duration is not None
        rows.append({"job": job.id, "gpus": [[0, 0]], "start": now, "end": now + job.duration, "work": job.duration})
        now += job.duration
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps({"format": "optsched-schedule/1", "instance": instance.digest, "segments": rows}))
    assert check_file(path, instance).violations == ()
