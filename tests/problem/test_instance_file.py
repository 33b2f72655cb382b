"""Instance files: round trips, the published schema, and every way in which a file can be wrong."""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from refusals import one_line

from optsched.errors import InputError, RowErrors
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.documents import short_number
from optsched.problem.instance import Instance, Job
from optsched.problem.instance_file import json_schema
from optsched.problem.schedule import Schedule

SCHEMA = Path(__file__).parents[2] / "instances" / "schema.json"
CLUSTER = Cluster(
    (
        NodeGroup(count=2, gpus=8, gpu="V100", gpu_memory=34359738368, nic_bandwidth=1.25e9, intra_bandwidth=1.5e11),
        NodeGroup(gpus=4, gpu="K80", storage_bandwidth=2e9),
    )
)
WHOLE = Instance(
    [
        Job("a", arrival=21, duration=3, weight=1, due=40),
        Job("b ü", arrival=0.1, gpus=8, duration=1 / 3, weight=0, user="u", group="g", model="m", gpu_memory=1e9),
        Job("c", iterations=1e6, profile="resnet", gpu_types=("V100", "K80")),
        Job("d", duration=1, gpu_types=("v100",)),
    ],
    CLUSTER,
    "whole",
    "total_weighted_completion_time",
    {"name": "by hand", "seed": None, "parameters": {"n": 4}},
    {"objective": "makespan", "class": "gang", "value": 24, "proved_by": ["eye"], "note": "an extra field"},
)
EMPTY = Schedule.from_segments(WHOLE, [])
DOCUMENT: dict[str, Any] = {
    "format": "optsched-instance/1",
    "cluster": {"nodes": [{"gpus": 8}]},
    "jobs": [{"id": "a", "duration": 3}, {"id": "b", "duration": 2}],
}

finite = st.floats(0, 1e12, allow_nan=False)
jobs_of_any_kind = st.builds(
    Job,
    id=st.text(min_size=1).filter(lambda text: text.isprintable()),
    arrival=finite,
    gpus=st.integers(1, 20),
    duration=st.floats(1e-9, 1e12),
    weight=st.just(0.0) | st.floats(1e-18, 1e12),
    due=st.none() | st.floats(-1e12, 1e12),
    user=st.none() | st.text(),
    gpu_memory=st.none() | st.just(1e9),
    gpu_types=st.none() | st.just(("V100", "k80")),
    restart=st.none() | finite,
    checkpoint=st.none() | finite,
)


def assert_equal(one: Instance, other: Instance) -> None:
    assert other.table.equals(one.table)
    for part in ("cluster", "name", "objective", "recipe", "optimum", "digest"):
        assert getattr(other, part) == getattr(one, part)


@pytest.mark.parametrize("suffix", [".json", ".parquet", ".JSON"])
@pytest.mark.parametrize(
    "instance", [WHOLE, WHOLE.head(0), Instance([], "1x1"), Instance([Job("x", duration=1)], "2x1")]
)
def test_what_is_saved_is_what_is_loaded(tmp_path: Path, instance: Instance, suffix: str) -> None:
    path = tmp_path / f"instance{suffix}"
    instance.save(path)
    assert_equal(instance, Instance.load(path))
    assert_equal(instance, Instance.load(str(path)))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(jobs_of_any_kind, max_size=5, unique_by=lambda job: job.id))
def test_every_bit_survives_both_formats(tmp_path: Path, jobs: list[Job]) -> None:
    instance = Instance([job for job in jobs if job.gpu_memory is None or job.gpus <= 20], CLUSTER)
    for path in (tmp_path / "i.json", tmp_path / "i.parquet"):
        instance.save(path)
        assert_equal(instance, Instance.load(path))


def test_a_file_name_with_brackets_is_a_file_name(tmp_path: Path) -> None:
    path = tmp_path / "run[1]*.parquet"
    WHOLE.save(path)
    assert_equal(WHOLE, Instance.load(path))


def test_defaults_may_be_left_out_and_jobs_without_id_are_numbered(load: Callable[[Any], Instance]) -> None:
    instance = load({**DOCUMENT, "jobs": [{"duration": 3}]})
    assert (instance.jobs, instance.cluster) == ([Job("1", duration=3)], Cluster.parse("1x8"))


