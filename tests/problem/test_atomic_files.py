"""Files that nobody vouches for: atomic writes, JSON, Parquet that is damaged, and small files of large cost."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import one_line

from optsched.bounds.certificate import Certificate
from optsched.check.referee import check_file
from optsched.classes.elastic.bounds.modes_of_elastic import modes_of_elastic
from optsched.errors import InputError
from optsched.plot.plot_file import plot_file
from optsched.policies.simulate import simulate
from optsched.problem.atomic_files import (
    MOST_JSON,
    atomic_folder,
    atomic_path,
    discard_unfinished,
    read_bytes,
    write_atomic,
)
from optsched.problem.cluster import MAX_GPUS, Cluster, NodeGroup
from optsched.problem.documents import parse_json
from optsched.problem.instance import Instance, Job
from optsched.problem.parquet import parquet_metadata, read_parquet
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Schedule
from optsched.speeds.goodput_rates import Goodputs
from optsched.verifier.judgement import verify
from optsched.verifier.refusal import Refused

# -- Atomic writes --------------------------------------------------------------------------------------------------------


def test_text_and_bytes_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    write_atomic(path, "grüße\n")
    assert read_bytes(path) == "grüße\n".encode()
    write_atomic(str(path), b"\x00\xff")
    assert read_bytes(str(path)) == b"\x00\xff"
    assert [file.name for file in tmp_path.iterdir()] == ["f.txt"]


def test_a_new_file_has_the_rights_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "f", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_file_and_no_temporary(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "f.txt"
    write_atomic(path, "old")

    def interrupted() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half of the n")
            assert temporary.parent == path.parent  # so that renaming is atomic
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["f.txt"]


def test_where_nothing_can_be_written_or_read_the_error_is_one_line(tmp_path: Path) -> None:
    for path, what in ((tmp_path, "this is a folder"), (tmp_path / "no" / "f", "No such file or directory")):
        with one_line(begins=f"{path}: cannot write: {what}"):
            write_atomic(path, "x")
    with pytest.raises(InputError, match=r"f: no such file$"):
        read_bytes(tmp_path / "f")
    with pytest.raises(InputError, match="cannot read: Is a directory"):
        read_bytes(tmp_path)


# -- JSON that nobody vouches for -----------------------------------------------------------------------------------------


GOOD = [
    (b'{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
    (b'"\\ud83d\\ude00"', "\U0001f600"),
    (b"\xef\xbb\xbf[1]", [1]),
    (b'["' + b"[" * 300 + b'"]', ["[" * 300]),
    (b"[" + b"[]," * 300 + b"[]]", [[]] * 301),
]


@pytest.mark.parametrize(("content", "value"), GOOD)
def test_documents(content: bytes, value: object) -> None:
    assert parse_json(content, "f.json", "a list") == value


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "c: a key is given twice"),
        (b"[" * 300 + b"]" * 300, "not a JSON document that can be read: recursion limit"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "not a JSON document that can be read: recursion limit"),
        (b"[" * 100_000, "not a JSON document"),
        (b'["\\ud800"]', "not a JSON document that can be read: "),
        (b'{"\\udfff": 1}', "not a JSON document that can be read: "),
        (b"9" * 5000, "not a JSON document"),
        (b"[1, 2", "not a JSON document"),
        (b"\xff", "not a JSON document"),
        (b"", "not a JSON document"),
    ],
)
def test_what_is_refused_is_one_line(content: bytes, what: str) -> None:
    with one_line(what, begins="f.json"):
        parse_json(content, "f.json", "a list")


@pytest.mark.parametrize(
    "changes",
    [
        '"profiles": {"p": {"stages": [{"replicas": 9223372036854775808, "forward": 1, "backward": 1}]}}',
        '"profiles": {"p": {"stages": [{"replicas": 1, "forward": 1, "backward": 1}], "micro_batches": 1'
        + "0" * 400
        + "}}",
        '"scalings": {"p": {"compute": 1, "per_sample": 1, "iterations": [[1' + "0" * 400 + ", 5]]}}",
        '"scalings": {"p": {"compute": 1, "per_sample": 1, "most_local": 1' + "0" * 400 + "}}",
        '"throughputs": {"p": [{"gpu": "G", "gpus": 1' + "0" * 400 + ', "together": 1}]}',
        '"name": "a", "name": "b"',
    ],
)
def test_numbers_and_keys_of_an_instance(changes: str, written: Any) -> None:
    text = '{"format": "optsched-instance/1", "cluster": {"nodes": [{"gpus": 1}]}, "jobs": [{"duration": 1}], '
    path = written(text + changes + "}")
    with one_line() as caught:
        Instance.load(path)
    assert len(str(caught.value)) < 500


# -- Parquet that nobody vouches for: one line where it is damaged, no table larger than its file can be ------------------


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    path = tmp_path / "table.parquet"
    table = pl.DataFrame({"id": [f"job-{k}" for k in range(50)], "x": np.linspace(0, 1, 50), "g": [[1, 2]] * 50})
    table.write_parquet(path, metadata={"key": "value"})
    return path.read_bytes()


def test_a_whole_file(content: bytes, tmp_path: Path) -> None:
    metadata, table = read_parquet(content, "t.parquet", "a table")
    assert metadata["key"] == "value"
    assert table.shape == (50, 3)
    assert parquet_metadata(content, "t.parquet", "a table")["key"] == "value"
    (tmp_path / "again.parquet").write_bytes(content)
    assert read_parquet(tmp_path / "again.parquet", "t.parquet", "a table")[1].equals(table)


def test_a_spoiled_file_is_one_line(content: bytes) -> None:
    rng, refused = np.random.default_rng(0), 0
    for _ in range(400):
        spoiled = bytearray(content)
        for place in rng.integers(4, len(content) - 8, 3):
            spoiled[place] = int(rng.integers(0, 256))
        try:
            read_parquet(bytes(spoiled), "t.parquet", "a table")
        except InputError as error:
            refused += 1
            assert str(error).startswith("t.parquet")  # noqa: PT017
    assert refused > 100


def test_a_truncated_file_is_one_line_wherever_it_is_cut(content: bytes) -> None:
    for cut in [*range(0, len(content), 53), len(content) - 1]:
        with one_line("t.parquet: not a Parquet file, or a truncated one"):
            read_parquet(content[:cut], "t.parquet", "a table")


def test_rows_that_so_few_bytes_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    pl.DataFrame({"x": pl.zeros(20_000_000, eager=True)}).write_parquet(path)
    assert path.stat().st_size < 500_000
    with pytest.raises(InputError, match="claims 20000000 rows"):
        read_parquet(path, path, "a table")


# -- Small files of large cost: refused by one line, before the work ------------------------------------------------------


ONE = Instance([Job("a", duration=1)], "1x1")
READERS: dict[str, Callable[[Path], Any]] = {
    "instance": Instance.load,
    "verify": lambda path: check_file(path, ONE),
    "certificate": Certificate.load,
    "schedule": lambda path: Schedule.load(path, ONE),
    "plot": lambda path: plot_file(path, path.with_suffix(".png")),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_long_document_is_refused_by_its_size(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.json"
    path.touch()
    os.truncate(path, 3 * 2**29)
    # a reader that reads before it looks would need more than this
    monkeypatch.setattr("optsched.problem.documents.json.loads", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(
        InputError, match=rf"long\.json, bytes = {3 * 2**29}: too long \(expected: at most {MOST_JSON}\)"
    ):
        READERS[reader](path)


def test_a_device_without_end_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optsched.problem.atomic_files.MOST_JSON", 10**6)
    with pytest.raises(InputError, match="bytes = 1000001: too long"):
        check_file("/dev/zero", ONE)


def test_a_cluster_of_many_nodes_is_refused(written: Any) -> None:
    jobs = [{"duration": 1}]
    for nodes in ([{"count": MAX_GPUS + 1, "gpus": 1}], [{"count": MAX_GPUS, "gpus": 1}, {"gpus": 1}]):
        path = written({"format": "optsched-instance/1", "cluster": {"nodes": nodes}, "jobs": jobs})
        with pytest.raises(InputError, match=f"gpus = {MAX_GPUS + 1}: .*at most {MAX_GPUS}"):
            Instance.load(path)


@pytest.mark.parametrize("policy", ["makespan-rounds", "hadar", "gavel"])
def test_jobs_of_too_many_rounds_are_refused(policy: str) -> None:
    instance = Instance([Job("a", duration=5), Job("long", duration=1e13), Job("b", duration=1e13)], "1x1")
    what = rf"{policy}: round = 360\S*: too short for job 'long' of 1e\+13 s \(expected: .* at most 1e\+06 rounds"
    with pytest.raises(InputError, match=what):
        simulate(instance, policy)


# --- rates of elastic jobs: each profile is small work, all are not ------------------------------------------------------


def elastic(profiles: int) -> Instance:
    rows = tuple((990_000 + 100 * k, 1000.0) for k in range(20))
    scaling = Scaling(0.01, 0.001, memory=1.0, memory_per_sample=1.0, iterations=rows)
    jobs = [Job(f"j{k}", iterations=1, profile=f"m{k}", batch_size=990_000) for k in range(profiles)]
    nodes = NodeGroup(gpus=32, count=4, gpu_memory=2e6)
    return Instance(jobs, Cluster((nodes,)), scalings=dict.fromkeys((job.profile for job in jobs), scaling))


def test_rates_of_all_profiles_are_counted_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = elastic(8)
    Goodputs(instance).require_few()
    monkeypatch.setattr("optsched.speeds.goodput_rates.MOST_STEPS", 100_000)
    monkeypatch.setattr("optsched.speeds.job_goodput.JobGoodput.limit", lambda *_: pytest.fail("work before the limit"))
    with pytest.raises(InputError, match="rates of elastic jobs take too much work"):
        modes_of_elastic(instance)


@pytest.mark.release
def test_the_verifier_compares_digests_first_and_counts_all_profiles() -> None:
    instance = elastic(60)
    names = {"kind": "elastic-alone", "objective": "makespan", "class": "elastic"}
    for digest, rule, what in (
        ("0" * 64, "instance", "another instance"),
        (instance.digest, "unjudged", "more than 100000"),
    ):
        with pytest.raises(Refused) as caught:
            verify({"instance": digest, **names, "value": "1/1", "data": {}}, instance.to_json())
        assert (caught.value.rule, what in str(caught.value)) == (rule, True)


def test_a_folder_that_is_not_finished_is_discarded_with_its_files(tmp_path: Path) -> None:
    with atomic_folder(tmp_path) as temporary:
        (temporary / "schedule.json").write_text("{")
        discard_unfinished()
        assert list(tmp_path.iterdir()) == []
    with atomic_folder(tmp_path) as temporary:
        assert temporary.parent == tmp_path
    assert list(tmp_path.iterdir()) == []
