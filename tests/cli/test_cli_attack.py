"""``attack`` on the command line."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

import optsched as osd
from cli.calls import call, one_line

pytestmark = pytest.mark.release

ASKED = ("--objective", "makespan", "--space", "whole-jobs:arrivals=false,gangs=false", "--workers", "1")


def test_it_prints_and_writes_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "worst.json"
    assert call("attack", "list", *ASKED, "--tries", "150", "-o", file) == 0
    out = capsys.readouterr().out
    assert "list: 1.5 = 3/2 times the optimum (makespan 3 against 2)" in out
    assert "it is blocked-long-job:m=2, whose ratio is 1.5" in out
    instance = osd.load(file)
    assert osd.simulate(instance, "list").value() == 3
    assert osd.solve(instance).value == 2


def test_json_says_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("attack", "list", *ASKED, "--tries", "150", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ratio"], found["ratio_exact"], found["ratio_to"], found["tries"]) == (1.5, "3/2", "optimum", 150)
    assert found["guarantees"][0]["id"] == "graham-list"
    assert found["instance"]["format"] == "optsched-instance/1"


def test_a_proof_says_of_what(capsys: pytest.CaptureFixture[str]) -> None:
    range_of = ("--jobs", "2", "--space", "whole-jobs:longest=3,latest=3")
    assert call("attack", "sjf", "--method", "milp", *range_of, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["proved_jobs"], found["method"]) == (2, "milp")
    assert found["space"] == "whole-jobs:jobs=2,gpus=1,weights=false,longest=3,latest=3"
    assert call("attack", "sjf", "--method", "milp", *range_of) == 0
    assert "latest=3 is worse: proved by HiGHS" in " ".join(capsys.readouterr().out.split())
    assert call("attack", "sjf", "--method", "milp", "--budget", "0.0001") == 0
    assert "the budget ended before anything was proved" in " ".join(capsys.readouterr().out.split())


def test_a_report_shows_both_schedules_and_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "attack.html"
    assert call("attack", "list", *ASKED, "--tries", "60", "--report", page) == 0
    assert f"wrote {page}" in capsys.readouterr().out.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.count("<img ") == 2
    assert "<h2>an optimal schedule</h2>" in text
    assert "optsched ratio worst-list.json -p list --objective makespan" in text
    file = tmp_path / "worst-list.json"
    file.write_text(html.unescape(text[text.index("<pre>") + 5 : text.index("</pre>")]), encoding="utf-8")
    assert osd.simulate(osd.load(file), "list").value() > osd.solve(osd.load(file)).value
    assert "<script" not in text
    assert call("attack", "list", *ASKED, "--tries", "1", "--report", tmp_path / "attack.pdf") == 2
    assert ".html" in one_line(capsys)


def test_a_report_on_two_policies(tmp_path: Path) -> None:
    page = tmp_path / "attack.html"
    asked = ("--against", "sjf", "--gpus", "1", "--jobs", "3", "--tries", "30", "--workers", "1")
    assert call("attack", "fifo", *asked, "--report", page) == 0
    text = page.read_text(encoding="utf-8")
    assert "<h2>fifo</h2>" in text
    assert "<h2>sjf</h2>" in text


def test_a_policy_of_one_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "last_first.py").write_text(
        "from optsched.simulation.policy import Order\n\n\n"
        "class LastFirst:\n    name = 'last-first'\n    knowledge = 'clairvoyant'\n\n"
        "    def order(self, jobs):\n        return Order(key=-jobs.duration)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    asked = ("--objective", "total_completion_time", "--jobs", "3", "--gpus", "1", "--workers", "1", "--tries", "30")
    assert call("attack", "last_first:LastFirst", *asked, "--json") == 0
    assert json.loads(capsys.readouterr().out)["ratio"] > 1.5


def test_a_slip_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("attack", "lst") == 2
    assert "did you mean list" in one_line(capsys)
    assert call("attack", "list", "--space", "whole-jobs:gpus=x") == 2
    assert "an integer" in one_line(capsys)
