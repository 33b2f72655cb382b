"""The referee where two jobs share a GPU: every forgery is named by its rule, and what is right to the last bit passes."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from check.touches import (
    Document,
    Tamper,
    broken_rules as rules_of,
    drop,
    repeat,
    set_field,
    several,
    state,
    unsay,
    write,
)
from optsched.check.referee import check_file, check_schedule
from optsched.errors import InputError
from optsched.evaluation.evaluate import evaluate
from optsched.io.sources import load
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Schedule, Segment, SharedSchedule

CLUSTER = Cluster((NodeGroup(count=2, gpus=2, gpu="V100", gpu_memory=16), NodeGroup(gpus=1, gpu="K80", gpu_memory=12)))
XI = Interference(
    3,
    ("A", "B", "C", "D", "net"),
    (
        (2, 2, None, 4, 2),  # A beside A, B, C, D, net
        (2, 4, 4, 2, 1.5),
        (2, 4, 2, 2, 2),  # C beside A is measured, A beside C is not: the two never share
        (2, 2, 2, 2, 2),
        (2, 2, 2, 2, 2),
    ),
)
INSTANCE = Instance(
    [
        Job("long", gpus=2, duration=20, model="A", gpu_memory=6),
        Job("left", arrival=2, duration=10, model="B", gpu_memory=5),
        Job("right", arrival=8, duration=6, model="D", gpu_memory=4),
        Job("host", duration=30, model="B", gpu_memory=8),
        Job("net", arrival=5, iterations=4, profile="net", batch_size=8),
        Job("stranger", gpus=2, duration=4, gpu_memory=3),
        Job("quiet", arrival=1, duration=5, model="C", gpu_memory=9),
        Job("fast", arrival=15, duration=2, model="C", gpu_types=("v100",), gpu_memory=1),
    ],
    CLUSTER,
    # C(8) = 16, C(4) = 12, C(2) = 10, C(1) = 9 s: an iteration takes 16, 24, 40, 72 s in 10, 6, 4, 3 bytes
    scalings={"net": Scaling(8, 1, memory=2, memory_per_sample=1)},
    interference=XI,
)
LONG, LEFT, RIGHT, HOST, NET, STRANGER, QUIET, FAST = range(8)
FLOW = 33 + 22 + 12 + 40 + 116 + 10 + 11 + 7


@pytest.fixture
def document() -> Document:
    """Worked out by hand: long runs 4 s alone, 4 beside B (2), 12 beside B and D (4), 4 beside B, and 9 alone: 20 s."""
    return {
        "format": "optsched-schedule/1",
        "instance": INSTANCE.digest,
        "policy": "by hand",
        "sharing": True,
        "preemptive": False,
        "objective": "total_flow_time",
        "value": FLOW,
        "segments": [
            {"job": "long", "gpus": [[0, 0], [0, 1]], "start": 0, "end": 33, "work": 20},
            {"job": "left", "gpus": [[0, 0]], "start": 4, "end": 24, "work": 10},
            {"job": "right", "gpus": [[0, 1]], "start": 8, "end": 20, "work": 6},
            {"job": "host", "gpus": [[1, 0]], "start": 0, "end": 40, "work": 30},
            # 30 s beside host are worth 15, 81 alone make 96: four iterations of 24 s
            {"job": "net", "gpus": [[1, 0]], "start": 10, "end": 121, "work": 4, "steps": 2},
            {"job": "stranger", "gpus": [[1, 1], [2, 0]], "start": 0, "end": 10, "work": 4},
            {"job": "quiet", "gpus": [[1, 1]], "start": 1, "end": 12, "work": 5},
            {"job": "fast", "gpus": [[1, 1]], "start": 20, "end": 22, "work": 2},
        ],
    }


broken_rules = partial(rules_of, instance=INSTANCE)


FORGERIES: dict[str, tuple[Tamper, set[str]]] = {
    "another instance": (state(instance="0" * 64), {"instance"}),
    "a job is missing": (drop(FAST), {"completeness"}),
    "a partner is missing": (drop(LEFT), {"completeness"}),
    "nobody runs": (state(segments=[]), {"completeness"}),
    "an unknown job": (set_field(FAST, job="nobody"), {"completeness"}),
    "a time that is no number": (set_field(FAST, end=math.nan), {"completeness"}),
    "before its arrival": (set_field(LEFT, start=1, end=24), {"arrival", "rate"}),  # long loses, too
    "before its arrival by a little": (set_field(FAST, start=14.999999, end=17), {"arrival"}),
    "a GPU too few": (set_field(LONG, gpus=[[0, 0]]), {"gang"}),
    "a GPU too many": (set_field(FAST, gpus=[[1, 1], [2, 0]]), {"gang", "type"}),
    "a GPU twice": (set_field(LONG, gpus=[[0, 0], [0, 0]]), {"capacity"}),
    "a GPU that does not exist": (set_field(FAST, gpus=[[2, 1]]), {"capacity"}),
    "a third job": (set_field(FAST, gpus=[[0, 1]], start=16, end=20), {"capacity", "memory", "rate"}),
    "a third job for a millionth of its stay": (
        set_field(QUIET, gpus=[[1, 0]], start=39.999999, end=48),
        {"capacity", "rate", "memory"},
    ),
    "a GPU of another type": (set_field(FAST, gpus=[[2, 0]]), {"type"}),
    "the whole batch where half fits": (set_field(NET, steps=1), {"memory"}),
    "the whole batch, unstated": (lambda d: d["segments"][NET].pop("steps") and None, {"memory"}),
    "steps of no sub-batch": (set_field(NET, steps=3), {"batch", "memory"}),
    "no steps at all": (set_field(NET, steps=0), {"batch", "memory"}),
    "negative steps": (set_field(NET, steps=-2), {"batch", "memory"}),
    "steps of a job without a batch": (set_field(HOST, steps=2), {"batch"}),
    "more steps than there was time for": (set_field(NET, steps=4), {"rate"}),
    "memory of both by a byte": (set_field(QUIET, gpus=[[1, 0]], end=9), {"memory", "rate"}),
    "kinds that never share": (set_field(FAST, gpus=[[0, 0]], start=24, end=30), {"memory", "rate"}),
    "too fast by 1e-6": (set_field(LONG, end=33 * (1 - 1e-6)), {"rate"}),
    "too fast by 1e-6, alone": (set_field(FAST, end=22 * (1 - 1e-6)), {"rate"}),
    "too fast by 1e-6, in iterations": (set_field(NET, end=121 * (1 - 1e-6)), {"rate"}),
    "one second short": (set_field(LONG, end=32), {"rate"}),
    "the partner ignored": (set_field(LEFT, end=14), {"rate"}),
    "the partner ignored, and slower for it": (several(set_field(RIGHT, end=14), set_field(LONG, end=31)), {"rate"}),
    # long with 2 instead of max(2, 4) from 8 to 20: 4 + 10 + 6 alone
    "the faster partner rules": (set_field(LONG, end=30), {"rate"}),
    # C beside a stranger runs at 3, as the stranger does: 1 + 9; at the 2 of C beside C it would be over sooner
    "another ratio": (set_field(STRANGER, end=7), {"rate"}),
    # host beside net runs at 1.5 and net at 2: exchanged, host takes until 50, and net has done 40 / 1.5 of 96 s by then
    "slow-downs exchanged": (several(set_field(HOST, end=50), set_field(NET, end=146 - 40 / 1.5)), {"rate"}),
    "the cost of sub-steps ignored": (set_field(NET, end=10 + 30 + 49), {"rate"}),
    "too much work": (set_field(FAST, work=3), {"rate", "work"}),
    "too little work": (set_field(LONG, work=19), {"work"}),
    "negative work": (set_field(FAST, work=-2), {"work"}),
    "an end before the start": (set_field(FAST, start=22, end=20), {"rate"}),
    "no time at all": (set_field(FAST, start=20, end=20), {"rate"}),
    "two runs": (several(set_field(FAST, end=21, work=1), repeat(FAST, start=30, end=31)), {"preemption"}),
    "two runs without a gap": (
        several(set_field(FAST, end=21, work=1), repeat(FAST, start=21, end=22)),
        {"preemption"},
    ),
    "two copies at once": (
        several(set_field(FAST, end=21, work=1), repeat(FAST, gpus=[[2, 0]], end=21)),
        {"preemption", "type", "gang"},
    ),
    "an empty second run": (repeat(FAST, end=20, work=0), {"preemption"}),
    "sharing unsaid": (unsay("sharing"), {"capacity", "batch"}),
    "a wrong value": (state(value=FLOW - 1), {"value"}),
}


PREEMPTED = {
    name: (FORGERIES[name][0], FORGERIES[name][1] - {"preemption"})
    for name in ("two runs", "an empty second run", "two copies at once")
}
PREEMPTED["more in two runs than they are worth"] = (
    several(set_field(FAST, end=21, work=1), repeat(FAST, start=30, end=30.5)),
    {"rate"},
)


@pytest.mark.parametrize("forgery", PREEMPTED)
def test_where_preemption_is_not_forbidden_a_job_may_run_in_pieces(
    forgery: str, document: Document, tmp_path: Path
) -> None:
    tamper, rules = PREEMPTED[forgery]
    several(tamper, unsay("preemptive"), unsay("value"))(document)
    assert broken_rules(document, tmp_path) == rules
    assert "preemption" in broken_rules(document, tmp_path, preemptive=False)


@pytest.mark.parametrize("pieces", [1, 20_000])
def test_one_tolerance_however_many_times_a_third_is_on_the_gpu(pieces: int) -> None:
    """c runs beside a and b for so little at a time that it may be rounding, 20,000 times: that is no rounding."""
    crumb, zero = 2.0**-30, 2.0**20
    jobs = [Job(name, arrival=zero, duration=1.0, model="A") for name in "ab"] + [
        Job("c", arrival=zero, duration=0.5, model="A")
    ]
    instance = Instance(jobs, "1x2", interference=1.0)
    rows = [Segment(0, ((0, 0),), zero, zero + 2.0, 1.0), Segment(1, ((0, 0),), zero, zero + 2.0, 1.0)]
    starts = [zero + k * 2.0**-14 + 2.0**-16 for k in range(pieces)]
    rows += [Segment(2, ((0, 0),), t, t + crumb, crumb) for t in starts]
    rest = 0.5 - pieces * crumb
    rows.append(Segment(2, ((0, 1),), zero + 4.0, zero + 4.0 + rest, rest))
    schedule = SharedSchedule.from_segments(instance, rows)
    schedule = dataclasses.replace(schedule, steps=np.ones(len(rows), dtype=np.int64))
    assert {v.rule for v in check_schedule(instance, schedule)} == ({"capacity"} if pieces > 1 else set())


def test_the_schedule_by_hand_is_exact(document: Document, tmp_path: Path) -> None:
    assert check_file(write(document, tmp_path), INSTANCE).violations == ()


@pytest.mark.parametrize("forgery", FORGERIES)
def test_every_forgery_is_named(forgery: str, document: Document, tmp_path: Path) -> None:
    tamper, rules = FORGERIES[forgery]
    tamper(document)
    if "value" not in rules:
        del document["value"]
    assert broken_rules(document, tmp_path) == rules


def test_whole_times_beside_a_slowdown_that_no_float_holds() -> None:
    # 1.3 is not 13/10: what partners leave of 16,150 s of work is rounded, though all times of the file are whole
    report = evaluate(load("cluster-week", limit=500, interference=1.3), ["sjf-ffs"])
    assert not report.runs[0].unfinished


def test_idling_on_gpus_is_legal(document: Document, tmp_path: Path) -> None:
    several(set_field(FAST, end=60), set_field(NET, end=121.5))(document)
    assert broken_rules(document | {"value": FLOW + 38.5}, tmp_path) == set()


def test_a_file_is_read_as_it_was_written(document: Document, tmp_path: Path) -> None:
    path = write(document, tmp_path)
    schedule = Schedule.load(path, INSTANCE)
    assert isinstance(schedule, SharedSchedule)
    assert schedule.steps.tolist() == [1, 1, 1, 1, 2, 1, 1, 1]
    for suffix in ("json", "parquet"):
        again = tmp_path / f"again.{suffix}"
        schedule.save(again, objective="total_flow_time", value=FLOW, preemptive=False)
        assert check_file(again, INSTANCE).violations == ()
        assert check_file(again, INSTANCE, refused=("forking",), preemptive=False).holds
        back = Schedule.load(again, INSTANCE)
        assert isinstance(back, SharedSchedule)
        assert back.steps.tolist() == schedule.steps.tolist()
        assert [*back.segments()] == [*schedule.segments()]
    assert "steps" in pl.read_parquet(again).columns
    rows = json.loads((tmp_path / "again.json").read_text())["segments"]
    assert [row.get("steps") for row in rows] == [None, None, None, None, 2, None, None, None]


def test_parquet_is_judged_by_its_steps(document: Document, tmp_path: Path) -> None:
    document["segments"][NET]["steps"] = 3
    schedule = Schedule.load(write(document, tmp_path), INSTANCE)
    schedule.save(tmp_path / "s.parquet")
    assert {v.rule for v in check_file(tmp_path / "s.parquet", INSTANCE).violations} == {"batch", "memory"}


@pytest.mark.parametrize("steps", [1.0, "2", True, None, [2], 2**70])
def test_steps_that_are_no_integer(steps: object, document: Document, tmp_path: Path) -> None:
    document["segments"][NET]["steps"] = steps
    with pytest.raises(InputError, match=r"segments\[4\].steps"):
        check_file(write(document, tmp_path), INSTANCE)
    if steps != 2**70:
        with pytest.raises(InputError, match="invalid"):
            Schedule.load(tmp_path / "schedule.json", INSTANCE)


def test_steps_of_a_parquet_file_with_gaps(document: Document, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    Schedule.load(write(document, tmp_path), INSTANCE).save(path)
    metadata = {"optsched-schedule": pl.read_parquet_metadata(path)["optsched-schedule"]}
    whole = pl.read_parquet(path)
    for column in (pl.Series("steps", [1, 1, 1, 1, 2, 1, 1, None]), pl.Series("steps", [1.0] * 8)):
        whole.with_columns(column).write_parquet(path, metadata=metadata)
        with pytest.raises(InputError, match="steps"):
            check_file(path, INSTANCE)
        with pytest.raises(InputError, match="steps"):
            Schedule.load(path, INSTANCE)


def test_arrays_that_do_not_fit_together() -> None:
    bare = SharedSchedule.from_segments(INSTANCE, [Segment(FAST, ((1, 1),), 20, 22, 2)])
    with pytest.raises(InputError, match="steps"):
        check_schedule(INSTANCE, bare)


def test_an_instance_that_does_not_say_what_sharing_costs(document: Document, tmp_path: Path) -> None:
    schedule = Schedule.load(write(document, tmp_path), INSTANCE)
    without = INSTANCE.replace(interference=None)
    document["instance"] = without.digest
    # there every GPU serves one job at a time, whatever a file says
    assert {v.rule for v in check_file(write(document, tmp_path), without).violations} == {"capacity", "batch"}
    assert {v.rule for v in check_schedule(without, schedule)} == {"instance", "capacity", "batch"}


def test_an_exclusive_schedule_is_judged_as_before(tmp_path: Path) -> None:
    """Alone on their GPUs jobs run at rate 1, whatever sharing would cost; steps are those of the whole batch."""
    jobs = [
        Job("a", duration=3, model="A"),
        Job("b", duration=2, model="C"),
        Job("n", iterations=2, profile="net", batch_size=8),
    ]
    instance = Instance(jobs, CLUSTER, scalings=INSTANCE.scalings, interference=XI)
    segments = [Segment(0, ((0, 0),), 0, 3, 3), Segment(1, ((0, 0),), 3, 5, 2), Segment(2, ((0, 1),), 0, 32, 2)]
    exclusive = Schedule.from_segments(instance, segments)
    assert check_schedule(instance, exclusive) == []
    exclusive.save(tmp_path / "s.json")
    assert type(Schedule.load(tmp_path / "s.json", instance)) is Schedule
    document = json.loads((tmp_path / "s.json").read_text())
    for steps, rules in ((1, set()), (2, {"batch"})):
        document["segments"][2]["steps"] = steps
        assert {v.rule for v in check_file(write(document, tmp_path), instance).violations} == rules
    both = Schedule.from_segments(instance, [segments[0], Segment(1, ((0, 0),), 2, 4, 2), segments[2]])
    assert {v.rule for v in check_schedule(instance, both)} == {"capacity"}
