"""What a session writes for CI: JUnit properties, reports, a badge, the summary of a job, marks in a pull request."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pytest

from optsched.regression.ratio_report import annotation, badge, document, markdown, properties

pytestmark = pytest.mark.release

Session = Callable[..., pytest.RunResult]

MORE = """

def test_too_much(competitive_ratio):
    if True:
        competitive_ratio(Shortest(), suite="cases", objective="makespan").at_most(1)


def test_two(competitive_ratio):
    for policy in ("fifo", "sjf"):
        competitive_ratio(policy, suite="rigid-06-1").at_most(2)


def test_nobody(competitive_ratio):
    if True:
        competitive_ratio("nobody", suite="cases").at_most(1)
"""


def test_all_reports_of_a_session(project: pytest.Pytester, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = project.path / "test_ratios.py"
    tests.write_text(tests.read_text() + MORE)
    summary = project.path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    session("--ratio-update", "-k", "policy")
    summary.write_text("before\n")
    reports = ["--ratio-report=made/ratios.md", "--ratio-report=made/ratios.json", "--ratio-badge=made/badge.json"]
    result = session(*reports, "--junitxml=j.xml")
    result.assert_outcomes(passed=2, failed=3)

    table = (project.path / "made" / "ratios.md").read_text()
    assert summary.read_text() == "before\n" + table
    assert table.startswith("### Competitive ratios: 2 of 5 tests passed\n\n| result | policy | suite |")
    assert (
        "| passed | shortest | cases | total\\_completion\\_time | 1.1154 | optimum | cases/rigid-06-1.json |" in table
    )
    assert table.endswith("* test\\_ratios.py::test\\_nobody: failed before anything was measured\n")

    made = json.loads((project.path / "made" / "ratios.json").read_text())
    assert made["format"] == "optsched-ratio-report/1"
    assert made["not_measured"] == ["test_ratios.py::test_nobody"]
    (policy,) = [each for each in made["ratios"] if each["test"] == "test_ratios.py::test_policy"]
    assert (policy["worst"], policy["limit"], policy["baseline"]) == (pytest.approx(174 / 156), 2, 1.11538462)
    first = {"instance": "cases/rigid-06-1.json", "value": 174, "bound": 156, "ratio": policy["worst"]}
    assert policy["instances"][0].items() >= first.items()
    shown = json.loads((project.path / "made" / "badge.json").read_text())
    assert shown == {"schemaVersion": 1, "label": "competitive ratio", "message": "3.380 at worst", "color": "red"}

    cases = {each.get("name"): each for each in ET.parse(project.path / "j.xml").iter("testcase")}
    found = {each.get("name"): each.get("value") for each in cases["test_policy"].iter("property")}
    expected = {"policy": "shortest", "bound": "156.0", "value": "174.0", "limit": "2.0"}
    assert found.items() >= {**expected, "instance": "cases/rigid-06-1.json"}.items()
    assert float(found["ratio"] or 0) == pytest.approx(174 / 156)
    assert {"ratio", "ratio_2", "policy_2"} <= {each.get("name") for each in cases["test_two"].iter("property")}
    assert not list(cases["test_nobody"].iter("property"))

    marks = [line for line in result.outlines if line.startswith("::error ")]
    lines = [at for at, line in enumerate(tests.read_text().splitlines(), 1) if line.startswith("        comp")]
    here = f"::error file={project.path.name}/test_ratios.py,line="
    assert {each.removeprefix(here).partition(",")[0] for each in marks} == {"15", *map(str, (lines[0], lines[-1]))}
    assert len(marks) == 3
    assert any("title=test_ratios.py%3A%3Atest_too_much::" in each and "%0Ainstance cases/" in each for each in marks)


def test_a_report_that_cannot_be_written_is_one_line(project: pytest.Pytester, session: Session) -> None:
    (project.path / "a").touch()
    result = session("--ratio-update", "--ratio-report=a/b.md", "--ratio-report=c.json", "-k", "policy")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*a/b.md: cannot write: *"])
    assert (project.path / "c.json").exists()
    for option in ("--ratio-report=a.html", "--ratio-badge=a.svg"):
        result = session(option)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*: not the name of a file that ends with *"])


def record(worst: float | None, outcome: str = "passed", to: str = "optimum", **more: Any) -> dict[str, Any]:
    row = {"instance": "a|b", "value": 3.0, "bound": 2.0, "ratio": worst, "ratio_to": to if worst else None}
    common = {"test": "t.py::test_a", "policy": "<p>", "suite": "s", "objective": "makespan", "outcome": outcome}
    return {
        **common,
        "worst": worst,
        "worst_instance": "a|b" if worst else None,
        "mean": worst,
        "instances": [row],
        **more,
    }


def test_a_badge_is_green_when_all_is_well() -> None:
    assert json.loads(badge([record(1.5), record(1.25)]))["message"] == "1.500 at worst"
    told: list[tuple[Any, ...]] = [([record(1.5)],), ([record(1.5, "failed")],), ([record(1.5)], ["test_it"])]
    assert [json.loads(badge(*each))["color"] for each in told] == ["brightgreen", "red", "red"]
    assert json.loads(badge([])) == json.loads(badge([record(None)]))
    assert json.loads(badge([]))["color"] == "lightgrey"


def test_nothing_in_a_name_is_markdown() -> None:
    text = markdown([record(1.5, to="bound")], notes=["a\n* b"])
    assert "| &lt;p&gt; |" in text.replace(">", "&gt;")
    assert "a\\|b" in text
    assert "To a bound: the optimum is not proven" in text
    assert text.endswith("\n* a \\* b\n")
    assert markdown([]).endswith("No ratio was measured.\n")
    assert json.loads(document([record(None)]))["ratios"][0]["worst"] is None
    assert ("value", "3.0") in properties([record(None)])
    assert not [each for each in properties([record(None)]) if each[0] == "ratio"]


def test_an_annotation_is_one_line() -> None:
    line = annotation("error", "a,b.py", 3, "x: y", "50 %\nof it")
    assert line == "::error file=a%2Cb.py,line=3,title=x%3A y::50 %25%0Aof it"
