"""Where a job has no speed it may not stay; what its segments overdraw is forgiven once, whatever the epoch."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import few
from hypothesis import given, strategies as st

from optsched.check.feasibility import by_key_and_start, overlaps_of
from optsched.check.referee import check_file, check_schedule
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.schedule import Schedule, Segment, SharedSchedule
from optsched.problem.throughputs import Throughput, Throughputs

CLUSTER = Cluster((NodeGroup(gpus=2, gpu="V100"), NodeGroup(gpus=2, gpu="K80"), NodeGroup(gpus=2, gpu="T4")))
TABLE = Throughputs({("m", "V100", 1): Throughput(1.0), ("m", "K80", 1): Throughput(0.0)})  # and of a T4 nothing
FLAGS: list[dict[str, Any]] = [{}, {"preemptive": False}, {"forking": True}, {"sharing": True}, {"elastic": True}]


def tabled() -> Instance:
    jobs = [Job(name, iterations=1000.0, profile="m") for name in "ab"]
    return Instance(jobs, CLUSTER, throughputs=TABLE, interference=1.5)


def rules(instance: Instance, segments: list[dict[str, Any]], folder: Path, **stated: Any) -> set[str]:
    path = folder / "schedule.json"
    head = {"format": "optsched-schedule/1", "instance": instance.digest}
    path.write_text(json.dumps({**head, "segments": segments, **stated}))
    return {violation.rule for violation in check_file(path, instance).violations}


def segment(job: str, gpu: list[int], start: float, end: float, work: float) -> dict[str, Any]:
    return {"job": job, "gpus": [gpu], "start": start, "end": end, "work": work}


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("node", [1, 2], ids=["zero", "nothing"])
@pytest.mark.parametrize("length", few([0.0, 1e-3, 1.0, 5000.0], 2))
def test_no_speed_is_not_infinite_speed(flags: dict[str, Any], node: int, length: float, tmp_path: Path) -> None:
    """1,000 iterations in a millisecond where the table says 0, or nothing: once a schedule that held."""
    segments = [segment(job, [node, k], 0.0, length, 1000.0) for k, job in enumerate("ab")]
    assert {"type", "rate"} <= rules(tabled(), segments, tmp_path, **flags)
    legal = [segment(job, [0, k], 0.0, 1000.0, 1000.0) for k, job in enumerate("ab")]
    assert rules(tabled(), legal, tmp_path, **flags) == set()


def test_in_memory_as_well() -> None:
    instance = tabled()
    rows = [Segment(job=j, gpus=((1, j),), start=0.0, end=0.001, work=1000.0) for j in range(2)]
    schedule = Schedule.from_segments(instance, rows, "forged")
    for name in ("gang", "gang-nonpreemptive", "forking", "elastic"):
        assert {"type", "rate"} <= {v.rule for v in check_schedule(instance, schedule, schedule_class=name)}
    columns = {each.name: getattr(schedule, each.name) for each in fields(Schedule)}
    shared = SharedSchedule(**columns, steps=np.ones(2, dtype=np.int64))
    assert {"type", "rate"} <= {v.rule for v in check_schedule(instance, shared)}


def test_where_a_gang_is_only_fast_together_it_may_not_be_spread(tmp_path: Path) -> None:
    table = Throughputs({("m", "V100", 2): Throughput(2.0, 0.0)})
    cluster = Cluster((NodeGroup(gpus=2, count=2, gpu="V100"),))
    jobs = [Job("a", gpus=2, duration=5.0), Job("b", gpus=2, duration=5.0)]
    instance = Instance(jobs, cluster, throughputs=table)
    rows = [{"job": "a", "gpus": [[0, 0], [1, 0]], "start": 0, "end": 5, "work": 5}]
    rows.append({"job": "b", "gpus": [[0, 1], [1, 1]], "start": 0, "end": 5, "work": 5})
    assert rules(instance, rows, tmp_path) == set()  # a duration runs anywhere


# --- one tolerance a job -------------------------------------------------------------------------------------------------


def crumbs(epoch: float, seconds: float, count: int, ticks: float, ulps: float, jobs: int) -> tuple[Instance, Any]:
    """Jobs in ``count`` segments ``ticks`` ulp long, each with the work of ``ulps`` more than that."""
    tick = math.ulp(epoch)
    instance = Instance([Job(str(j), arrival=epoch, duration=seconds) for j in range(jobs)], "1x1")
    rows = []
    for j in range(jobs):
        now, left = epoch, seconds
        for _ in range(count):
            work = min((ticks + ulps) * tick, left)
            rows.append(segment(str(j), [0, 0], now, now + ticks * tick, work))
            now, left = now + ticks * tick, left - work
        if left > 0:
            rows.append(segment(str(j), [0, 0], now, now + left, left))
    return instance, rows


@pytest.mark.parametrize(
    ("epoch", "seconds", "count", "ticks", "ulps", "jobs"),
    [
        pytest.param(1.6e12, 60.0, 65_536, 0, 7.5, 2, marks=pytest.mark.study),  # both once finished with flow 0
        (1.6e12, 60.0, 4_096, 0, 7.5, 2),
        (1e9, 1.0, 1_122, 0, 7.5, 1),  # once stopped a millisecond short
        (1e9, 1.0, 1_122, 1, 7.5, 1),
        (1.7e9, 10.0, 2_000, 4, 7.5, 1),
        (1.7e9, 10.0, 2_000, 100, 7.5, 1),
        (0.3, 1.0, 5_000, 1_000_000, 7.5e6, 1),
    ],
)
def test_many_small_segments_win_nothing(
    epoch: float, seconds: float, count: int, ticks: float, ulps: float, jobs: int, tmp_path: Path
) -> None:
    instance, rows = crumbs(epoch, seconds, count, ticks, ulps, jobs)
    assert "rate" in rules(instance, rows, tmp_path)


def test_an_empty_segment_does_no_work(tmp_path: Path) -> None:
    instance = Instance([Job("a", duration=1.5), Job("b", arrival=1e12, duration=1e-5)], "1x1")
    rows = [
        segment("a", [0, 0], 0.25, 1.75, 1.5),
        segment("b", [0, 0], 1e12, 1e12, 1e-5),
    ]  # b: less than the clock tells
    assert rules(instance, rows, tmp_path) == set()
    assert rules(instance, [*rows, segment("a", [0, 0], 0.125, 0.125, 0.0)], tmp_path) == set()
    moved = [segment("a", [0, 0], 0.25, 1.75, 1.5 - 1e-9), segment("a", [0, 0], 0.125, 0.125, 1e-9), rows[1]]
    assert rules(instance, moved, tmp_path) == {"rate"}


def test_overlaps_add_up(tmp_path: Path) -> None:
    epoch, count = 1.7e9, 400
    tick = math.ulp(epoch)
    instance = Instance([Job(name, arrival=epoch, duration=16 * count * tick) for name in "ab"], "1x1")
    rows = [
        segment(name, [0, 0], epoch + (16 * k + begin) * tick, epoch + (16 * k + begin + 16) * tick, 16 * tick)
        for k in range(count)
        for name, begin in (("a", 0), ("b", 8))
    ]
    assert "capacity" in rules(instance, rows, tmp_path)


def test_gaps_add_up_where_preemption_is_forbidden(tmp_path: Path) -> None:
    epoch, count = 1.7e9, 400
    tick = math.ulp(epoch)
    instance = Instance([Job("a", arrival=epoch, duration=4 * count * tick)], "1x1")
    rows = [segment("a", [0, 0], epoch + 8 * k * tick, epoch + (8 * k + 4) * tick, 4 * tick) for k in range(count)]
    assert rules(instance, rows, tmp_path) == set()
    assert rules(instance, rows, tmp_path, preemptive=False) == {"preemption"}


@pytest.mark.parametrize("epoch", [0.0, 1e6, 1.7e9, 1e12])
@pytest.mark.parametrize("unit", [2.0**-10, 1.0, 2.0**12])
@pytest.mark.parametrize("overdrawn", [0.0, 2e-3, 0.25])
def test_the_verdict_does_not_depend_on_epoch_and_unit(
    epoch: float, unit: float, overdrawn: float, tmp_path: Path
) -> None:
    """Numbers that the clock holds at every epoch, and a fault that it can tell at every one."""
    if overdrawn * unit < 100 * math.ulp(epoch) and overdrawn:
        pytest.skip("the clock cannot tell this at that epoch")
    lengths = [(k % 7 + 1) * unit for k in range(300)]
    need = math.fsum(lengths)
    instance = Instance([Job("a", arrival=epoch, duration=need)], "1x2")
    now, rows = epoch, []
    for k, length in enumerate(lengths):
        short = overdrawn * unit if k == 150 else 0.0
        rows.append(segment("a", [0, k % 2], now, now + length - short, length))
        now += length + unit
    assert rules(instance, rows, tmp_path) == ({"rate"} if overdrawn else set())


def test_a_schedule_put_on_a_late_clock_still_holds(tmp_path: Path) -> None:
    """Every end is rounded to the clock of the log: 500 segments with 0.1 s of work each at a Unix epoch."""
    epoch, count = 1.7e9, 500
    instance = Instance([Job("a", arrival=epoch, duration=0.1 * count)], "1x1")
    rows = [segment("a", [0, 0], epoch + 0.3 * k, epoch + (0.3 * k + 0.1), 0.1) for k in range(count)]
    assert rules(instance, rows, tmp_path) == set()


def test_a_stated_value_is_not_forgiven_by_its_epoch(tmp_path: Path) -> None:
    """1e-9 of the sum of completion times at a Unix epoch is 3.4 s; once that much was forgiven."""
    epoch = 1.7e9
    instance = Instance([Job(name, arrival=epoch, duration=1.5) for name in "ab"], "1x2")
    rows = [segment(name, [0, k], epoch, epoch + 1.5, 1.5) for k, name in enumerate("ab")]
    value = 2 * (epoch + 1.5)
    assert rules(instance, rows, tmp_path, objective="total_completion_time", value=value) == set()
    assert rules(instance, rows, tmp_path, objective="total_completion_time", value=value - 2.0) == {"value"}


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2**16]), st.integers(0, 5), st.integers(0, 3)), max_size=8))
def test_overlaps_are_those_of_all_pairs_whatever_the_keys(rows: list[tuple[int, int, int]]) -> None:
    key, start, length = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    begin, end = start.astype(np.float64), (start + length).astype(np.float64)
    later, earlier, both, _ = overlaps_of(key, begin, end)
    assert by_key_and_start(key, begin).tolist() == np.lexsort((begin, key)).tolist()
    clashes = [
        i
        for i in range(key.size)
        if any(
            key[k] == key[i] and max(begin[k], begin[i]) < min(end[k], end[i]) and (begin[k], k) < (begin[i], i)
            for k in range(key.size)
        )
    ]
    assert sorted(later.tolist()) == clashes
    assert all(key[i] == key[k] and seconds > 0 for i, k, seconds in zip(later, earlier, both, strict=True))
