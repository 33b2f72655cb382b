"""``optsched score``, the row of the schedule that ran in ``run``, and schedules that are only starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optsched.io.sources import load
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job

COLUMNS = 160


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Jobs that ran in one order, of which another is better; the second starts before its submission."""
    jobs = [
        Job("a", 0, 1, 50, ran=((0, 50),)),
        Job("b", 60, 1, 5, ran=((50, 55),)),
        Job("c", 1, ran=((55, 60),), duration=5),
    ]
    Instance(jobs, "1x1", "log").save(tmp_path / "log.json")
    return tmp_path / "log.json"


def test_the_tables_of_a_log(screen: Any, log: Path) -> None:
    said = screen(COLUMNS, "score", log)
    text = said.words
    assert text.startswith("The jobs of these 60 seconds stayed 104 seconds, at most 1.")
    for part in (
        "│as logged │ not stated │",
        "the log is inconsistent in 1 place (1 arrival): arrival: job 'b' starts at 50 s, before its submission at 60 s",
        "lower bound",
        "┃week ┃",
        "┃size ┃",
    ):
        assert part in text, part
    assert "┃week" not in screen(COLUMNS, "score", log, "--by", "size").shown
    assert "no such groups" in screen(COLUMNS, "score", log, "--by", "user").mistake


def test_the_document_of_a_log(command: Any, log: Path) -> None:
    document = command("score", log, "--json", "--objective", "makespan").document
    assert (document["policy"], document["value"], document["objective"]) == ("as logged", 60, "makespan")
    assert [entry["job"] for entry in document["inconsistencies"]["listed"]] == ["b"]


def test_a_source_without_a_log_is_refused(command: Any) -> None:
    assert "no job says when it ran (expected: a log with starts and ends" in command("score", "rigid-06-1").mistake


def test_run_begins_with_what_ran(screen: Any, command: Any, log: Path, tmp_path: Path) -> None:
    text = screen(COLUMNS, "run", log, "-p", "fifo", "-o", tmp_path / "result").words
    assert text.index("│as logged │ not stated") < text.index("│fifo │ non-clairvoyant")
    assert "queued GPU-h avoided: difference from as logged, of whose " in text
    assert "as logged: the log is inconsistent (1 arrival): `optsched score` lists where" in text
    schedules = sorted(path.name for path in (tmp_path / "result").glob("schedule-*"))
    assert schedules == ["schedule-01-as-logged.json", "schedule-02-fifo.json"]
    again = command("run", log, "-p", "fifo", "-o", tmp_path / "result", "--json").document  # replaces its own kind
    assert [row["policy"] for row in again["runs"]] == ["as logged", "fifo"]


def test_a_job_that_never_ran_is_no_failure_of_a_run(screen: Any, tmp_path: Path) -> None:
    jobs = [Job("a", duration=5, ran=((0, 5),)), Job("b", duration=5)]
    Instance(jobs, "1x1", "log").save(tmp_path / "log.json")
    said = screen(COLUMNS, "run", tmp_path / "log.json", "-p", "fifo")
    assert "as logged: 1 job has no run in the log: b" in said.words
    assert "without 1 job that never ran: b" in screen(COLUMNS, "score", tmp_path / "log.json").words


def test_a_file_of_starts_is_scored_verified_and_drawn(command: Any, written: Any, tmp_path: Path) -> None:
    run = simulate(load("rigid-06-1"), "fifo")
    good = written({"starts": dict(zip(run.jobs["id"], run.jobs["start"], strict=True))}, "good.json")
    about = ("--instance", "rigid-06-1")
    assert command("score", good, *about, "--json").document["value"] == run.value()
    assert command("verify", good, *about).shown.endswith("good.json: the schedule holds\n")
    command("plot", good, *about, "-o", tmp_path / "p.svg").shown  # noqa: B018
    assert "it has starts and no GPUs" in command("plot", good, "-o", tmp_path / "p.svg").mistake
    early = written({"starts": [0] * 6}, "early.json")
    for done in (command("score", early, *about), command("verify", early, *about)):
        assert done.code == 1
        assert "arrival" in done.err
    done = command("score", early, *about, "--json")
    assert (done.code, done.json["holds"]) == (1, False)
    assert "starts: 1 = None" in command("verify", written({"starts": [None]}, "none.json"), *about).mistake
