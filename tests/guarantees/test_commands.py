"""``ratio``, and guarantees in ``run``, as a script sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guarantees.theorems import false_theorem, filed
from optsched.guarantees.list_scheduling import blocked_long_job
from optsched.problem.instance import Instance


def test_ratio_json_has_the_fields_of_the_contract(command: Any) -> None:
    code, out, _ = command("ratio", "wide-gangs", "-p", "tiresias", "-p", "srtf", "--json")
    assert code == 0
    document = json.loads(out)
    assert set(document) == {"suite", "objective", "policies"}
    assert (document["suite"], document["objective"]) == ("wide-gangs", "total_completion_time")
    assert [row["policy"] for row in document["policies"]] == ["tiresias", "srtf"]
    for row in document["policies"]:
        assert set(row) == {
            "policy",
            "knowledge",
            "worst",
            "worst_instance",
            "mean",
            "percentiles",
            "without",
            "instances",
            "guarantee",
        }
        assert row["worst"] == max(each["ratio"] for each in row["instances"])
        assert row["guarantee"] is None
        assert row["knowledge"] == {"tiresias": "non-clairvoyant", "srtf": "clairvoyant"}[row["policy"]]
        for each in row["instances"]:
            assert set(each) == {"instance", "objective", "value", "bound", "ratio", "ratio_to", "guarantee"}


def test_ratio_table(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # a narrower table stands in blocks
    code, out, _ = command("ratio", "single", "-p", "srtf", "-p", "fifo")
    assert code == 0
    assert "srpt-one-machine on total_completion_time: 7 hold, 0 open" in out
    assert "single-12-1" in out  # where fifo is worst


def test_the_objective_option(command: Any) -> None:
    assert (
        json.loads(command("ratio", "single", "-p", "sjf", "--objective", "makespan", "--json")[1])["objective"]
        == "makespan"
    )


def test_run_shows_a_guarantee_beside_its_own_objective_only(command: Any) -> None:
    own = command("run", "single-06-1", "-p", "srtf", "-p", "sjf")[1]
    words = " ".join(own.replace("│", " ").replace("┃", " ").split())
    assert "srpt-one-machine: <= 1 x optimum" in words
    other = command("run", "single-06-1", "-p", "srtf", "--objective", "total_flow_time")[1]
    words = " ".join(other.replace("│", " ").replace("┃", " ").split())
    assert "srpt-one-machine: holds, on total_completion_time" in words
    assert "<= 1 x optimum" not in other
    assert "guarantee" not in command("run", "single-06-1", "-p", "sjf")[1]


@pytest.mark.parametrize("into", ["folder", "here"])
def test_run_stops_at_a_violation_and_saves_the_instance(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, into: str
) -> None:
    monkeypatch.chdir(tmp_path)
    blocked_long_job(3).save("hard.json")
    place = tmp_path / "out" if into == "folder" else tmp_path
    extra = ["-o", "out"] if into == "folder" else []
    with filed(false_theorem()):
        code, out, err = command("run", "hard.json", "-p", "fifo", "-p", "list:by=longest", "--json", *extra)
    assert code == 1
    fifo, longest = json.loads(out)["runs"]  # the report is printed all the same
    assert fifo["guarantee"]["holds"] is False
    assert longest["guarantee"]["holds"] is True
    assert "fifo" in err
    assert "'false'" in err
    assert len(err.strip().splitlines()) == 1
    (saved,) = place.glob("violated-*.json")
    assert saved.name in err
    assert Instance.load(saved).digest == blocked_long_job(3).digest
    with filed(false_theorem()):
        assert command("run", saved, "-p", "fifo")[0] == 1  # it replays
    assert command("run", saved, "-p", "fifo")[0] == 0


def test_ratio_stops_at_a_violation(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite").mkdir()
    blocked_long_job(3).save("suite/hard.json")
    with filed(false_theorem()):
        code, out, err = command("ratio", "suite", "-p", "fifo", "--json")
    assert code == 1
    assert json.loads(out)["policies"][0]["guarantee"]["violated"] == ["suite/hard.json"]
    assert "fifo breaks the guarantee 'false'" in err
    assert list(tmp_path.glob("violated-*.json"))
