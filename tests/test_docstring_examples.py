"""Every public function has an example in its docstring, and the examples say what happens."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.problem.table import Table

pytestmark = pytest.mark.release

FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"{place.__name__}.{name}": getattr(place, name)
    for place in (osd, osd.plot)
    for name in place.__all__
    if inspect.isfunction(getattr(place, name))
}


def examples(thing: Any, name: str) -> doctest.DocTest:
    found = doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", {}, name, None, None)
    assert found.examples, f"{name} has no example"
    return found


def test_these_are_the_public_functions() -> None:
    assert len(FUNCTIONS) >= 18
    assert {"optsched.solve", "optsched.load", "optsched.plot.gantt"} <= set(FUNCTIONS)


@pytest.mark.parametrize(("name", "thing"), [*FUNCTIONS.items(), ("optsched", osd), ("Table", Table)])
def test_examples_run(name: str, thing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    if thing is osd.plot.interactive:
        pytest.importorskip("bokeh", reason="Bokeh is not installed")
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(examples(thing, name), out=said.append)
    assert runner.failures == 0, "".join(said)
