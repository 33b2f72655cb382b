"""The action in .github/: it is one, and its shell does what it says, with stand-ins for pip and GitHub."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages.page import ROOT

pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(sys.platform == "win32", reason="its shell is that of runners with Linux"),
]

ACTION = yaml.safe_load((ROOT / ".github" / "actions" / "ratios" / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
SHELL = {step["name"]: step for step in STEPS if "run" in step}


def environment(folder: Path, step: str, given: dict[str, str]) -> dict[str, str]:
    """What a step finds in its environment: its inputs, those given or the default ones, and what a runner sets."""
    known = {f"inputs.{name}": each["default"] for name, each in ACTION["inputs"].items()} | given
    found = {key: re.sub(r"\$\{\{ (\S+) }}", lambda at: known[at[1]], text) for key, text in SHELL[step]["env"].items()}
    (folder / "bin").mkdir(exist_ok=True)
    common = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "GITHUB_REPOSITORY": "o/r"}
    return {
        **common,
        "GITHUB_ACTION_PATH": "/a/.github/actions/ratios",
        "GITHUB_OUTPUT": str(folder / "output"),
        **found,
    }


def stand_in(folder: Path, name: str, script: str) -> None:
    """A program of that name, found before all others."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def done(folder: Path, step: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does."""
    given = {key.replace("__", "."): value for key, value in more.items() if key[0].islower()}
    env = environment(folder, step, given) | {key: value for key, value in more.items() if key[0].isupper()}
    script = folder / "step.sh"
    script.write_text(SHELL[step]["run"])
    line = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    return subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_it_is_a_composite_action() -> None:
    assert ACTION["runs"]["using"] == "composite"
    text = json.dumps(STEPS) + json.dumps(ACTION["outputs"])
    for name, each in ACTION["inputs"].items():
        assert each["description"]
        assert f"inputs.{name}" in text
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    assert set(re.findall(r"steps\.(\w+)", text)) <= {step.get("id") for step in STEPS}
    for step in STEPS:
        assert ("uses" in step) != ("run" in step)
        if "run" in step:  # an input is data, and no part of a program
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]
            checked = subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True, check=False)
            assert (checked.returncode, checked.stderr) == (0, "")


def test_it_installs_its_own_version_or_another(tmp_path: Path) -> None:
    stand_in(tmp_path, "python", 'printf "%s|" "$@" >> called; echo >> called')
    assert done(tmp_path, "Install").returncode == 0
    assert done(tmp_path, "Install", inputs__optsched="optsched==1", inputs__install="-r a.txt * .").returncode == 0
    assert (tmp_path / "called").read_text().splitlines() == [
        "-m|pip|install|pytest|/a/.github/actions/ratios/../../..|",
        "-m|pip|install|pytest|optsched==1|",
        "-m|pip|install|-r|a.txt|*|.|",
    ]
    assert (ROOT / ".github" / "actions" / "ratios" / ".." / ".." / ".." / "pyproject.toml").is_file()


TEST = """
def test_a(competitive_ratio):
    competitive_ratio("fifo", suite="rigid-06-1").at_most(2)


def test_b(competitive_ratio):
    competitive_ratio("sjf", suite="rigid-06-1").at_most(1)
"""


def test_it_measures_and_reports_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    stand_in(tmp_path, "python", f'exec {shlex.quote(sys.executable)} "$@"')
    plugin = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p optsched.pytest_plugin -p no:cacheprovider"}
    runner = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "PYTHONPATH": str(ROOT)}
    result = done(tmp_path, "Measure", inputs__arguments='-k "a or b"', **plugin, **runner)
    assert result.returncode == 1, result.stderr
    assert "::error file=" in result.stdout
    made = tmp_path / "ratio-reports"
    assert {file.name for file in made.iterdir()} == {"ratios.md", "ratios.json", "badge.json", "junit.xml"}
    assert (tmp_path / "summary").read_text() == (made / "ratios.md").read_text()
    assert done(tmp_path, "Worst ratio").returncode == 0
    (line,) = (tmp_path / "output").read_text().splitlines()
    assert line.startswith("worst=1.31")
    assert done(tmp_path, "Worst ratio", inputs__reports="none").returncode == 0


@pytest.mark.parametrize(
    ("known", "method", "place"), [("", "POST", "issues/7/comments"), ("12", "PATCH", "comments/12")]
)
def test_it_writes_one_comment_and_renews_it(tmp_path: Path, known: str, method: str, place: str) -> None:
    (tmp_path / "ratio-reports").mkdir()
    (tmp_path / "ratio-reports" / "ratios.md").write_text("table\n")
    answers = f'if [ "$2" = --paginate ]; then echo {known}; else printf "%s|" "$@" > called; fi'
    stand_in(tmp_path, "gh", answers)
    result = done(tmp_path, "Comment", github__event__pull_request__number="7", github__token="t")
    assert result.returncode == 0, result.stderr
    called = (tmp_path / "called").read_text().split("|")
    assert called[:4] == ["api", "--silent", "--method", method]
    assert called[4].endswith(place)
    assert called[5:7] == ["--field", "body=@ratio-reports/comment.md"]
    written = (tmp_path / "ratio-reports" / "comment.md").read_text()
    assert re.fullmatch(r"<!-- .* -->\ntable\n", written)