def test_the_example_of_the_documentation_loads(load: Callable[[Any], Instance]) -> None:
    instance = load(
        '{"format": "optsched-instance/1", "name": "n", "cluster": {"nodes": [{"count": 1, "gpus": 8, "gpu": "V100",'
        ' "gpu_memory": 34359738368, "nic_bandwidth": 1.25e9, "intra_bandwidth": 1.5e11}]}, "jobs": [{"id": "a",'
        ' "arrival": 21, "gpus": 1, "duration": 3, "weight": 1, "due": 40}], "objective": "total_weighted_completion_time"}'
    )
    assert instance.job(0) == Job("a", arrival=21, duration=3, due=40)
    assert instance.objective == "total_weighted_completion_time"


def test_files_are_made_for_people_to_read(tmp_path: Path) -> None:
    path = tmp_path / "i.json"
    WHOLE.save(path)
    row = '  {"id": "a", "arrival": 21, "gpus": 1, "duration": 3, "due": 40},'  # one line a job, 3 and not 3.0
    assert row in path.read_text().split("\n")
    assert json.loads(path.read_text()) == json.loads(json.dumps(WHOLE.to_json()))


@pytest.mark.parametrize(
    ("value", "short"),
    [(3.0, 3), (3.5, 3.5), (-0.0, 0), (2.0**60, 2**60), (math.inf, math.inf), (None, None), ("x", "x")],
)
def test_short_number(value: Any, short: Any) -> None:
    assert short_number(value) == short
    assert type(short_number(value)) is type(short)


# -- the schema -----------------------------------------------------------------------------------------------------------


def test_the_shipped_schema_is_current() -> None:
    assert json.loads(SCHEMA.read_text()) == json_schema(), "write instances/schema.json anew from json_schema()"


@pytest.mark.parametrize("instance", [WHOLE, WHOLE.head(0), Instance([], "1x1")])
def test_what_is_written_obeys_the_schema(instance: Instance) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    jsonschema.validate(json.loads(json.dumps(instance.to_json())), json_schema())


# -- what is refused ------------------------------------------------------------------------------------------------------


@pytest.fixture
def load(written: Callable[..., Path]) -> Callable[[Any], Instance]:
    """Load a document (as JSON) or raw text."""
    return lambda document: Instance.load(written(document, "bad.json"))


def test_an_unknown_field_of_a_job_is_one_line_with_file_and_row(
    load: Callable[[Any], Instance], tmp_path: Path
) -> None:
    with pytest.raises(RowErrors) as caught:
        load({**DOCUMENT, "jobs": [DOCUMENT["jobs"][0], DOCUMENT["jobs"][1] | {"colour": "red"}]})
    summary, line = str(caught.value).split("\n")
    assert summary.startswith(f"{tmp_path / 'bad.json'}: 1 ")
    assert line.startswith(f"  {tmp_path / 'bad.json'}, job 2 ('b', line ")
    assert "(expected: " in line


BAD_DOCUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"format": "optsched-instance/2"}, "format = 'optsched-instance/2'"),
    ({"cluster": {}}, "cluster.nodes"),
    ({"cluster": {"nodes": []}}, "cluster.nodes"),
    ({"cluster": {"nodes": [{"gpus": 0}]}}, "cluster.nodes.0.gpus = 0"),
    ({"cluster": {"nodes": [{"gpus": 8, "gpu_memory": "16GB"}]}}, "cluster.nodes.0.gpu_memory = '16GB'"),
    ({"cluster": {"nodes": [{"gpus": 8, "cpus": 4}]}}, "cluster.nodes.0.cpus = 4"),
    ({"cluster": {"nodes": [{"gpus": 8, "count": 10**12}]}}, "the cluster is too large"),
    ({"cluster": "8x8"}, "cluster = '8x8'"),
    ({"name": None}, "name = None"),
    ({"objective": "speed"}, "no objective named 'speed'"),
    ({"jobs": {}}, "jobs"),
    ({"jobs": [3]}, "jobs.0 = 3"),
    ({"author": "me"}, "author = 'me'"),
    ({"recipe": 3}, "recipe = 3"),
    ({"optimum": {"objective": "makespan"}}, "optimum.value"),
    ({"optimum": {"objective": "makespan", "value": math.nan}}, "optimum.value = nan"),
    ({"optimum": {"objective": "makespan", "value": 10**400}}, "optimum.value: invalid"),
    ({"optimum": {"objective": "makespan", "value": -1e301}}, "optimum.value = -1e+301: invalid"),
    ({"optimum": {"objective": "nonsense", "value": 1}}, "optimum.objective = 'nonsense': invalid"),
    ({"optimum": {"objective": "makespam", "value": 1}}, "did you mean makespan"),
    ({"optimum": {"objective": "makespan", "class": "xyz", "value": 2}}, "optimum.class = 'xyz': invalid"),
]


