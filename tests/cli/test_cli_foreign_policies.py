"""Policies of anybody on the command line, and ``attack``."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import optsched as osd

# -- Policies of anybody on the command line: what they raise, print, leave undone or try to end is one line --------------


pytestmark = pytest.mark.release

POLICIES = """
import sys

import optsched as osd


class Base:
    knowledge = "clairvoyant"

    def decide(self, view):
        self.act(view)
        return [osd.Start(job) for job in view.waiting if view.fits(job)][:1]

    def act(self, view):
        pass


class Lazy(Base):
    name = "lazy"

    def decide(self, view):
        return []


class Exits(Base):
    name = "exits"

    def act(self, view):
        if view.now > 0:
            sys.exit()


class Fails(Base):
    name = "fails"

    def act(self, view):
        return [][1 if view.now > 0 else slice(0)]


class Begins(Base):
    name = "begins"

    def begin(self, view):
        raise ValueError("not\\x1b[2J today")


class Prints(Base):
    name = "prints"

    def act(self, view):
        print("hello")


class Curious(Base):
    name, knowledge = "curious", osd.Knowledge.NON_CLAIRVOYANT

    def act(self, view):
        view.duration(view.waiting[0])
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "foreign_policies.py").write_text(POLICIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "foreign_policies", raising=False)
    return "foreign_policies"


def test_a_policy_that_starts_nothing_is_not_the_best(command: Callable[..., Any], mine: str) -> None:
    found = command("run", "rigid-06-1", "-p", "fifo", "-p", f"{mine}:Lazy")
    assert found.code == 1
    (row,) = [line for line in found.out.splitlines() if "foreign" in line and "│" in line][:1]
    assert {cell.strip() for cell in row.split("│")[3:6]} == {"-"}
    assert "6 jobs did not finish" in found.out
    assert "never fit" not in found.out
    assert "jobs did not finish: foreign_policies:Lazy (6)" in found.err

    found = command("run", "rigid-06-1", "-p", "fifo", "-p", f"{mine}:Lazy", "--json")
    lazy = found.json["runs"][1]
    assert found.code == 1
    assert lazy["value"] is lazy["ratio"] is lazy["metrics"]["mean_jct"] is None
    assert lazy["metrics"]["gpu_hours"]["queued_avoided"] is None

    found = command("ratio", "rigid-06-1", "-p", "fifo", "-p", f"{mine}:Lazy")
    assert found.code == 1
    assert "no ratio, jobs did not finish: foreign_policies:Lazy" in found.err
    assert "fifo" in found.out


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("Exits", "policy exits at 1 s: SystemExit: a policy may not end the program"),
        ("Fails", "policy fails at 1 s: IndexError: list index out of range"),
        ("Begins", r"policy begins at 0 s: ValueError: not\x1b[2J today"),
        ("Curious", "policy curious at 0 s: "),
    ],
)
def test_what_a_policy_raises_is_one_line(command: Callable[..., Any], mine: str, policy: str, said: str) -> None:
    found = command("run", "rigid-06-1", "-p", f"{mine}:{policy}")
    assert (found.code, found.out) == (1, "")
    assert found.err.startswith(f"optsched: {said}")
    assert found.err.count("\n") == 1


def test_the_traceback_is_there_for_who_asks(mine: str) -> None:
    from optsched.cli import main

    with pytest.raises(IndexError) as caught:
        main(["--debug", "run", "rigid-06-1", "-p", f"{mine}:Fails"])
    assert caught.traceback[-1].name == "act"


def test_what_a_policy_prints_does_not_get_into_a_document(command: Callable[..., Any], mine: str) -> None:
    found = command("run", "rigid-06-1", "-p", f"{mine}:Prints", "--json")
    assert found.document["runs"][0]["policy"].endswith("Prints")
    assert "hello" in found.err


# -- ``attack`` on the command line ---------------------------------------------------------------------------------------


