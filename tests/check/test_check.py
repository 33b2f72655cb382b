"""The referee against a slow one that is obviously right, and its tolerance, values, counts and speed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.check.context import RULES, Violation
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
        "nothing": {},
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


@settings(max_examples=examples(400))
@given(valid_schedules(), st.booleans(), st.booleans(), st.data())
def test_one_change_is_judged_as_the_slow_referee_judges_it(
    case: tuple[Instance, list[Segment]], preemptive: bool, forking: bool, data: st.DataObject
) -> None:
    instance, segments = case
    forks = data.draw(st.booleans())
    segments = mutated(data, instance, forked_once(data, instance, segments) if forks else segments)
    schedule = Schedule.from_segments(instance, segments)
    found = check_schedule(instance, schedule, schedule_class="forking" if forking else None, preemptive=preemptive)
    assert rules_of(found) == slowly_broken(instance, segments, preemptive, forking)
    order = [RULES.index(violation.rule) for violation in found]
    assert order == sorted(order)


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
    assert rules_of(check_schedule(instance, schedule, schedule_class="forking")) == rules


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_a_file_says_that_its_schedule_forks(tmp_path: Path, suffix: str) -> None:
    instance, rows = two_copies()
    schedule, path = Schedule.from_segments(instance, rows), tmp_path / f"s{suffix}"
    schedule.save(path, forking=True, objective="makespan", value=3)
    assert check_file(path, instance).holds
    assert rules_of(check_file(path, instance, refused=("forking",)).violations) == {"gang"}
    for stated in ({}, {"forking": False}):
        schedule.save(path, **stated)
        assert rules_of(check_file(path, instance).violations) == {"gang"}
    schedule.save(path, forking=True, preemptive=False)
    assert rules_of(check_file(path, instance).violations) == {"preemption"}
    schedule.save(path, forking="yes")
    with pytest.raises(InputError, match=r"forking = 'yes': invalid \(expected: true or false\)"):
        check_file(path, instance)


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


@pytest.mark.parametrize(
    ("starts", "rules"),
    [
        ({"a": 0, "b": 10, "c": 3}, []),
        ([0, 10, 3], []),
        ({"a": 0, "b": 5, "c": 3}, ["capacity"]),
        ({"a": 0, "b": 10, "c": 2}, ["arrival"]),
        ({"a": 0, "b": 10}, ["completeness"]),
        ({"a": 0, "b": 10, "x": 3}, ["completeness", "completeness"]),
        ([0, 10, 3, 7], ["completeness"]),
    ],
)
def test_a_file_of_starts_is_judged(tmp_path: Path, starts: Any, rules: list[str]) -> None:
    instance = Instance([Job("a", duration=10), Job("b", gpus=2, duration=5), Job("c", 3, duration=1)], "1x2")
    path = tmp_path / "starts.json"
    path.write_text(json.dumps({"starts": starts}))
    assert [found.rule for found in check_file(path, instance).violations] == rules
    path.write_text(json.dumps({"starts": starts, "value": 26}))
    stated = [found.rule for found in check_file(path, instance).violations]
    assert stated == rules or stated == [*rules, "value"]
    with pytest.raises(InputError, match="jobs are restricted to some nodes"):
        check_file(path, Instance([Job("a", duration=1, gpu_types=("V",))], "1x1:K+1x1:V"))


@pytest.mark.parametrize("start", [None, True, "3", [3], 1e999, 10**400])
def test_a_start_that_is_no_number_is_refused(tmp_path: Path, start: Any) -> None:
    path = tmp_path / "starts.json"
    path.write_text(json.dumps({"starts": {"a": start}}))
    with pytest.raises(InputError, match=r"starts: a = .*invalid \(expected: a number of seconds\)"):
        check_file(path, Instance([Job("a", duration=1)], "1x1"))
