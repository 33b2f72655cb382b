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
    assert text.startswith(
        "The jobs of these 60 seconds took 104 job-seconds from submission to completion, at most 1."
    )
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


def test_long_tables_weeks_dates_and_units(screen: Any, tmp_path: Path) -> None:
    week, start = 7 * 86400, 1_772_352_000  # 2026-03-01 08:00 UTC
    ran = [(start + k * week, start + k * week + 60) for k in range(12)]
    rows = [f"{k},{begin},{begin},{end},2,u{k}" for k, (begin, end) in enumerate(ran)]
    file = tmp_path / "log.csv"
    file.write_text("\n".join(["id,arrival,start,end,gpus,user", *rows]))
    asked = ("score", f"csv:{file}", "--cluster", "1x4", "--by", "user", "--by", "week")
    said = screen(COLUMNS, *asked, "--csv", tmp_path / "users.csv", "--report", tmp_path / "page.html").words
    assert said.startswith("The jobs of these 3 months (2026-03-01 to 2026-05-17) took 720 job-seconds")
    assert "2026-03-01 08:00 to 2026-05-17 08:01 (UTC)" in said
    assert "│2: 2026-03-08 │" in said
    assert "and 2 more users: --all shows all, --by user --csv FILE writes all" in said
    assert len((tmp_path / "users.csv").read_text().splitlines()) == 13
    page = (tmp_path / "page.html").read_text()
    assert "log: as logged (2026-03-01 to 2026-05-17)</title>" in page
    assert "job completion time: from the submission" in page
    assert "adadual" not in page
    assert "more users" not in screen(COLUMNS, *asked, "--all").words
    assert "3 of 12 jobs were submitted in it" in screen(COLUMNS, *asked, "--from", "2026-05-01", "--to", "90d").words


def test_a_page_of_nodes_says_nothing_of_gpus(command: Any, tmp_path: Path) -> None:
    recipe = {"name": "slurm", "parameters": {"counts": "node"}}
    jobs = [Job("a", 0, 2, 60, walltime=90, ran=((0, 60),), user="x"), Job("b", 0, 4, 50, ran=((60, 110),), user="y")]
    Instance(jobs, "4x1", "log", recipe=recipe).save(tmp_path / "i.json")
    for name, more in (("score", ["--by", "size"]), ("run", ["-p", "easy"]), ("advise", ["--only", "-p", "easy"])):
        done = command(name, tmp_path / "i.json", *more, "--report", tmp_path / "p.html")
        assert done.code == 0, done.err
        assert "GPU" not in done.out, name
        assert "GPU" not in (tmp_path / "p.html").read_text(), name
        assert "users' limits for easy: 1 of 2 jobs state none" in done.out or name == "score"


def test_the_document_of_a_log(command: Any, log: Path) -> None:
    document = command("score", log, "--json", "--objective", "makespan").document
    assert (document["policy"], document["value"], document["objective"]) == ("as logged", 60, "makespan")
    assert [entry["job"] for entry in document["inconsistencies"]["listed"]] == ["b"]


def test_a_source_without_a_log_is_refused(command: Any) -> None:
    assert "no job says when it ran (expected: a log with starts and ends" in command("score", "rigid-06-1").mistake


def test_run_begins_with_what_ran(screen: Any, command: Any, log: Path, tmp_path: Path) -> None:
    text = screen(COLUMNS, "run", log, "-p", "fifo", "-o", tmp_path / "result").words
    assert text.index("│as logged │ not stated") < text.index("│fifo │ non-clairvoyant")
    assert "queued GPU-h avoided: difference from as logged (" in text
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
