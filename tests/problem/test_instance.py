"""`Instance`: what it holds, what it refuses, what its digest covers, where its clock begins."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from examples import pairs
from hypothesis import given, strategies as st
from refusals import one_line

from optsched.errors import InputError, RowErrors
from optsched.io.sources import load
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention
from optsched.problem.epoch import epoch_of
from optsched.problem.instance import Instance, Job

LABELS: dict[str, Any] = {"user": "ada", "group": "ml", "model": "resnet50"}
NEEDS: dict[str, Any] = {"gpu_memory": 8e9, "gpu_types": ("V100",)}
FULL = Job("full", 2.5, 2, duration=7, iterations=70, profile="resnet", weight=3, due=40, **LABELS, **NEEDS)
MIXED = Cluster(
    (
        NodeGroup(count=2, gpus=4, gpu="V100", gpu_memory=16e9, nic_bandwidth=1e9, intra_bandwidth=1e11),
        NodeGroup(count=3, gpus=2, gpu="K80"),
    )
)


def test_arrays_hold_the_jobs_in_order_with_their_defaults() -> None:
    instance = Instance([FULL, Job("plain", duration=1)], MIXED, name="two")
    assert len(instance) == instance.n == 2
    assert instance.ids == ("full", "plain")
    assert instance.index == {"full": 0, "plain": 1}
    assert instance.arrival.tolist() == [2.5, 0]
    assert instance.gpus.tolist() == [2, 1]
    assert instance.duration.tolist() == [7, 1]
    assert instance.weight.tolist() == [3, 1]
    assert instance.due.tolist() == [40, math.inf]
    assert instance.gpu_memory.tolist() == [8e9, 0]
    assert instance.iterations[0] == 70
    assert math.isnan(instance.iterations[1])
    assert instance.jobs == [FULL, Job("plain", duration=1)]
    assert repr(instance) == "Instance('two', 2 jobs, 2x4:V100+3x2:K80)"


def test_a_table_and_jobs_make_the_same_instance() -> None:
    jobs = [Job("1", arrival=1, gpus=2, duration=3), Job("2", arrival=0, duration=4, weight=2)]
    table = pl.DataFrame({"weight": [1, 2], "gpus": [2, 1], "duration": [3, 4], "arrival": [1, 0]})
    from_table, from_jobs = Instance(table, "2x2"), Instance(jobs, Cluster.parse("2x2"))
    assert from_table.ids == ("1", "2")
    assert from_table.table.equals(from_jobs.table)
    assert from_table.digest == from_jobs.digest


def test_numbers_of_numpy_are_numbers() -> None:
    job = Job("a", arrival=np.float32(0.5), gpus=np.int32(3), duration=np.int64(7))
    instance = Instance([job], "1x8")
    assert (instance.arrival[0], instance.gpus[0], instance.duration[0]) == (0.5, 3, 7)


def test_an_instance_is_frozen_to_the_last_array() -> None:
    instance = Instance([FULL], MIXED)
    with pytest.raises(AttributeError, match=r"frozen: use replace\(name=...\)"):
        instance.name = "other"
    with pytest.raises(AttributeError, match="frozen"):
        del instance.table
    arrays = ("arrival", "gpus", "duration", "iterations", "weight", "due", "gpu_memory")
    for name in (*arrays, "job_class", "class_gpus", "class_eligible"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(instance, name)[0] = 1
    for name in ("node_gpus", "node_group", "node_memory"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(instance.cluster, name)[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.cluster.nodes = ()


def test_the_callers_table_and_recipe_are_not_shared() -> None:
    table, recipe = pl.DataFrame({"duration": [1.0]}), {"seed": 1}
    instance = Instance(table, "1x1", recipe=recipe)
    digest = instance.digest
    table[0, "duration"] = 5.0
    recipe["seed"] = 2
    assert instance.table["duration"][0] == 1.0
    assert instance.recipe == {"seed": 1}
    assert Instance(instance.table, "1x1").digest == digest


ILLEGAL: list[tuple[dict[str, Any], str, str]] = [
    ({"arrival": -1.0}, "arrival = -1.0", "seconds >= 0"),
    ({"arrival": math.nan}, "arrival = nan", "finite"),
    ({"arrival": math.inf}, "arrival = inf", "finite"),
    ({"arrival": None}, "arrival = None", "seconds >= 0"),
    ({"duration": 0.0}, "duration = 0.0", "seconds > 0"),
    ({"duration": -3.0}, "duration = -3.0", "seconds > 0"),
    ({"duration": math.nan}, "duration = nan", "finite"),
    ({"duration": math.inf}, "duration = inf", "finite"),
    ({"arrival": 1e300}, "arrival = 1e+300: too late", "at most 1e+18 seconds"),
    ({"duration": 1e308}, "duration = 1e+308: too long", "at most 1e+18 seconds"),
    ({"duration": 1e-300}, "duration = 1e-300: too short", "at least 1e-12 seconds"),
    ({"duration": 5e-324}, "duration = 5e-324: too short", "at least 1e-12 seconds"),
    ({"iterations": 2e18}, "iterations = 2e+18: too many", "at most 1e+18"),
    ({"weight": 1e300}, "weight = 1e+300: too large", "at most 1e+18"),
    ({"weight": 1e-300}, "weight = 1e-300: too small", "0, or at least 1e-18"),
    ({"due": -1e300}, "due = -1e+300: too far", "within 1e+18 seconds of 0"),
    ({"due": 1e300}, "due = 1e+300: too far", "within 1e+18 seconds of 0"),
    ({"duration": None}, "duration = None: missing", "iterations with a profile"),
    ({"duration": None, "iterations": 5.0}, "duration = None: missing", "iterations with a profile"),
    ({"iterations": 0.0}, "iterations = 0.0", "number > 0"),
    ({"gpus": 0}, "gpus = 0", "integer >= 1"),
    ({"gpus": -2}, "gpus = -2", "integer >= 1"),
    ({"gpus": 15}, "gpus = 15: the gang is larger than the cluster", "at most 14"),
    ({"gpus": 9, "gpu_types": ("v100",)}, "gpus = 9", "at most 8, the GPUs of the cluster 2x4:V100+3x2:K80 that its"),
    ({"gpus": 7, "gpu_memory": 17e9}, "gpus = 7", "at most 6"),
    ({"gpu_types": ("A100",)}, "gpus = 1", "at most 0"),
    ({"gpu_types": ()}, "gpus = 1", "at most 0"),
    ({"weight": -1.0}, "weight = -1.0", "number >= 0"),
    ({"weight": math.nan}, "weight = nan", "finite"),
    ({"due": math.inf}, "due = inf", "finite"),
    ({"gpu_memory": -1.0}, "gpu_memory = -1.0", "bytes >= 0"),
    ({"restart": -1.0}, "restart = -1.0", "seconds >= 0"),
    ({"restart": math.inf}, "restart = inf", "finite"),
    ({"restart": 1e19}, "restart = 1e+19", "at most 1e+18"),
    ({"checkpoint": -1.0}, "checkpoint = -1.0", "bytes >= 0"),
    ({"checkpoint": math.inf}, "checkpoint = inf", "finite"),
    ({"checkpoint": 1e19}, "checkpoint = 1e+19", "at most 1e+18"),
    ({"id": ""}, "id = ''", "a name"),
    ({"id": "first"}, "id = 'first': duplicate id", "unique ids"),
]


def read(road: str, changes: dict[str, Any], folder: Path) -> Instance:
    """An instance of two jobs, given as jobs or read from a file; the second has these changes."""
    rows = [{"id": "first", "duration": 1.0}, {"id": "second", "duration": 1.0, **changes}]
    if road == "jobs":
        return Instance([Job(**row) for row in rows], MIXED)
    head, path = Instance([], MIXED).to_json() | {"jobs": rows}, folder / f"bad.{road}"
    if road == "json":
        path.write_text(json.dumps(head))
    else:
        del head["jobs"]
        first = {"arrival": 0.0, "gpus": 1, "weight": 1.0} | rows[0]
        columns = {name: [first.get(name), value] for name, value in rows[1].items()}
        pl.DataFrame(columns).write_parquet(path, metadata={"optsched-instance": json.dumps(head)})
    return Instance.load(path)


@pytest.mark.parametrize("road", ["jobs", "json", "parquet"])
@pytest.mark.parametrize(("changes", "what", "legal"), ILLEGAL, ids=[str(case[0]) for case in ILLEGAL])
def test_an_illegal_job_is_one_line_that_names_file_row_field_value_and_what_is_legal(
    road: str, changes: dict[str, Any], what: str, legal: str, tmp_path: Path
) -> None:
    with pytest.raises(RowErrors) as caught:
        read(road, changes, tmp_path)
    summary, line = str(caught.value).split("\n")
    file = "" if road == "jobs" else f"{tmp_path / 'bad'}.{road}"
    by_schema = road == "json" and legal not in line  # pydantic says what is legal in words of its own
    assert summary == f"{file and file + ': '}1 of 2 {'jobs' if road == 'json' else 'rows'} invalid"
    where = re.escape("row 2") if road != "json" else r"job 2 \((?:'\w*', )?line 1\)"
    assert re.match(f"  {re.escape(file and file + ', ')}{where}, {re.escape(what)}", line), line
    assert (" (expected: " if by_schema else legal) in line


WRONG_TYPES: dict[str, list[Any]] = {
    "id": [5],
    "arrival": ["now", True],
    "duration": ["3", True, 10**400],
    "gpus": [2.0, 2.5, "2", True, 2**63, 10**30],
    "weight": [[1]],
    "due": ["soon"],
    "user": [7],
    "gpu_types": ["V100", (1,)],
}


@pytest.mark.parametrize("road", ["jobs", "json"])
@pytest.mark.parametrize(("field", "value"), pairs(WRONG_TYPES))
def test_a_field_of_the_wrong_type_is_one_line(road: str, field: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(road, {field: value}, tmp_path)
    line = re.sub(r"^job 2 \(.*?line 1\)", "row 2", str(caught.value).split(f"bad.{road}, ")[-1])
    short = road == "json" and not isinstance(value, str)  # a long number or a list is not repeated
    told = (f"{field} = {value!r}", *([f"{field}: ", f"{field}.0 = 1"] if short else []))
    assert line.startswith(tuple(f"row 2, {what}" for what in told))
    assert " invalid (expected: " in line
    assert "\n" not in line


def test_every_bad_row_is_reported_at_once() -> None:
    jobs = [Job(str(j), duration=-1 if j % 2 else 1, gpus=9 if j % 3 == 0 else 1) for j in range(60)]
    with pytest.raises(RowErrors) as caught:
        Instance(jobs, "1x8")
    assert {problem.row for problem in caught.value.problems} == {j + 1 for j in range(60) if j % 2 or j % 3 == 0}
    lines = str(caught.value).split("\n")
    assert lines[0] == "40 of 60 rows invalid"
    assert len(lines) == 1 + 20 + 1
    assert lines[-1] == "  ... and 20 more"
    assert [line.count(" (expected: ") for line in lines[1:5]] == [
        1,
        1,
        2,
        1,
    ]  # one row has two mistakes: both are told


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ({"duration": [1.0], "colour": ["red"]}, "colour: unknown job column"),
        ({"duration": ["long"]}, "duration: wrong type of column"),
        ({"duration": [1.0, 1.0], "gpus": [1.0, 2.5]}, "row 2, gpus = 2.5: invalid"),
        ({"duration": [1.0], "gpus": [math.nan]}, "row 1, gpus = nan: invalid"),
    ],
)
def test_an_illegal_table_is_one_line(table: dict[str, list[Any]], what: str, tmp_path: Path) -> None:
    with one_line(begins=what):
        Instance(pl.DataFrame(table), "1x8")
    path = tmp_path / "bad.parquet"
    header = {name: part for name, part in Instance([], "1x8").to_json().items() if name != "jobs"}
    pl.DataFrame(table).write_parquet(path, metadata={"optsched-instance": json.dumps(header)})
    with pytest.raises(InputError) as caught:
        Instance.load(path)
    assert str(caught.value).split("\n")[-1].strip().startswith(f"{path}, {what}")


@pytest.mark.parametrize("field", ["arrival", "gpus"])
@pytest.mark.parametrize("kind", ["polars", "pandas", "Int64"])
def test_a_missing_value_is_no_default(field: str, kind: str) -> None:
    columns = {"id": ["a", "b"], "gpus": [1, 2], "arrival": [0, 3], "duration": [5.0, 6.0], "due": [None, 9.0]}
    frame: Any = pl.DataFrame(columns | {field: [None, 2]})
    if kind != "polars":
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(columns | {field: pandas.array([None, 2], dtype=kind.replace("pandas", "float64"))})
    with pytest.raises(
        RowErrors, match=rf"1 of 2 rows invalid\n  row 1, {field} = None: missing \(expected: .*>= [01]\)$"
    ):
        Instance(frame, "1x2")
    rest = frame.drop(columns=field) if kind != "polars" else frame.drop(field)
    instance = Instance(rest, "1x2")  # an absent column means the default, an empty due date none
    assert (instance.table[field][0], instance.due.tolist()) == ({"arrival": 0, "gpus": 1}[field], [math.inf, 9])


def test_what_is_not_a_job_or_a_cluster_is_refused() -> None:
    with pytest.raises(InputError, match=r"row 2, \('b', 1\): not a job"):
        Instance([Job("a", duration=1), ("b", 1)], "1x1")
    with pytest.raises(InputError, match="cluster = 7: not a cluster"):
        Instance([], 7)
    with pytest.raises(InputError, match="no objective named 'speed'"):
        Instance([], "1x1", objective="speed")


OF_JOBS: dict[str, list[Any]] = {
    "id": ["other"],
    "arrival": [2.25],
    "gpus": [3],
    "duration": [math.nextafter(7, 8)],
    "iterations": [71],
    "profile": ["vgg", None],
    "weight": [4],
    "due": [41, None],
    "gpu_memory": [9e9, None],
    "gpu_types": [("V100", "K80"), None],
    "restart": [2.5],
    "checkpoint": [4e9],
}
OF_NODES = {"gpus": 5, "count": 3, "gpu": "P100", "gpu_memory": 1e10}
OF_NODES |= {"nic_bandwidth": 2e9, "intra_bandwidth": 1, "storage_bandwidth": 2e9}


@pytest.mark.parametrize(("field", "value"), pairs(OF_JOBS))
def test_the_digest_covers_every_number_id_and_type_of_a_job(field: str, value: Any) -> None:
    jobs = [FULL, Job("plain", duration=1)]
    changed = [dataclasses.replace(FULL, **{field: value}), jobs[1]]
    assert Instance(changed, MIXED).digest != Instance(jobs, MIXED).digest


@pytest.mark.parametrize(("field", "value"), OF_NODES.items())
def test_the_digest_covers_the_cluster(field: str, value: Any) -> None:
    jobs = [Job("plain", duration=1)]
    changed = Cluster((dataclasses.replace(MIXED.nodes[0], **{field: value}), MIXED.nodes[1]))
    assert Instance(jobs, changed).digest != Instance(jobs, MIXED).digest


def test_the_digest_covers_the_order_of_jobs_and_the_bounds_of_ids() -> None:
    a, b = Job("a", duration=1), Job("b", duration=2)
    assert Instance([a, b], "1x1").digest != Instance([b, a], "1x1").digest
    one = Instance([Job("a\x1fb", duration=1), Job("c", duration=1)], "1x1")
    other = Instance([Job("a", duration=1), Job("b\x1fc", duration=1)], "1x1")
    assert one.digest != other.digest


def test_the_digest_covers_contention_where_whole_jobs_communicate() -> None:
    quiet = load("all-four").replace(contention=None)
    digests = {quiet.digest, *(quiet.replace(contention=Contention(1e-9, eta)).digest for eta in (0.0, 1e-9))}
    assert len(digests) == 3
    plain = Instance([Job("a", duration=1)], "1x1")  # decides nothing there
    assert plain.replace(contention=Contention(1e-9)).digest == plain.digest


def test_the_digest_covers_nothing_else() -> None:
    plain = Instance([FULL], MIXED)
    others = [dataclasses.replace(FULL, user="bob", group=None, model="bert")]
    noted = Instance(others, MIXED, "n", "makespan", {"seed": 1}, {"objective": "makespan", "value": 9.5})
    assert noted.digest == plain.digest
    assert len(plain.digest) == 64


def test_equal_numbers_have_equal_digests_however_they_are_written() -> None:
    def digest(memory: float, duration: float, arrival: float) -> str:
        return Instance([Job("a", arrival, 1, duration)], Cluster((NodeGroup(1, gpu_memory=memory),))).digest

    assert digest(16e9, 1, 0) == digest(16 * 10**9, 1, 0) == digest(16e9, 1.0, 0) == digest(16e9, 1, -0.0)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2),
            st.sampled_from([None, (), ("V100",), ("k80",), ("K80", "v100")]),
            st.sampled_from([None, 0, 8e9, 16e9, 20e9]),
        ),
        max_size=12,
    )
)
def test_classes_and_eligible_nodes_are_those_of_a_scan(
    rows: list[tuple[int, tuple[str, ...] | None, float | None]],
) -> None:
    def suits(group: NodeGroup, types: tuple[str, ...] | None, memory: float | None) -> bool:
        typed = types is None or group.gpu.lower() in [name.lower() for name in types]
        return typed and (memory is None or group.gpu_memory is None or memory <= group.gpu_memory)

    rows = [row for row in rows if any(suits(group, row[1], row[2]) for group in MIXED.nodes)]
    jobs = [Job(str(j), gpus=g, duration=1, gpu_types=t, gpu_memory=m) for j, (g, t, m) in enumerate(rows)]
    instance = Instance(jobs, MIXED)
    expected = [[suits(group, t, m) for group in MIXED.nodes for _ in range(group.count)] for _, t, m in rows]
    assert [instance.eligible(j).tolist() for j in range(instance.n)] == expected
    assert instance.class_gpus[instance.job_class].tolist() == [g for g, _, _ in rows]
    alike = {(g, tuple(nodes)) for (g, _, _), nodes in zip(rows, expected, strict=True)}
    assert len(set(instance.job_class.tolist())) == len(instance.class_gpus) == len(alike)
    assert instance.unrestricted == all(all(nodes) for nodes in expected)


@pytest.mark.parametrize(
    ("job", "integral"),
    [
        (Job("a", duration=3, due=9), True),
        (Job("a", duration=3), True),
        (Job("a", arrival=0.5, duration=3), False),
        (Job("a", duration=3.5), False),
        (Job("a", duration=3, weight=0.1), False),
        (Job("a", duration=3, due=9.5), False),
        (Job("a", iterations=3, profile="p"), False),
    ],
)
def test_integral_means_arrivals_durations_weights_and_due_dates(job: Job, integral: bool) -> None:
    assert Instance([job], "1x1").integral is integral


def test_head_takes_the_first_jobs_to_arrive_and_keeps_their_order() -> None:
    arrivals = [5, 1, 5, 0, 1, 9]
    jobs = [Job(f"j{j}", arrival=r, duration=1) for j, r in enumerate(arrivals)]
    instance = Instance(jobs, "1x1", name="n", optimum={"objective": "makespan", "value": 1})
    assert instance.head(4).ids == ("j0", "j1", "j3", "j4")
    assert instance.head(1).ids == ("j3",)
    assert instance.head(0).n == 0
    assert instance.head(4).optimum is None
    assert instance.head(4).name == "n"
    assert instance.head(99) is instance


def test_another_cluster_or_other_jobs_drop_a_proven_optimum_and_replace_keeps_the_rest() -> None:
    optimum = {"objective": "makespan", "value": 1}
    instance = Instance([Job("a", duration=1)], "1x1", "n", "makespan", {"seed": 3}, optimum)
    moved = instance.with_cluster("2x2")
    assert (moved.cluster.gpus, moved.optimum, moved.name, moved.objective) == (4, None, "n", "makespan")
    assert instance.replace(jobs=instance.table, cluster="1x2").optimum is None
    assert instance.replace(cluster="1x2", optimum=optimum).optimum is not None
    renamed = instance.replace(name="m")
    assert (renamed.name, renamed.optimum, renamed.recipe) == ("m", optimum, {"seed": 3})
    with pytest.raises(RowErrors):
        Instance([Job("a", gpus=2, duration=1)], "1x2").with_cluster("1x1")


def test_an_instance_without_jobs_is_legal() -> None:
    for empty in (Instance([], "2x2"), Instance(pl.DataFrame(), "2x2"), Instance([FULL], MIXED).head(0)):
        assert (empty.n, empty.ids, empty.jobs, empty.integral, empty.unrestricted) == (0, (), [], True, True)
        assert empty.arrival.shape == empty.job_class.shape == (0,)
        assert len(empty.digest) == 64


# -- Where the clock of an instance begins: without rounding, and the same moment in every binary unit --------------------


NEVER = np.array([np.inf])


def test_it_is_the_first_arrival_where_nothing_is_rounded() -> None:
    assert epoch_of(np.array([1.7e9 + 5, 1.7e9]), NEVER) == 1.7e9
    assert epoch_of(np.array([0.25, 7.5]), NEVER) == 0.25
    assert epoch_of(np.zeros(0), np.zeros(0)) == 0


def test_times_that_are_as_far_apart_as_they_are_late_keep_their_clock() -> None:
    assert epoch_of(np.array([0.1, 0.9]), NEVER) == 0
    assert epoch_of(np.array([0.3, 1e9]), NEVER) == 0


@given(
    late=st.sampled_from([0.0, 1.0, 1e3, 1.7e9]),
    times=st.lists(st.floats(0, 1e4), min_size=1, max_size=6),
    early=st.floats(-3, 50),
    power=st.integers(-20, 20),
)
def test_no_time_is_rounded_and_a_binary_unit_moves_it_along(
    late: float, times: list[float], early: float, power: int
) -> None:
    arrival = late + np.array(times)
    due = np.array([np.inf, late + early])
    epoch = epoch_of(arrival, due)
    for t in (*arrival.tolist(), late + early):
        assert Fraction(t - epoch) == Fraction(t) - Fraction(epoch)
    assert epoch <= arrival.min()
    assert epoch_of(arrival * 2.0**power, due * 2.0**power) == epoch * 2.0**power


def test_an_optimum_on_a_clock_of_its_own_is_written() -> None:
    optimum = {"objective": "makespan", "class": "gang-nonpreemptive", "value": 6.5, "proved_by": ["me"]}
    instance = Instance([Job("a", arrival=5, duration=1.5)], "1x1", optimum=optimum)
    assert instance.relative.to_json()["optimum"]["value"] == 1.5
    assert type(instance.relative.to_json()["optimum"]["value"]) is float


@given(st.lists(st.text(min_size=1), unique=True, max_size=4))
def test_ids_are_joined_as_json_writes_them(ids: list[str]) -> None:
    assert Instance([Job(name, duration=1) for name in ids], "1x1")._ids_text() == json.dumps(ids)


def test_other_weights_and_due_dates_are_those_of_a_new_instance() -> None:
    instance = Instance([FULL, Job("plain", arrival=9, duration=1)], MIXED)
    weight, due = np.array([0.5, 4.0]), np.array([11.0, 12.0])
    changed = instance.table.with_columns(weight=pl.Series(weight))
    for made, table in (
        (instance.weighted_by(weight), changed),
        (instance.weighted_by(weight, due), changed.with_columns(due=pl.Series(due))),
    ):
        new = instance.replace(jobs=table)
        assert (made.digest, made.epoch, made.relative.digest) == (new.digest, new.epoch, new.relative.digest)
        for name, column in new._arrays.items():
            assert np.array_equal(made._arrays[name], column, equal_nan=column.dtype.kind == "f")


def test_a_column_that_states_nothing_is_not_written(tmp_path: Path) -> None:
    instance = Instance([Job("a", duration=1), Job("b", duration=2)], "1x1")
    instance.save(tmp_path / "i.parquet")
    assert pl.read_parquet(tmp_path / "i.parquet").columns == ["id", "arrival", "gpus", "duration"]
    assert Instance.load(tmp_path / "i.parquet") == instance