@pytest.mark.parametrize(("changes", "what"), BAD_DOCUMENTS, ids=[str(changes)[:50] for changes, _ in BAD_DOCUMENTS])
def test_a_bad_document_is_one_line_with_file_and_field(
    load: Callable[[Any], Instance], tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    with one_line(what, begins=tmp_path / "bad.json"):
        load({**DOCUMENT, **changes})


@pytest.mark.parametrize("field", ["format", "cluster", "jobs"])
def test_required_parts_are_required(load: Callable[[Any], Instance], field: str) -> None:
    with pytest.raises(InputError, match=f", {field}: missing"):
        load({name: part for name, part in DOCUMENT.items() if name != field})


TEXT = json.dumps(DOCUMENT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        TEXT + "x",
        "\ufeff" + TEXT,
        b"\xff\xfe" + TEXT.encode("utf-16-le"),
        TEXT.encode()[:-3] + b"\xff",
        '{"format": "optsched-instance/1"',
        *(TEXT[:cut] for cut in range(1, len(TEXT), 17)),
    ],
)
def test_what_is_not_json_is_one_line(load: Callable[[Any], Instance], text: str | bytes) -> None:
    with one_line("bad.json: not a JSON document"):
        load(text)


@pytest.mark.parametrize("text", ["[]", "3", "null", '"text"', "true"])
def test_json_that_is_not_an_object_is_one_line(load: Callable[[Any], Instance], text: str) -> None:
    with one_line("bad.json, document"):
        load(text)


@pytest.mark.parametrize(
    ("metadata", "what"),
    [
        (None, "a Parquet table without the key 'optsched-instance'"),
        ("{bad", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("{}", "format: missing"),
        ('{"format": "optsched-instance/1"}', "cluster: missing"),
    ],
)
def test_a_parquet_table_that_is_not_an_instance_is_one_line(tmp_path: Path, metadata: str | None, what: str) -> None:
    path = tmp_path / "table.parquet"
    table = pl.DataFrame({"id": ["a"], "duration": [1.0]})
    table.write_parquet(path, metadata={} if metadata is None else {"optsched-instance": metadata})
    with one_line(what, begins=path):
        Instance.load(path)


@pytest.mark.parametrize("name", ["folder.json", "folder.parquet"])
def test_a_folder_is_not_a_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=name):
        Instance.load(tmp_path / name)
    with pytest.raises(InputError, match="this is a folder"):
        WHOLE.save(tmp_path / name)


@pytest.mark.parametrize("name", ["instance.txt", "instance"])
def test_the_name_says_the_format(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TEXT)
    for act in (Instance.load, WHOLE.save, EMPTY.save):
        with pytest.raises(InputError, match=r"cannot tell the format .* \(expected: .json or .parquet\)"):
            act(tmp_path / name)
    assert (tmp_path / name).read_text() == TEXT


# -- whole or not at all --------------------------------------------------------------------------------------------------


FULL = "No space left on device"


@pytest.mark.parametrize("save", [WHOLE.head(1).save, EMPTY.save])
@pytest.mark.parametrize(
    ("suffix", "error"),
    [
        (".json", OSError(errno.ENOSPC, FULL)),
        (".parquet", OSError(errno.ENOSPC, FULL)),
        (".parquet", pl.exceptions.ComputeError(f"parquet: underlying IO error: {FULL} (os error {errno.ENOSPC})")),
    ],
)
def test_a_full_disk_leaves_the_old_file_and_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[[Path], None], suffix: str, error: Exception
) -> None:
    path = tmp_path / f"i{suffix}"
    WHOLE.save(path)
    before = path.read_bytes()

    def full(*args: Any, **kwargs: Any) -> None:
        next(each for each in args if isinstance(each, Path)).open("wb").close()
        raise error

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(InputError, match=rf"i\{suffix}: cannot write: {FULL}$"):
        save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
@pytest.mark.parametrize(
    "recipe", [{"x": np.int64(3)}, {"x": math.nan}, {"x": object()}], ids=["numpy", "nan", "object"]
)
def test_a_recipe_that_json_cannot_hold_is_an_input_error_and_no_file(
    tmp_path: Path, suffix: str, recipe: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="the recipe or the optimum cannot be written"):
        WHOLE.replace(recipe=recipe).save(tmp_path / f"i{suffix}")
    assert list(tmp_path.iterdir()) == []
