"""What the page "five minutes to a guarded ratio" says is done as it says, and comes out so."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import yaml
from pages.page import ROOT, Page
from pages.player import HERE

from optsched.check.properties import PROPERTIES
from optsched.regression.guarded_subject import guarded_subject
from optsched.regression.schedule_guard import guarded_schedules

pytestmark = pytest.mark.release

PAGE = Page(ROOT / "docs" / "guarded-ratios.md")


def shown(beginning: str) -> list[str]:
    (block,) = [each for each in PAGE.blocks if each.language == "text" and each.text.startswith(beginning)]
    return block.text.splitlines()


def test_its_project_does_what_it_says(bare: Callable[..., pytest.RunResult], pytester: pytest.Pytester) -> None:
    for block in PAGE.blocks:
        for here in HERE.finditer(block.text):
            (pytester.path / here[1]).write_text(here[3])
    bare("--ratio-update").assert_outcomes(passed=6)
    result = bare("test_ratios.py")
    result.assert_outcomes(passed=2)
    for line in shown("policy"):
        assert line in result.outlines
    policy = (pytester.path / "narrow_first.py").read_text()
    (pytester.path / "narrow_first.py").write_text(policy.replace("(view.gpus(j)", "(-view.gpus(j)"))
    result = bare("test_ratios.py")
    printed = [line.removeprefix("E").strip() for line in result.outlines]
    for line in shown("AssertionError"):
        assert line in printed


def test_its_example_of_a_broken_property_is_what_is_said() -> None:
    (line,) = shown("fifo:skip=true on known-schedules")
    with pytest.raises(AssertionError) as failed:
        guarded_schedules(guarded_subject("fifo:skip=true"), "known-schedules").hold("head-not-delayed")
    assert str(failed.value).splitlines()[0] == line
    named = re.findall(r"^\| `([a-z-]+)` \|", PAGE.text, re.MULTILINE)
    assert sorted(named) == PROPERTIES.names()


def test_its_workflow_calls_the_action() -> None:
    (block,) = [each for each in PAGE.blocks if each.language == "yaml"]
    workflow = yaml.safe_load(block.text)
    (job,) = workflow["jobs"].values()
    (call,) = [step for step in job["steps"] if step["uses"].startswith("optsched/optsched/")]
    place, _, version = call["uses"].removeprefix("optsched/optsched/").partition("@")
    action = yaml.safe_load((ROOT / place / "action.yml").read_text(encoding="utf-8"))
    assert version == "main"
    assert set(call["with"]) <= set(action["inputs"])
    assert (call["with"]["comment"], workflow["permissions"]["pull-requests"]) == ("true", "write")


def test_its_options_are_those_of_the_plugin(pytestconfig: pytest.Config) -> None:
    options = set(re.findall(r"--ratio-[a-z-]+", PAGE.text))
    assert len(options) > 4
    for each in options:
        pytestconfig.getoption(each)  # else ValueError
