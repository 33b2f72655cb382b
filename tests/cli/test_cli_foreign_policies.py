"""Policies of anybody on the command line: what they raise, print, leave undone or try to end is one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    (row,) = [line for line in found.out.splitlines() if "Lazy" in line and "│" in line][:1]
    assert {cell.strip() for cell in row.split("│")[2:6]} == {"-"}
    assert "6 jobs did not finish" in found.out
    assert "never fit" not in found.out
    assert "jobs did not finish: foreign_policies:Lazy (6)" in found.err

    found = command("run", "rigid-06-1", "-p", "fifo", "-p", f"{mine}:Lazy", "--json")
    lazy = found.json["runs"][1]
    assert found.code == 1
    assert [lazy["value"], lazy["ratio"], lazy["metrics"]["mean_jct"], lazy["metrics"]["gpu_hours"]["saved"]] == [
        None
    ] * 4

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
    assert found.code == 0
    assert found.json["runs"][0]["policy"].endswith("Prints")
    assert "hello" in found.err
