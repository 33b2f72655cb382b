"""`Schedule`: segments as arrays, GPU naming, completion, files and their text."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from examples import pairs
from hypothesis import given, strategies as st
from refusals import one_line

from optsched.errors import InputError
from optsched.problem.cluster import Cluster
from optsched.problem.gpu_names import assign_gpus, named_anyway, node_first
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment
from optsched.problem.schedule_file import Segments, _lists, read_segments, write_segments

TWO = Instance([Job("a", gpus=2, duration=3), Job("b", arrival=1, duration=2)], "2x2", "two")
SEGMENTS = [
    Segment(0, ((0, 0), (1, 1)), 0.0, 2.0, 2.0),
    Segment(1, ((0, 1),), 1.0, 3.0, 2.0),
    Segment(0, ((0, 0), (1, 0)), 3.5, 5.0, 1.0),
]


def test_segments_go_in_and_come_out() -> None:
    schedule = Schedule.from_segments(TWO, SEGMENTS, "by hand")
    assert list(schedule.segments()) == SEGMENTS
    assert len(schedule) == 3
    assert schedule.gangs.tolist() == [2, 1, 2]
    assert schedule.policy == "by hand"


def test_completion_is_the_end_of_the_last_segment_of_a_job_that_got_all_its_work() -> None:
    schedule = Schedule.from_segments(TWO, SEGMENTS)
    assert schedule.received.tolist() == [3, 2]
    assert schedule.completion.tolist() == [5, 3]
    partly = Schedule.from_segments(TWO, SEGMENTS[:2])
    assert partly.finished.tolist() == [False, True]
    assert math.isnan(partly.completion[0])
    assert partly.completion[1] == 3


def test_rounding_alone_does_not_leave_a_job_unfinished_but_missing_work_does() -> None:
    def with_work(work: float) -> Schedule:
        return Schedule.from_segments(TWO, [Segment(1, ((0, 0),), 1, 3, work)])

    assert with_work(2 * (1 - 1e-10)).finished[1]
    assert not with_work(2 * (1 - 1e-8)).finished[1]


def overlapping(schedule: Schedule) -> list[tuple[int, int]]:
    """GPUs that two segments use at once, found one GPU at a time."""
    spans: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for segment in schedule.segments():
        assert len(set(segment.gpus)) == len(segment.gpus)
        for gpu in segment.gpus:
            spans.setdefault(gpu, []).append((segment.start, segment.end))
    return [gpu for gpu, times in spans.items() if any(one[1] > two[0] for one, two in pairwise(sorted(times)))]


starts_and_gangs = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4), st.integers(1, 6)), max_size=12)


@given(starts_and_gangs)
def test_starts_alone_make_a_schedule_exactly_when_the_gpus_suffice(rows: list[tuple[int, int, int]]) -> None:
    jobs = [Job(str(j), gpus=gang, duration=length) for j, (_, gang, length) in enumerate(rows)]
    instance, starts = Instance(jobs, "3x2"), [start for start, _, _ in rows]
    fits = all(sum(gang for start, gang, length in rows if start <= time < start + length) <= 6 for time in range(20))
    if not fits:
        with pytest.raises(InputError, match="more GPUs in use than there are"):
            Schedule.from_starts(instance, starts)
        return
    schedule = Schedule.from_starts(instance, starts, policy="list")
    assert overlapping(schedule) == []
    assert schedule.gangs.tolist() == [gang for _, gang, _ in rows]
    assert schedule.completion.tolist() == [start + length for start, _, length in rows]
    assert ((schedule.gpu_node >= 0) & (schedule.gpu_node < 3)).all()
    assert ((schedule.gpu_index >= 0) & (schedule.gpu_index < 2)).all()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 2), st.integers(1, 4)), max_size=10))
def test_decided_nodes_are_kept_and_their_capacity_is_enforced(rows: list[tuple[int, int, int, int]]) -> None:
    rows = [row for row in rows if row[1] + row[2] > 0]  # start, GPUs on the first and on the last node, length
    jobs = [Job(str(j), gpus=row[1] + row[2], duration=row[3]) for j, row in enumerate(rows)]
    counts = {j: [(node, row[k]) for node, k in ((0, 1), (2, 2)) if row[k]] for j, row in enumerate(rows)}
    instance, starts = Instance(jobs, "3x2"), [row[0] for row in rows]
    runs = [[row for row in rows if row[0] <= time < row[0] + row[3]] for time in range(14)]
    if any(sum(row[k] for row in running) > 2 for running in runs for k in (1, 2)):
        with pytest.raises(InputError, match="does not fit"):
            Schedule.from_starts(instance, starts, node_counts=counts)
        return
    schedule = Schedule.from_starts(instance, starts, node_counts=counts)
    assert overlapping(schedule) == []
    for segment in schedule.segments():
        nodes = [node for node, _ in segment.gpus]
        assert [(node, nodes.count(node)) for node in sorted(set(nodes))] == counts[segment.job]


@pytest.mark.parametrize("starts", [[0.0], [0.0, 1.0, 2.0], [0.0, math.nan], [math.inf, 0.0], [[0.0, 1.0]]])
def test_starts_must_be_one_number_a_job(starts: Any) -> None:
    with pytest.raises(
        InputError, match=r"starts: invalid \(expected: one finite number of seconds for each of 2 jobs"
    ):
        Schedule.from_starts(TWO, starts)


def test_starts_may_be_given_by_id_and_in_files(tmp_path: Path) -> None:
    assert Schedule.from_starts(TWO, {"b": 3, "a": 0.5}).start.tolist() == [0.5, 3]
    for starts, message in (
        ({"a": 0}, "starts = 'b': a job without a start"),
        ({"a": 0, "b": 3, "x": 0}, "starts = 'x': no such job"),
        ({"a": 0, "b": "3"}, "starts: b = '3': not a number"),
        ({"a": 0, "b": True}, "starts: b = True: not a number"),
        ({"a": 0, "b": [3]}, "starts: invalid"),
        ([0, 10**400], "starts: invalid"),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(message)}"):
            Schedule.from_starts(TWO, starts)
    path = tmp_path / "s.json"
    for document in ({"starts": [0.5, 3]}, {"starts": {"b": 3, "a": 0.5}, "instance": TWO.digest, "policy": "mine"}):
        path.write_text(json.dumps(document))
        assert Schedule.load(path, TWO).start.tolist() == [0.5, 3]
    assert Schedule.load(path, TWO).policy == "mine"
    for document, message in (
        ({"starts": [0, 3], "instance": "x"}, "belongs to another instance"),
        ({"starts": [0]}, r"s\.json: starts: invalid"),
        ({"starts": 3}, "not a schedule file"),
    ):
        path.write_text(json.dumps(document))
        with pytest.raises(InputError, match=message):
            Schedule.load(path, TWO)


def test_segments_that_do_not_fit_share_gpus_and_the_others_do_not() -> None:
    instance = Instance([], "2x2")
    start, end = np.array([0.0, 0, 1, 2]), np.array([5.0, 2, 3, 4])
    offset, node, index = named_anyway(instance, start, end, np.array([2, 2, 3, 2]))
    gpus = [[*zip(node[a:b].tolist(), index[a:b].tolist(), strict=True)] for a, b in pairwise(offset.tolist())]
    assert gpus == [[(0, 0), (0, 1)], [(1, 0), (1, 1)], [(0, 0), (0, 1), (1, 0)], [(1, 0), (1, 1)]]


def test_restricted_jobs_need_their_nodes_decided() -> None:
    instance = Instance([Job("a", duration=1, gpu_types=("V100",))], "1x1:K80+1x1:V100")
    with pytest.raises(InputError, match="say which with node_counts"):
        Schedule.from_starts(instance, [0])
    assert Schedule.from_starts(instance, [0], node_counts={0: [(1, 1)]}).gpu_node.tolist() == [1]


def test_a_gpu_is_free_again_at_the_instant_its_segment_ends() -> None:
    instance = Instance([Job("a", duration=2), Job("b", duration=2)], "1x1")
    assert Schedule.from_starts(instance, [2, 0]).gpu_index.tolist() == [0, 0]


def test_the_lowest_free_gpus_are_taken() -> None:
    first = np.array([0, 4], dtype=np.int64)
    start, end = np.array([0.0, 0, 1, 2]), np.array([1.0, 5, 3, 4])
    one = np.arange(5, dtype=np.int64)
    pool, count = np.zeros(4, dtype=np.int64), np.array([2, 1, 1, 2], dtype=np.int64)
    offset, gpu, failed = assign_gpus(first, start, end, one, pool, count)
    assert failed == -1
    assert [sorted(gpu[offset[s] : offset[s + 1]].tolist()) for s in range(4)] == [[0, 1], [2], [0], [1, 3]]


def test_gpus_are_numbered_node_by_node() -> None:
    instance = Instance([Job("a", duration=1)], Cluster.parse("2x3+1x1"))
    assert node_first(instance).tolist() == [0, 3, 6, 7]


def test_a_schedule_may_be_empty() -> None:
    for schedule in (Schedule.from_segments(TWO, []), Schedule.from_starts(TWO.head(0), [])):
        assert len(schedule) == 0
        assert list(schedule.segments()) == []
        assert schedule.completion.shape == (schedule.instance.n,)
        assert not schedule.finished.any()


# -- files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["s.json", "s.parquet", "s[1].parquet"])
@pytest.mark.parametrize("segments", [SEGMENTS, SEGMENTS[:1], []], ids=len)
def test_what_is_saved_is_what_is_loaded(tmp_path: Path, name: str, segments: list[Segment]) -> None:
    schedule = Schedule.from_segments(TWO, segments, "by hand")
    schedule.save(tmp_path / name, objective="makespan", value=5, preemptive=True)
    loaded = Schedule.load(tmp_path / name, TWO)
    assert list(loaded.segments()) == segments
    assert loaded.policy == "by hand"
    assert loaded.instance is TWO
    assert [array.dtype for array in (loaded.job, loaded.start, loaded.gpu_offset)] == [np.int64, np.float64, np.int64]
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_the_json_file_is_the_documented_one(tmp_path: Path) -> None:
    Schedule.from_segments(TWO, SEGMENTS, "by hand").save(tmp_path / "s.json", objective="makespan", value=5)
    document = json.loads((tmp_path / "s.json").read_text())
    assert document == {
        "format": "optsched-schedule/1",
        "instance": TWO.digest,
        "policy": "by hand",
        "objective": "makespan",
        "value": 5,
        "segments": [
            {"job": "a", "gpus": [[0, 0], [1, 1]], "start": 0, "end": 2, "work": 2},
            {"job": "b", "gpus": [[0, 1]], "start": 1, "end": 3, "work": 2},
            {"job": "a", "gpus": [[0, 0], [1, 0]], "start": 3.5, "end": 5, "work": 1},
        ],
    }


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(1e-6, 1e9), st.floats(0, 1e9)), min_size=1, max_size=4))
def test_every_bit_of_a_time_survives(tmp_path_factory: pytest.TempPathFactory, times: list[tuple[float, ...]]) -> None:
    folder = tmp_path_factory.mktemp("times")
    segments = [Segment(1, ((0, 0),), start, start + length, work) for start, length, work in times]
    schedule = Schedule.from_segments(TWO, segments)
    for name in ("s.json", "s.parquet"):
        schedule.save(folder / name)
        assert list(Schedule.load(folder / name, TWO).segments()) == segments


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_a_schedule_of_another_instance_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s{suffix}"
    Schedule.from_segments(TWO, SEGMENTS).save(path)
    with pytest.raises(InputError, match="belongs to another instance"):
        Schedule.load(path, TWO.head(1))


def document(**changes: Any) -> dict[str, Any]:
    row = {"job": "b", "gpus": [[0, 1]], "start": 1, "end": 3, "work": 2}
    return {"format": "optsched-schedule/1", "instance": TWO.digest, "policy": "", "segments": [{**row, **changes}]}


ILLEGAL: dict[str, list[Any]] = {
    "job": ["z", ["b"], None],
    "gpus": [[[0]], [["x", 1]], 3],
    "start": ["soon", 10**400],
    "end": [None],
    "work": [[1, 2]],
}


@pytest.mark.parametrize(("field", "value"), pairs(ILLEGAL))
def test_an_illegal_segment_is_one_line(written: Any, field: str, value: Any) -> None:
    path = written(document(**{field: value}))
    with one_line("a segment is invalid", begins=path):
        Schedule.load(path, TWO)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"format": "optsched-schedule/1"}', '{"format": "optsched-instance/1", "segments": []}',
     json.dumps({**document(), "segments": {}}), json.dumps({**document(), "segments": [3]})],
)  # fmt: skip
def test_what_is_not_a_schedule_is_one_line(written: Any, text: str) -> None:
    path = written(text)
    with one_line(begins=path):
        Schedule.load(path, TWO)


@pytest.mark.parametrize(
    "changes",
    [{"index": [[0, 1]]}, {"index": ...}, {"node": [None], "index": [None]}, {"job": ["z"]}, {"start": ["x"]}],
    ids=str,
)
def test_an_illegal_parquet_row_is_one_line(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "s.parquet"
    header = {"format": "optsched-schedule/1", "instance": TWO.digest}
    row = {"job": ["b"], "node": [[0]], "index": [[0]], "start": [1.0], "end": [3.0], "work": [2.0]} | changes
    columns = {name: values for name, values in row.items() if values is not ...}
    pl.DataFrame(columns).write_parquet(path, metadata={"optsched-schedule": json.dumps(header)})
    with one_line(begins=path):
        Schedule.load(path, TWO)


@given(st.lists(st.integers(0, 3), max_size=30))
def test_lists_are_cut_where_the_segments_end(length: list[int]) -> None:
    """Also where a segment has no GPU, at the ends, and where none has any."""
    node = np.arange(sum(length)) * 3
    ends = np.cumsum([0, *length])
    made = _lists(np.array(length, dtype=np.int64), node=node, index=node + 1)
    assert made["node"].to_list() == [node[a:b].tolist() for a, b in pairwise(ends)]
    assert made["index"].to_list() == [(node[a:b] + 1).tolist() for a, b in pairwise(ends)]


# -- The text of schedule files: written a column at a time, it is what the standard library writes a row at a time -------


IDS = ['a"', "b\\", "line\nbreak", '", "', "ä\u2028\U0001f600", "", "{x}", "null"]  # a job each, unlike any other
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**60), 2**60).map(float),
    st.sampled_from([-0.0, 0.1, 1e-7, 2.0**53, 2.0**53 - 1, 1e16, 1e22, 5e-324, 2.0**63, -(2.0**63)]),
)
DRAWN = st.lists(
    st.tuples(
        st.integers(0, len(IDS) - 1),
        st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), max_size=4),
        st.tuples(NUMBERS, NUMBERS, NUMBERS),
        st.integers(1, 3),
    ),
    max_size=6,
)


@given(segments=DRAWN, shared=st.booleans())
def test_the_columns_are_written_as_rows(tmp_path_factory: Any, segments: list[Any], shared: bool) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "rows.json"
    job, gangs, times, steps = ([row[k] for row in segments] for k in range(4))
    start, end, work = np.array(times, dtype=np.float64).reshape(-1, 3).T
    gpus = np.array([pair for gang in gangs for pair in gang], dtype=np.int64).reshape(-1, 2)
    columns = (np.array(job, dtype=np.int64), start, end, work, np.cumsum([0, *map(len, gangs)]), *gpus.T)
    given_steps = np.array(steps, dtype=np.int64) if shared else None
    stated = {"sharing": True} if shared else {}
    write_segments(path, Segments(*columns, "fifo", given_steps), "digest", pl.Series(IDS), stated)

    text = path.read_text(encoding="utf-8")
    plain = []
    for j, gang, (a, b, c), k in segments:
        row = {"job": IDS[j], "gpus": gang, "start": a, "end": b, "work": c}
        plain.append(json.loads(json.dumps(row | ({"steps": k} if shared and k > 1 else {}))))
    assert json.loads(text)["segments"] == plain
    assert text.count("\n") == 5 + len(stated) + max(1, len(segments)) + 2, "one line a segment"

    found = read_segments(path, "digest", {name: j for j, name in enumerate(IDS)})
    for one, other in zip(found[:7], columns, strict=True):
        assert one.tolist() == other.tolist()
    assert (None if found.steps is None else found.steps.tolist()) == (steps if shared else None)


def test_whole_numbers_have_no_fraction(tmp_path: Path) -> None:
    path, none = tmp_path / "s.json", np.zeros(0, dtype=np.int64)
    times = np.array([0.0]), np.array([59.0]), np.array([58.5])
    write_segments(path, Segments(np.array([0]), *times, np.array([0, 0]), none, none), "d", pl.Series(["1"]), {})
    assert '  {"job": "1", "gpus": [], "start": 0, "end": 59, "work": 58.5}\n' in path.read_text(encoding="utf-8")
