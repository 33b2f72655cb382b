"""The referee against a slow one that is obviously right, and its tolerance, values, counts and speed."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.bounds.certificate import Certificate
from optsched.check.feasibility import LISTED, RULES, Violation
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.errors import InputError
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.objectives import OBJECTIVES
from optsched.problem.schedule import Schedule, Segment

# ---------------------------------------------------------------------------------------------- the slow referee


def slowly_broken(instance: Instance, segments: Sequence[Segment], preemptive: bool, forking: bool = False) -> set[str]:
    """The rules that are broken, by the definitions and in fractions: no arrays, no tolerance."""
    jobs, rules = instance.jobs, set()
    groups = [group for group in instance.cluster.nodes for _ in range(group.count)]
    rows = [
        dataclasses.replace(s, start=Fraction(s.start), end=Fraction(s.end), work=Fraction(s.work)) for s in segments
    ]
    for s in rows:
        job = jobs[s.job]
        real = [(node, i) for node, i in s.gpus if 0 <= node < len(groups) and 0 <= i < groups[node].gpus]
        used = [groups[node] for node, _ in real]
        broken = {
            "arrival": s.start < job.arrival,
            "gang": len(s.gpus) != job.gpus,
            "capacity": len(real) < len(s.gpus) or len(set(real)) < len(real),
            "type": job.gpu_types is not None and any(g.gpu.lower() not in job.gpu_types for g in used),
            "memory": any((job.gpu_memory or 0) > (g.gpu_memory or float("inf")) for g in used),
            "rate": s.end < s.start or s.work > s.end - s.start,
            "work": s.work < 0,
        }
        rules |= {rule for rule, is_broken in broken.items() if is_broken}
    for a, b in combinations(rows, 2):
        lengths = a.end > a.start and b.end > b.start
        if lengths and a.start < b.end and b.start < a.end:
            rules |= {"gang"} if a.job == b.job and not forking else set()
            rules |= {"capacity"} if set(a.gpus) & set(b.gpus) else set()
    for j, job in enumerate(jobs):
        mine = sorted((s for s in rows if s.job == j), key=lambda s: (s.start, s.end))
        if not mine:
            rules.add("completeness")
        elif sum(s.work for s in mine) != Fraction(job.duration or 0):
            rules.add("work")
        ran = [s for s in mine if s.end > s.start or s.work > 0]
        if not preemptive and any(a.end != b.start or sorted(a.gpus) != sorted(b.gpus) for a, b in pairwise(ran)):
            rules.add("preemption")
    return rules


# ------------------------------------------------------------------------------------------- random valid schedules

CLUSTERS = [
    Cluster.machines(2),
    Cluster((NodeGroup(gpus=2), NodeGroup(gpus=1), NodeGroup(gpus=2))),
    Cluster((NodeGroup(count=2, gpus=2, gpu="V100", gpu_memory=32), NodeGroup(gpus=3, gpu="K80", gpu_memory=12))),
]


@st.composite
def valid_schedules(draw: st.DrawFn) -> tuple[Instance, list[Segment]]:
    """A small instance in whole seconds, and a feasible preemptive schedule of it, second by second."""
    cluster = draw(st.sampled_from(CLUSTERS))
    random = Random(draw(st.integers(0, 2**32)))
    jobs = []
    for j in range(draw(st.integers(1, 5))):
        types = random.choice([None, ("v100",)]) if len(cluster.nodes) == 2 else None
        memory = random.choice([None, 20, 12]) if len(cluster.nodes) == 2 else None
        offered = sum(g.count * g.gpus for g in cluster.nodes if g.suits(types, memory))
        gpus, arrival, duration = random.randint(1, offered), random.randint(0, 4), random.randint(1, 4)
        weight, due = random.randint(0, 3), random.choice([None, 6])
        limits = {"gpu_types": types, "gpu_memory": memory}
        jobs.append(Job(f"j{j}", arrival, gpus, duration, weight=weight, due=due, **limits))
    instance = Instance(jobs, cluster)
    gpus = [(node, i) for node, count in enumerate(cluster.node_gpus.tolist()) for i in range(count)]
    left = [int(job.duration or 0) for job in jobs]
    segments: list[Segment] = []
    second = 0
    while any(left):
        free = set(gpus)
        for j in random.sample(range(len(jobs)), len(jobs)):
            suitable = [gpu for gpu in gpus if gpu in free and instance.eligible(j)[gpu[0]]]
            if not left[j] or jobs[j].arrival > second or len(suitable) < jobs[j].gpus or random.random() < 0.2:
                continue
            last = next((s for s in reversed(segments) if s.job == j), None)
            stays = last is not None and last.end == second and free >= set(last.gpus) and random.random() < 0.7
            gang = last.gpus if last and stays else tuple(random.sample(suitable, jobs[j].gpus))
            if last and stays and random.random() < 0.8:
                segments.remove(last)
                segments.append(Segment(j, gang, last.start, second + 1, last.work + 1))
            else:
                segments.append(Segment(j, gang, second, second + 1, 1))
            free -= set(gang)
            left[j] -= 1
        second += 1
    return instance, random.sample(segments, len(segments))


def rules_of(violations: Sequence[Violation]) -> set[str]:
    return {violation.rule for violation in violations}


def mutated(data: st.DataObject, instance: Instance, segments: list[Segment]) -> list[Segment]:
    """The same schedule with one thing changed, legally or not."""
    s = data.draw(st.integers(0, len(segments) - 1))
    row, others = segments[s], segments[:s] + segments[s + 1 :]
    step = data.draw(st.sampled_from([-3, -1, -0.5, -(2.0**-20), 2.0**-20, 0.5, 1, 3]))
    gpu = data.draw(st.tuples(st.integers(-1, instance.cluster.node_count), st.integers(-1, 3)))
    changes: dict[str, Any] = {
        "drop": None,
        "repeat": [row, row],
        "start": {"start": row.start + step},
        "end": {"end": row.end + step},
        "work": {"work": row.work + step},
        "shift": {"start": row.start + step, "end": row.end + step},
        "swap times": {"start": row.end, "end": row.start},
        "empty": {"end": row.start},
        "job": {"job": data.draw(st.integers(0, instance.n - 1))},
        "gpu": {"gpus": (gpu, *row.gpus[1:])},
        "more": {"gpus": (*row.gpus, gpu)},
        "fewer": {"gpus": row.gpus[1:]},
        "split": [
            dataclasses.replace(row, end=row.start + 0.5, work=0.5),
            dataclasses.replace(row, start=row.start + 0.5, work=row.work - 0.5, gpus=row.gpus[::-1]),
        ],
    }
    change = changes[data.draw(st.sampled_from(sorted(changes)))]
    if change is None:
        return others
    return [*others, *(change if isinstance(change, list) else [dataclasses.replace(row, **change)])]


@given(valid_schedules())
def test_random_valid_schedules_are_accepted(case: tuple[Instance, list[Segment]]) -> None:
    instance, segments = case
    assert slowly_broken(instance, segments, preemptive=True) == set()
    assert check_schedule(instance, Schedule.from_segments(instance, segments)) == []


@settings(max_examples=examples(400))
@given(valid_schedules(), st.booleans(), st.booleans(), st.data())
def test_one_change_is_judged_as_the_slow_referee_judges_it(
    case: tuple[Instance, list[Segment]], preemptive: bool, forking: bool, data: st.DataObject
) -> None:
    instance, segments = case
    segments = mutated(data, instance, forked_once(data, instance, segments) if forking else segments)
    schedule = Schedule.from_segments(instance, segments)
    found = check_schedule(instance, schedule, preemptive=preemptive, forking=forking)
    assert rules_of(found) == slowly_broken(instance, segments, preemptive, forking)
    assert [violation.rule for violation in found] == sorted(rules_of_all(found), key=RULES.index)


def forked_once(data: st.DataObject, instance: Instance, segments: list[Segment]) -> list[Segment]:
    """One segment is done by two copies at once, in half the time, where other GPUs are free for the second."""
    s = data.draw(st.integers(0, len(segments) - 1))
    row, half = segments[s], (segments[s].start + segments[s].end) / 2
    held = {gpu for other in segments if other.start < half and row.start < other.end for gpu in other.gpus}
    nodes = enumerate(instance.cluster.node_gpus.tolist())
    free = [(v, i) for v, size in nodes for i in range(size) if instance.eligible(row.job)[v] and (v, i) not in held]
    if len(free) < len(row.gpus):
        return segments
    copies = [dataclasses.replace(row, end=half, work=row.work / 2, gpus=gpus) for gpus in (row.gpus, tuple(free))]
    copies[1] = dataclasses.replace(copies[1], gpus=copies[1].gpus[: len(row.gpus)])
    return [*segments[:s], *copies, *segments[s + 1 :]]


@given(valid_schedules(), st.data())
def test_copies_at_once_are_legal_in_a_forking_schedule_only(
    case: tuple[Instance, list[Segment]], data: st.DataObject
) -> None:
    instance, segments = case
    forked = forked_once(data, instance, segments)
    schedule = Schedule.from_segments(instance, forked)
    assert check_schedule(instance, schedule, forking=True) == []
    assert slowly_broken(instance, forked, preemptive=True, forking=True) == set()
    assert rules_of(check_schedule(instance, schedule)) == ({"gang"} if len(forked) > len(segments) else set())


def two_copies() -> tuple[Instance, list[Segment]]:
    """A job of 6 s on 2 GPUs, done by two copies on two nodes in 3 s."""
    instance = Instance([Job("a", gpus=2, duration=6)], "2x2")
    return instance, [Segment(0, ((v, 0), (v, 1)), 0, 3, 3) for v in (0, 1)]


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({}, set()),
        ({"gpus": ((1, 0),)}, {"gang"}),  # a copy has the whole gang
        ({"gpus": ((0, 1), (1, 1))}, {"capacity"}),  # copies share no GPU
        ({"work": 2}, {"work"}),
        ({"work": 4, "end": 4}, {"work"}),  # two copies do more than was asked for
        ({"work": 4}, {"rate", "work"}),
        ({"start": -1, "end": 2}, {"arrival"}),
    ],
)
def test_a_forking_schedule_keeps_every_other_rule(changes: dict[str, Any], rules: set[str]) -> None:
    instance, (first, second) = two_copies()
    schedule = Schedule.from_segments(instance, [first, dataclasses.replace(second, **changes)])
    assert rules_of(check_schedule(instance, schedule, forking=True)) == rules


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_a_file_says_that_its_schedule_forks(tmp_path: Path, suffix: str) -> None:
    instance, rows = two_copies()
    schedule, path = Schedule.from_segments(instance, rows), tmp_path / f"s{suffix}"
    schedule.save(path, forking=True, objective="makespan", value=3)
    assert check_file(path, instance).holds
    assert rules_of(check_file(path, instance, forking=False).violations) == {"gang"}
    for stated in ({}, {"forking": False}):
        schedule.save(path, **stated)
        assert rules_of(check_file(path, instance).violations) == {"gang"}
    schedule.save(path, forking=True, preemptive=False)
    assert rules_of(check_file(path, instance).violations) == {"preemption"}
    schedule.save(path, forking="yes")
    with pytest.raises(InputError, match=r"forking = 'yes': invalid \(expected: true or false\)"):
        check_file(path, instance)


def rules_of_all(violations: Sequence[Violation]) -> list[str]:
    return [violation.rule for violation in violations]


@given(valid_schedules(), st.sampled_from(sorted(OBJECTIVES.names())))
def test_values_agree_with_the_objectives(case: tuple[Instance, list[Segment]], objective: str) -> None:
    # The two are written apart; each is the other's second opinion.
    instance, segments = case
    schedule = Schedule.from_segments(instance, segments)
    value = schedule_value(instance, schedule, objective)
    assert value == OBJECTIVES.get(objective).exact_of(instance, schedule.completion.tolist())
    assert check_schedule(instance, schedule, objective=objective, value=value) == []
    for wrong in (value + 1, value - Fraction(1, 10**28), float("nan"), float("inf")):
        assert rules_of(check_schedule(instance, schedule, objective=objective, value=wrong)) == {"value"}


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
