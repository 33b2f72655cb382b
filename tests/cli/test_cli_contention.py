"""Jobs with tasks through the command line: what a run writes can be verified, every mistake is one clear line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from problem.documents import put

pytestmark = pytest.mark.release

DOCUMENT: dict[str, Any] = {
    "format": "optsched-instance/1",
    "cluster": {"nodes": [{"count": 2, "gpus": 2, "gpu_memory": 16}]},
    "tasks": {"vgg": {"forward": 0.5, "backward": 1, "message": 8}, "lone": {"forward": 1, "backward": 1}},
    "contention": {"seconds_per_byte": 0.5, "penalty": 0.125},
    "jobs": [
        {"id": "a", "gpus": 3, "iterations": 2, "profile": "vgg", "gpu_memory": 8},
        {"id": "b", "gpus": 4, "iterations": 3, "profile": "vgg", "gpu_memory": 8},
        {"id": "c", "arrival": 1, "gpus": 1, "iterations": 3, "profile": "lone", "gpu_memory": 8},
    ],
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_a_run_is_bounded_written_and_verified(source: Path, tmp_path: Path, command: Any) -> None:
    out = tmp_path / "out"
    document = command("run", source, "--json", "-o", out).document
    assert [run["policy"] for run in document["runs"]] == ["srsf:k=1", "srsf:k=2", "ada-srsf", "leader-first"]
    for run in document["runs"]:
        assert run["bound"]["class"] == "task-sharing"
        assert run["ratio"] >= 1
        assert run["metrics"]["finished"] == 3
        assert run["metrics"]["gpu_hours"]["busy"] * 3600 == pytest.approx(1.5 * (6 + 12) + 6)
    written = sorted(path.name for path in out.iterdir())
    assert [name.partition("-")[0] for name in written] == [
        "certificate.json",
        "result.json",
        *["schedule"] * 4,
        *["tasks"] * 4,
    ]
    for name in written:
        if name != "result.json":
            assert command("verify", out / name, "--instance", source).code == 0, name
    assert command("bound", source, "--json").code == 0


def changed(change: Callable[[dict[str, Any]], Any], path: Path) -> None:
    document = json.loads(json.dumps(DOCUMENT))
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        (put("contention", "penalty", to=-0.125), ("-p", "ada-srsf"), ["ada-srsf", "eta >= 0", "-0.125"]),
        (put("contention", "penalty", to=-0.125), ("-p", "k-way"), ["k-way", "eta >= 0"]),
        (put("contention", "penalty", to=-0.5), (), ["contention.penalty", "> -0.5"]),
        (put("contention", "seconds_per_byte", to=0), (), ["seconds_per_byte", "0"]),
        (put("contention", to=...), (), ["contention", "missing", "'a'"]),
        (put("jobs", 1, "gpu_memory", to=17), (), ["row 2", "gpus = 4", "at most 0", "memory"]),
        (put("jobs", 1, "gpus", to=5), (), ["row 2", "gpus = 5", "at most 4"]),
        (put("tasks", "vgg", "message", to=0), (), ["tasks.vgg.message", "0", "greater than 0"]),
        (put("tasks", "vgg", "forward", to=-1), (), ["tasks.vgg.forward", "-1"]),
        (put("jobs", 0, "profile", to="vg"), (), ["row 1", "profile = 'vg'", "did you mean vgg"]),
        (put("jobs", 0, "iterations", to=2.5), (), ["row 1", "iterations = 2.5", "a whole number"]),
        (put("jobs", 0, "duration", to=2), ("-p", "ada-srsf"), ["ada-srsf", "some of these jobs have none"]),
        (lambda _: None, ("-p", "srsf+lwf:kappa=0"), ["lwf: kappa", "0", "an integer >= 1"]),
        (lambda _: None, ("-p", "srsf:k=0"), ["srsf: k", "an integer >= 1"]),
        (lambda _: None, ("-p", "ada-srsf:theta=-1"), ["theta", "-1"]),
        (lambda _: None, ("-p", "ada-srsf+consolidated"), ["consolidated", "whole GPUs", "lwf"]),
        (lambda _: None, ("-p", "srtf"), ["srtf", "whole jobs", "ada-srsf"]),
        (put("contention", "kinds", to=["vgg"]), (), ["contention.ratios", "square"]),
    ],
)
def test_a_mistake_is_one_clear_line(
    change: Callable[[dict[str, Any]], Any],
    arguments: tuple[str, ...],
    said: list[str],
    tmp_path: Path,
    command: Any,
) -> None:
    path = tmp_path / "bad.json"
    changed(change, path)
    err = command("run", path, *arguments, "-o", tmp_path / "out").refusal
    assert len(err.splitlines()) <= 2, err  # bad rows: a summary, then a line a row
    for part in said:
        assert part in err, err
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


def test_eta_below_zero_runs_under_rules_that_need_no_theorem(tmp_path: Path, command: Any) -> None:
    path = tmp_path / "in.json"
    changed(put("contention", "penalty", to=-0.125), path)
    document = command("run", path, "-p", "srsf:k=2", "-p", "ada-srsf:theta=0.4", "--json").document
    assert all(run["ratio"] >= 1 for run in document["runs"])


def test_what_is_not_made_for_jobs_with_tasks_says_so(source: Path, command: Any) -> None:
    for arguments in (("solve", source), ("bound", source, "--class", "gang")):
        assert "share GPUs" in command(*arguments).mistake
