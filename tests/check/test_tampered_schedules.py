"""Every way to forge a schedule file: the referee names the rule that is broken, or says why the file is unreadable."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

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
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.schedule import Schedule, Segment

CLUSTER = Cluster(
    (NodeGroup(count=2, gpus=2, gpu="V100", gpu_memory=32e9), NodeGroup(gpus=2, gpu="K80", gpu_memory=12e9))
)
INSTANCE = Instance(
    [
        Job("wide", arrival=0, gpus=3, duration=4),  # spans nodes
        Job("short", arrival=1, gpus=1, duration=5, weight=3, due=6),  # preempted, resumes elsewhere
        Job("fast", arrival=2, gpus=2, duration=2, gpu_types=("v100",)),
        Job("fat", arrival=0, gpus=1, duration=3, gpu_memory=20e9, weight=2),
        Job("late", arrival=10, gpus=4, duration=1),
    ],
    CLUSTER,
)
WIDE, SHORT_1, SHORT_2, FAST, FAT, LATE = range(6)
FLOW = 4 + 8 + 5 + 3 + 1


@pytest.fixture
def document() -> Document:
    """A valid schedule file with everything that can be stated in it."""
    return {
        "format": "optsched-schedule/1",
        "instance": INSTANCE.digest,
        "policy": "by hand",
        "objective": "total_flow_time",
        "value": FLOW,
        "segments": [
            {"job": "wide", "gpus": [[0, 0], [0, 1], [2, 0]], "start": 0, "end": 4, "work": 4},
            {"job": "short", "gpus": [[2, 1]], "start": 1, "end": 4, "work": 3},
            {"job": "short", "gpus": [[1, 1]], "start": 7, "end": 9, "work": 2},
            {"job": "fast", "gpus": [[0, 1], [1, 0]], "start": 5, "end": 7, "work": 2},
            {"job": "fat", "gpus": [[1, 0]], "start": 0, "end": 3, "work": 3},
            {"job": "late", "gpus": [[0, 0], [0, 1], [1, 0], [2, 0]], "start": 10, "end": 11, "work": 1},
        ],
    }


def in_memory(document: Document) -> Schedule:
    rows = [{**row, "job": INSTANCE.index[row["job"]]} for row in document["segments"]]
    return Schedule.from_segments(INSTANCE, [Segment(**row) for row in rows], document["policy"])


broken_rules = partial(rules_of, instance=INSTANCE)
TOGETHER = set_field(FAT, gpus=[[0, 1]])
MORE, LESS = ({"start": 3 + k, "end": 4 + k, "work": 1 - 2 * k} for k in (0, 1))


TAMPERINGS: dict[str, tuple[Tamper, set[str]]] = {
    "two jobs on a GPU": (TOGETHER, {"capacity"}),
    "two jobs on a GPU for one second": (
        several(set_field(FAST, start=3, end=5), set_field(SHORT_2, start=6, end=8), unsay("value")),
        {"capacity"},
    ),
    "a segment twice": (repeat(LATE), {"capacity", "gang", "work"}),
    "a GPU twice in a segment": (set_field(WIDE, gpus=[[0, 0], [0, 0], [2, 0]]), {"capacity"}),
    "a node that does not exist": (set_field(FAT, gpus=[[3, 0]]), {"capacity"}),
    "a GPU that does not exist": (set_field(FAT, gpus=[[1, 2]]), {"capacity"}),
    "a negative node": (set_field(FAT, gpus=[[-2, 0]]), {"capacity"}),
    "a negative GPU": (set_field(SHORT_1, gpus=[[2, -1]]), {"capacity"}),
    "too little memory": (set_field(FAT, gpus=[[2, 1]], start=4, end=7), {"memory", "value"}),
    "a gang too small": (set_field(WIDE, gpus=[[0, 0], [0, 1]]), {"gang"}),
    "a gang too large": (
        several(set_field(WIDE, gpus=[[0, 0], [0, 1], [2, 0], [2, 1]]), set_field(SHORT_1, gpus=[[1, 1]])),
        {"gang"},
    ),
    "no GPUs": (set_field(LATE, gpus=[]), {"gang"}),
    "a job in two places at once": (several(set_field(SHORT_1, start=7, end=10), state(value=FLOW + 1)), {"gang"}),
    "before the arrival": (several(set_field(LATE, start=9, end=10), unsay("value")), {"arrival"}),
    "half a second before the arrival": (several(set_field(SHORT_1, start=0.5, end=3.5), unsay("value")), {"arrival"}),
    "too little work": (set_field(FAT, work=2), {"work"}),
    "work in negative": (several(repeat(FAT, **MORE), repeat(FAT, **LESS), state(value=FLOW + 2)), {"work"}),
    "a segment shorter, with less work": (several(set_field(SHORT_2, end=8, work=1), state(value=FLOW - 1)), {"work"}),
    "part of a job dropped": (several(drop(SHORT_2), state(value=FLOW - 5)), {"work"}),
    "the segment of another job": (several(set_field(SHORT_2, job="fat"), unsay("value")), {"work"}),
    "too much work": (set_field(FAT, work=4, end=4), {"work", "value"}),
    "faster than rate 1": (set_field(FAT, end=2), {"rate", "value"}),
    "faster here, slower there": (several(set_field(SHORT_1, work=4), set_field(SHORT_2, work=1)), {"rate"}),
    "a segment of no length": (set_field(FAT, end=0), {"rate", "value"}),
    "an end before the start": (set_field(LATE, start=12), {"rate"}),
    "preempted though it must not be": (state(preemptive=False), {"preemption"}),
    "a GPU type not allowed": (set_field(FAST, gpus=[[0, 1], [2, 0]]), {"type"}),
    "only types not allowed": (set_field(FAST, gpus=[[2, 1], [2, 0]]), {"type"}),
    "an unknown job": (set_field(LATE, job="latte"), {"completeness"}),
    "a job missing": (drop(FAST), {"completeness"}),
    "no segments": (state(segments=[]), {"completeness"}),
    "a start that is not a number": (set_field(FAT, start=math.nan), {"completeness"}),
    "an end at infinity": (set_field(FAT, end=math.inf), {"completeness"}),
    "work that is not a number": (set_field(FAT, work=math.nan), {"completeness"}),
    "an end beyond all floats": (set_field(FAT, end=10**400), {"completeness"}),
    "the value of another schedule": (state(value=FLOW - 1), {"value"}),
    "a value almost right": (state(value=FLOW - 1e-9), {"value"}),
    "a value as a wrong fraction": (state(value=f"{3 * FLOW + 1}/3"), {"value"}),
    "a value that is not a number": (state(value=math.nan), {"value"}),
    "the value of another objective": (state(objective="makespan"), {"value"}),
    "an unknown objective": (state(objective="total_happiness"), {"value"}),
    "another instance": (state(instance="0" * 64), {"instance"}),
}


def test_valid_file_is_accepted(document: Document, tmp_path: Path) -> None:
    assert broken_rules(document, tmp_path) == set()


@pytest.mark.parametrize("kind", TAMPERINGS)
def test_tampering_is_named(kind: str, document: Document, tmp_path: Path) -> None:
    tamper, rules = TAMPERINGS[kind]
    tamper(document)
    assert broken_rules(document, tmp_path) == rules


@pytest.mark.parametrize("kind", sorted(TAMPERINGS.keys() - {"an end beyond all floats"}))  # a float column holds none
def test_tampering_is_named_in_parquet_too(kind: str, document: Document, tmp_path: Path) -> None:
    tamper, rules = TAMPERINGS[kind]
    tamper(document)
    path = tmp_path / "schedule.parquet"
    segments = document.pop("segments")
    columns = {
        "job": [row["job"] for row in segments],
        "node": [[node for node, _ in row["gpus"]] for row in segments],
        "index": [[index for _, index in row["gpus"]] for row in segments],
        **{field: [row[field] for row in segments] for field in ("start", "end", "work")},
    }
    integers = pl.List(pl.Int64)
    schema = {"job": pl.String, "node": integers, "index": integers} | dict.fromkeys(
        ("start", "end", "work"), pl.Float64
    )
    table = pl.DataFrame(columns, schema=schema, strict=False)
    table.write_parquet(path, metadata={"optsched-schedule": json.dumps(document)})
    assert {violation.rule for violation in check_file(path, INSTANCE).violations} == rules


def test_preemption_can_be_forbidden_by_the_caller(document: Document, tmp_path: Path) -> None:
    assert broken_rules(document, tmp_path, preemptive=False) == {"preemption"}
    document["preemptive"] = True
    assert broken_rules(document, tmp_path, preemptive=False) == {"preemption"}


@pytest.mark.parametrize("value", [FLOW, float(FLOW), str(FLOW), f"{2 * FLOW}/2"])
def test_right_values_are_accepted(value: Any, document: Document, tmp_path: Path) -> None:
    document["value"] = value
    assert broken_rules(document, tmp_path) == set()


@pytest.mark.parametrize(
    ("objective", "value"),
    [
        ("total_completion_time", 4 + 9 + 7 + 3 + 11),
        ("total_weighted_completion_time", 4 + 27 + 7 + 6 + 11),
        ("total_weighted_flow_time", 4 + 24 + 5 + 6 + 1),
        ("makespan", 11),
        ("total_weighted_tardiness", 9),
        ("total-weighted-tardiness", 9),
        (None, FLOW),
    ],
)
def test_values_worked_out_by_hand(objective: str | None, value: int, document: Document, tmp_path: Path) -> None:
    document.update(objective=objective, value=value)
    assert broken_rules(document, tmp_path) == set()
    document["value"] = value + 1
    assert broken_rules(document, tmp_path) == {"value"}


def test_messages_name_job_segment_place_times_and_what_is_legal(document: Document, tmp_path: Path) -> None:
    TOGETHER(document)
    (violation,) = check_file(write(document, tmp_path), INSTANCE).violations
    assert (violation.rule, violation.job, violation.segment, violation.count) == ("capacity", "fat", FAT, 1)
    assert str(violation) == (
        "capacity: segment 4 (job 'fat', 0 to 3 s) uses GPU 1 of node 0, and so does segment 0 (job 'wide', 0 to 4 s) "
        "(expected: one segment at a time)"
    )


def test_unknown_jobs_are_called_by_the_name_in_the_file(document: Document, tmp_path: Path) -> None:
    document["segments"][LATE]["job"] = "latte"
    violations = check_file(write(document, tmp_path), INSTANCE).violations
    assert [violation.job for violation in violations] == ["late", None]
    assert "'latte'" in violations[1].message


UNREADABLE: dict[str, tuple[Tamper, str]] = {
    "another format": (state(format="optsched-schedule/9"), "format"),
    "no format": (unsay("format"), "format"),
    "no instance": (unsay("instance"), "instance"),
    "no segments field": (unsay("segments"), "segments"),
    "segments of another type": (state(segments={"job": "wide"}), "segments"),
    "a segment that is text": (lambda document: document["segments"].insert(2, "fat"), "segments[2]"),
    "a segment that is a list": (lambda document: document["segments"].insert(1, []), "segments[1]"),
    "a missing start": (lambda document: document["segments"][3].pop("start"), "segments[3].start"),
    "a missing job": (lambda document: document["segments"][3].pop("job"), "segments[3].job"),
    "text for a number": (set_field(FAT, end="3"), "segments[4].end"),
    "null for a number": (set_field(FAT, work=None), "segments[4].work"),
    "true for a number": (set_field(FAT, work=True), "segments[4].work"),
    "a number for a job": (set_field(FAT, job=4), "segments[4].job"),
    "one GPU without a list": (set_field(FAT, gpus=[1, 0]), "segments[4].gpus"),
    "GPUs as text": (set_field(FAT, gpus="1:0"), "segments[4].gpus"),
    "a GPU of three numbers": (set_field(FAT, gpus=[[1, 0, 0]]), "segments[4].gpus"),
    "half a GPU": (set_field(FAT, gpus=[[1, 0.5]]), "segments[4].gpus"),
    "a GPU number beyond 64 bits": (set_field(FAT, gpus=[[1, 2**70]]), "gpus"),
    "a list for a value": (state(value=[FLOW]), "value"),
    "words for a value": (state(value="twenty"), "value"),
    "a value over zero": (state(value="1/0"), "value"),
    "a power too large for a value": (state(value="1e999999999"), "value"),
    "a number for an objective": (state(objective=7), "objective"),
    "text for a flag": (state(preemptive="no"), "preemptive"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_unreadable_files_are_input_errors_of_one_line(kind: str, document: Document, tmp_path: Path) -> None:
    tamper, field = UNREADABLE[kind]
    tamper(document)
    path = write(document, tmp_path)
    with pytest.raises(InputError) as caught:
        check_file(path, INSTANCE)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert field in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"[1, 2", b"\xff\xfe", b"[1, 2]", b"[" * 100_000, b"PAR1", b'{"a":' + b"1" * 5000 + b"}"]
)
def test_files_that_are_no_documents(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"schedule\.json"):
        check_file(path, INSTANCE)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check_file(tmp_path / "nowhere.json", INSTANCE)


def test_every_truncation_is_unreadable(document: Document, tmp_path: Path) -> None:
    path = write(document, tmp_path)
    content = path.read_bytes()
    for length in range(0, len(content), 37):
        path.write_bytes(content[:length])
        with pytest.raises(InputError):
            check_file(path, INSTANCE)


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_what_save_writes_is_what_the_referee_reads(suffix: str, document: Document, tmp_path: Path) -> None:
    schedule = in_memory(document)
    path = tmp_path / f"saved.{suffix}"
    schedule.save(path, objective="makespan", value=11, preemptive=True)
    assert check_file(path, INSTANCE).holds
    schedule.save(path, objective="makespan", value=10)
    assert [violation.rule for violation in check_file(path, INSTANCE).violations] == ["value"]
    schedule.save(path, preemptive=False)
    assert [violation.rule for violation in check_file(path, INSTANCE).violations] == ["preemption"]


def test_truncated_parquet_is_unreadable(document: Document, tmp_path: Path) -> None:
    path = tmp_path / "schedule.parquet"
    in_memory(document).save(path)
    content = path.read_bytes()
    for length in (4, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="Parquet"):
            check_file(path, INSTANCE)


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ("start", pl.Series("start", ["0"])),
        ("job", pl.Series("job", [1])),
        ("node", pl.Series("node", [["0"]])),
        ("node", pl.Series("node", [[0, 1]])),
        ("index", pl.Series("index", [[None]], dtype=pl.List(pl.Int64))),
        ("end", pl.Series("end", [None], dtype=pl.Float64)),
        ("work", None),
    ],
)
def test_parquet_columns_of_the_wrong_kind(field: str, column: pl.Series | None, tmp_path: Path) -> None:
    row = {"job": ["fat"], "node": [[1]], "index": [[0]], "start": [0.0], "end": [3.0], "work": [3.0]}
    table = pl.DataFrame(row)
    table = table.drop(field) if column is None else table.with_columns(column)
    path = tmp_path / "schedule.parquet"
    header = {"format": "optsched-schedule/1", "instance": INSTANCE.digest}
    table.write_parquet(path, metadata={"optsched-schedule": json.dumps(header)})
    with pytest.raises(InputError, match=r"schedule\.parquet"):
        check_file(path, INSTANCE)


def test_a_schedule_object_is_judged_like_its_file(document: Document, tmp_path: Path) -> None:
    document["segments"][FAT]["work"] = 2
    violations = check_schedule(INSTANCE, in_memory(document), value=FLOW)
    assert tuple(violations) == check_file(write(document, tmp_path), INSTANCE).violations
    assert [violation.rule for violation in violations] == ["work"]
