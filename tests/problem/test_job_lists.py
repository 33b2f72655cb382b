"""Jobs of a JSON document read by columns: the same jobs as those of the whole document, and nothing that it refuses."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched.errors import InputError, RowErrors
from optsched.problem import instance_file, job_lists
from optsched.problem.instance import Instance
from optsched.problem.job_table import normal_table

CLUSTER = {"nodes": [{"gpus": 8}]}
WHOLE = {"arrival": 0, "gpus": 1, "duration": 5}
VALUES: dict[str, list[Any]] = {
    "id": ["a", "}, {", "b:c", 'd"e', "é", None, "", 3],
    "arrival": [0, 1.5, 7, -0.0, None, -1, True, "2", 10**20, float("nan")],
    "gpus": [1, 2, 1.0, 0, True, None, 2**63],
    "duration": [1, 2.5, 10**15, None, 0, "x", [1]],
    "due": [None, 3, -4.5, False, 10**400],
    "user": ["u", None, "u]", "\\", 1],
    "gpu_types": [["V100"], [], None, ["a", 1], "V100"],
    "ran": [[[0, 1]], [[0, 1.5, 2]], None, [[True, 1]], [[{"a": 1}]], []],
    "priority": [1],
}
TEXTS = [
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": []}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs" :\n[ ] , "name": "x"}',
    '{"jobs": [{"duration": 1}, {"duration": 2, "id": "z"}], "format": "optsched-instance/1", "cluster": %C}',
    '{"recipe": {"jobs": [{"duration": 1}]}, "format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 2}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 2}], "recipe": {"jobs": [{"duration": 1}]}}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 2}], "jobs": [{"duration": 1}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 2, "duration": 3}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 2, "durati\\u006fn": 3}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"id": "q:r", "duration": 3}, {"id": "s", "duration" : 3}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"id": "\\ud800", "duration": 3}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": NaN}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 1e999}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 1},]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 1} {"duration": 1}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 1}, 7]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{}]}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 1}]',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": [{"duration": 1}]} x',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": {"duration": 1}}',
    '{"format": "optsched-instance/1", "cluster": %C, "jobs": "optsched: the jobs are read by columns"}',
    '{"format": "optsched-instance/1", "cluster": %C, "profiles": {"jobs": [{"duration": 1}]}, "jobs": []}',
    '[{"jobs": [{"duration": 1}]}]',
    "",
]


def read(make: Callable[[bytes, str], Any], content: bytes) -> Any:
    """The jobs and the rest of a document; the text of its error if it is refused."""
    try:
        read = make(content, "jobs.json")
        return None if read is None else (read[0].model_dump(exclude={"jobs"}), normal_table(read[1]))
    except RowErrors as error:
        return error.problems
    except InputError as error:
        return str(error)


def compared(content: bytes) -> bool:
    """Compare both readers; True if the document is read by columns."""
    whole, by_columns = read(instance_file._whole, content), read(instance_file._by_columns, content)
    if by_columns is None:
        return False
    assert isinstance(whole, tuple), whole
    assert whole[0] == by_columns[0]
    assert whole[1].equals(by_columns[1])
    return True


@pytest.mark.parametrize("piece", [1, 30, 1 << 22])
def test_texts(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_lists, "PIECE", piece)
    cluster = json.dumps(CLUSTER)
    assert [k for k, text in enumerate(TEXTS) if compared(text.replace("%C", cluster).encode())] == [0, 1, 2, 4, 8]


@pytest.mark.parametrize("piece", [1, 100])
def test_random_jobs(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_lists, "PIECE", piece)
    draw, count = random.Random(1), 0
    for k in range(200):
        jobs = []
        for _ in range(draw.randint(1, 6)):
            strange = draw.sample(sorted(VALUES), draw.choice((0, 0, 1, 2)))
            jobs.append({**WHOLE, **{name: draw.choice(VALUES[name][: 2 if k % 2 else None]) for name in strange}})
        document = {"format": "optsched-instance/1", "cluster": CLUSTER, "jobs": jobs, "name": "}, {"}
        count += compared(json.dumps(document, indent=draw.choice((None, 1))).encode())
    assert 100 <= count <= 170  # legal documents are read by columns


def test_a_job_without_id_is_called_by_its_position_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_lists, "PIECE", 1)
    jobs = [{"duration": 1}, {"duration": 2, "id": "x"}, {"duration": 3, "arrival": 1}]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"format": "optsched-instance/1", "cluster": CLUSTER, "jobs": jobs}))
    instance = Instance.load(path)
    assert instance.ids == ("1", "x", "3")
    assert instance.arrival.tolist() == [0, 0, 1]


def test_errors_name_every_job(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    jobs = [{"duration": 1}, {"duration": -2}, {"duration": True}]
    path.write_text(json.dumps({"format": "optsched-instance/1", "cluster": CLUSTER, "jobs": jobs}))
    with pytest.raises(RowErrors, match="2 of 3 jobs invalid"):
        Instance.load(path)
