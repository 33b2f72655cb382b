"""`advise` and the pages of `advise` and `score`: what is printed, names that are markup, mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optsched.problem.instance import Instance, Job

ROWS = """id,start,end,arrival,gpus,walltime,user
a,0,40,0,3,100,ann
b,40,90,10,4,50,<script>alert(1)</script>
c,90,150,20,1,80,ann
d,90,120,20,1,90,bob
e,90,110,30,1,20,bob
"""


@pytest.fixture
def log(tmp_path: Path) -> str:
    file = tmp_path / "log.csv"
    file.write_text(ROWS)
    return f"csv:{file}"


def test_advise_prints_the_sentence_and_four_tables(screen: Any, log: str) -> None:
    said = screen(200, "advise", log, "--cluster", "1x4")
    out = said.shown
    assert out.startswith("The jobs of these 2 minutes took 430 job-seconds from submission")
    assert "EASY with your users' limits would have avoided 40 of them." in said.words
    for text in ("user-limits", "tiresias:restart=60", "users worse off", "gpus=+10%", "1x5", "promised", "100.0 %"):
        assert text in out, text
    assert "a restart costs 60 s" in out
    assert "knowledge: clairvoyant (knows the processing time of a job at its arrival), predicted (" in said.words


def test_the_document_and_the_options(command: Any, log: str) -> None:
    options = ("--only", "-p", "easy", "-p", "srtf", "--restart", "2m", "--what-if", "cluster=2x4", "--draws", "10")
    document = command("advise", log, "--cluster", "1x4", *options, "--json").document
    assert {entry["policy"] for entry in document["candidates"]} == {"as logged", "easy", "srtf:restart=120"}
    assert [entry["gpus"] for entry in document["what_if"]] == [8]
    assert document["restart"] == 120


@pytest.mark.parametrize("name", ["advise", "score"])
def test_the_page_has_the_sentence_and_names_cannot_become_markup(
    command: Any, log: str, tmp_path: Path, name: str
) -> None:
    page = tmp_path / "page.html"
    more = ["--by", "user"] if name == "score" else []
    done = command(name, log, "--cluster", "1x4", *more, "--report", str(page))
    assert f"wrote {page}" in done.out
    text = page.read_text()
    assert '<p class="lead">The jobs of these 2 minutes took 430 job-<wbr>seconds from submission' in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert f"optsched {name} csv:" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--what-if", "more"], "what-if = 'more': not a change of the cluster"),
        (["--only"], "no policy is named"),
        (["-p", "esay"], "there is no policy named 'esay'"),
        (["--restart", "soon"], "restart"),
        (["--report", "page.pdf"], "page.pdf"),
    ],
)
def test_a_mistake_is_one_line(command: Any, log: str, options: list[str], said: str) -> None:
    done = command("advise", log, "--cluster", "1x4", *options)
    assert said in done.mistake


def test_jobs_that_do_not_fit_are_left_out_of_both_sides(screen: Any, log: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = screen(300, "advise", log, "--cluster", "1x4", "--what-if", "gpus=-25%", "--report", str(page)).shown
    assert "gpus=-25%, 4 of 5 jobs" in shown
    assert "gpus=-25%: without 1 job too large for that cluster; avoided compares the other 4, which queued " in shown
    assert "Where some jobs do not fit, what is avoided compares only those that do." in page.read_text()


def test_a_log_whose_jobs_name_gpu_types_says_what_reservations_count(screen: Any, tmp_path: Path) -> None:
    file = tmp_path / "typed.json"
    jobs = [Job("a", 0, 1, 10, walltime=20), Job("b", 0, 1, 10, walltime=20, gpu_types=("V100",))]
    for kept, said in ((jobs, True), (jobs[:1], False)):
        Instance(kept, "1x1:V100+1x1:P100").save(file)
        words = screen(200, "advise", str(file), "--only", "-p", "fifo", "-p", "easy").words
        assert ("reservations count GPUs of all types, but jobs name types" in words) == said


def test_one_gpu_has_no_smaller_cluster(screen: Any, tmp_path: Path) -> None:
    file = tmp_path / "one.csv"
    file.write_text("id,start,end,arrival,gpus\na,0,40,0,1\n")
    shown = screen(200, "advise", f"csv:{file}", "--cluster", "1x1").shown
    assert "gpus=+10% (rounded: +100 %)" in shown
    assert "gpus=-10%" not in shown