ASKED = ("--objective", "makespan", "--space", "whole-jobs:arrivals=false,gangs=false", "--workers", "1")


def test_it_prints_and_writes_what_it_found(tmp_path: Path, command: Any) -> None:
    file = tmp_path / "worst.json"
    out = command("attack", "list", *ASKED, "--tries", "150", "-o", file).shown
    assert "list: 1.5 = 3/2 times the optimum (makespan 3 against 2)" in out
    assert "it is blocked-long-job:m=2, whose ratio is 1.5" in out
    instance = osd.load(file)
    assert osd.simulate(instance, "list").value() == 3
    assert osd.solve(instance).value == 2


def test_json_says_all_of_it(command: Any) -> None:
    found = command("attack", "list", *ASKED, "--tries", "150", "--json").document
    assert (found["ratio"], found["ratio_exact"], found["ratio_to"], found["tries"]) == (1.5, "3/2", "optimum", 150)
    assert found["guarantees"][0]["id"] == "graham-list"
    assert found["instance"]["format"] == "optsched-instance/1"


def test_a_proof_says_of_what(command: Any) -> None:
    range_of = ("--jobs", "2", "--space", "whole-jobs:longest=3,latest=3")
    found = command("attack", "sjf", "--method", "milp", *range_of, "--json").document
    assert (found["proved_jobs"], found["method"]) == (2, "milp")
    assert found["space"] == "whole-jobs:jobs=2,gpus=1,weights=false,longest=3,latest=3"
    assert "latest=3 is worse: proved by HiGHS" in command("attack", "sjf", "--method", "milp", *range_of).words
    early = command("attack", "sjf", "--method", "milp", "--budget", "0.0001").words
    assert "the budget ended before anything was proved" in early


def test_a_report_shows_both_schedules_and_the_file(tmp_path: Path, command: Any) -> None:
    page = tmp_path / "attack.html"
    shown = command("attack", "list", *ASKED, "--tries", "60", "--report", page).shown
    assert f"wrote {page}" in shown.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.count('role="img"') == 2
    assert "<figcaption>an optimal schedule</figcaption>" in text
    assert "optsched ratio worst-list.json -p list --objective makespan" in text
    file = tmp_path / "worst-list.json"
    (shown_file,) = re.findall(r"<pre[^>]*>(\{.*?)</pre>", text, re.DOTALL)
    file.write_text(html.unescape(shown_file), encoding="utf-8")
    assert osd.simulate(osd.load(file), "list").value() > osd.solve(osd.load(file)).value
    assert text.count("<script") == 1
    assert ".html" in command("attack", "list", *ASKED, "--tries", "1", "--report", tmp_path / "attack.pdf").mistake


def test_a_report_on_two_policies(command: Any, tmp_path: Path) -> None:
    page = tmp_path / "attack.html"
    asked = ("--against", "sjf", "--gpus", "1", "--jobs", "3", "--tries", "30", "--workers", "1")
    assert command("attack", "fifo", *asked, "--report", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "<figcaption>fifo</figcaption>" in text
    assert "<figcaption>sjf</figcaption>" in text


def test_a_policy_of_one_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    (tmp_path / "last_first.py").write_text(
        "from optsched.simulation.policy import Order\n\n\n"
        "class LastFirst:\n    name = 'last-first'\n    knowledge = 'clairvoyant'\n\n"
        "    def order(self, jobs):\n        return Order(key=-jobs.duration)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    asked = ("--objective", "total_completion_time", "--jobs", "3", "--gpus", "1", "--workers", "1", "--tries", "30")
    assert command("attack", "last_first:LastFirst", *asked, "--json").document["ratio"] > 1.5


def test_a_slip_is_one_line(command: Any) -> None:
    assert "did you mean list" in command("attack", "lst").mistake
    assert "an integer" in command("attack", "list", "--space", "whole-jobs:gpus=x").mistake
