"""``MODULE:CLASS`` stands wherever the name of a policy may."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from optsched.errors import InputError
from optsched.policies.simulate import names_a_class, simulate, specify

MODULE = '''
from dataclasses import dataclass

import optsched as osd


@dataclass
class Narrow:
    """Narrowest first, or widest."""

    widest: bool = False
    name = "narrow"
    knowledge = "non-clairvoyant"

    def decide(self, view):
        sign = -1 if self.widest else 1
        for job in sorted(view.waiting, key=lambda j: (sign * view.gpus(j), view.arrival(j))):
            if view.fits(job):
                yield osd.Start(job)


class Needs:
    def __init__(self, number):
        self.number = number


ready = Narrow(widest=True)
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of somebody's own, not on the path of Python."""
    (tmp_path / "narrow_policies.py").write_text(MODULE)
    (tmp_path / "broken_policies.py").write_text("raise ValueError('no\\nluck')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    yield tmp_path
    for name in ("narrow_policies", "broken_policies"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("text", "widest", "placement"),
    [
        ("narrow_policies:Narrow", False, "count"),
        ("narrow_policies:Narrow:widest=true+consolidated", True, "consolidated"),
        ("narrow_policies:ready", True, "count"),
    ],
)
def test_a_class_of_a_module_is_a_policy(text: str, widest: bool, placement: str) -> None:
    made: Any = specify(text)
    assert (made.policy.widest, made.placement.name, made.text) == (widest, placement, text)
    assert simulate("rigid-06-1", text).policy == text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("nowhere:Policy", "module = 'nowhere': there is no such module (expected: a module of the current folder"),
        ("broken_policies:Policy", "module = 'broken_policies': cannot import it: ValueError: no luck"),
        ("narrow_policies:Narow", "policy = 'Narow': there is no 'Narow' in narrow_policies; did you mean Narrow?"),
        ("narrow_policies:Narrow:wide=1", "wide: unknown parameter of the policy Narrow; did you mean widest?"),
        ("narrow_policies:ready:widest=1", "policy = 'narrow_policies:ready:widest=1': it is made already"),
        ("narrow_policies:Needs", "policy = 'narrow_policies:Needs': cannot make it: TypeError"),
        ("pathlib:Path", "policy = "),
        ("fifo:Policy", "Policy: unknown parameter of the policy fifo"),
    ],
)
def test_what_is_none_is_one_line(text: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        specify(text)
    assert str(caught.value).startswith(what)
    assert "\n" not in str(caught.value)


def test_names_of_registered_policies_are_none() -> None:
    assert [names_a_class(text) for text in ("fifo", "fifo:skip=true", "a-srpt:tau", "x:y=1")] == [False] * 4
    assert names_a_class("package.module:Class:key=1")


def test_the_command_line_takes_it(command: Callable[..., Any]) -> None:
    done = command("ratio", "rigid-06-1", "-p", "narrow_policies:Narrow", "--json")
    assert (done.code, done.json["policies"][0]["policy"]) == (0, "narrow_policies:Narrow")
