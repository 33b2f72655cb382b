"""What the package says of itself: one version, dependencies and extras that code uses, entry points, pages that agree."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from sources import files, imported, one_process

import optsched
from install.archives import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def names(requirements: list[str]) -> set[str]:
    """Names of those that this version of Python needs."""
    needed = map(Requirement, requirements)
    return {each.name.lower() for each in needed if each.marker is None or each.marker.evaluate()}


@cache
def imported_distributions() -> set[str]:
    """The distributions that modules of the package import, anywhere in them."""
    tops = {name.partition(".")[0] for file in files() for name in imported(file)}
    where = packages_distributions()  # of what is installed: an extra may not be
    optional = {name for extra in EXTRAS.values() for name in names(extra)}
    unseen = {top: [top] for top in tops & optional}
    return {each.lower() for top in tops - {"optsched"} for each in where.get(top, unseen.get(top, []))}


@pytest.mark.release
@one_process
def test_every_dependency_is_imported_and_every_import_is_a_dependency() -> None:
    used = imported_distributions()
    assert names(PROJECT["dependencies"]) - used == set()
    optional = {name for extra in EXTRAS.values() for name in names(extra)}
    halves = {"pydantic_core"}  # of pydantic
    assert used - names(PROJECT["dependencies"]) - optional == halves


@pytest.mark.release
@one_process
def test_no_extra_is_declared_before_the_code_that_uses_it() -> None:
    # these are for people and for the checks; every other one is for code of the package
    tools = {"notebooks", "docs", "test", "dev"}
    imported = imported_distributions()
    for extra in EXTRAS.keys() - tools:
        assert names(EXTRAS[extra]) <= imported, extra
    assert set(re.findall(r"`(?:optsched)?\[(\w+)\]`", README)) == set(EXTRAS)
    assert list((ROOT / "notebooks").glob("*.ipynb"))


def test_the_formulations_are_a_relative_link() -> None:
    link = ROOT / "optsched" / "models"
    assert link.is_symlink()
    assert os.readlink(link) == "../models"


def test_entry_points_lead_somewhere() -> None:
    module, _, function = PROJECT["scripts"]["optsched"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert PROJECT["entry-points"] == {"pytest11": {"optsched": "optsched.pytest_plugin"}}
    assert callable(importlib.import_module("optsched.pytest_plugin").pytest_addoption)


@one_process
def test_nothing_but_the_plugin_needs_pytest() -> None:
    asked = [file.stem for file in files() if any(name.partition(".")[0] == "pytest" for name in imported(file))]
    assert asked == ["pytest_plugin"]


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    number = optsched.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+([ab.]\w+)?", number)
    assert f'"{number}"' not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert number not in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    said = [
        file.name for file in (ROOT / "optsched").rglob("*.py") if f'"{number}"' in file.read_text(encoding="utf-8")
    ]
    assert said == ["__init__.py"]


def test_the_command_and_the_module_say_the_same_version() -> None:
    for program in (["-m", "optsched", "--version"], ["-c", "import optsched as o; print(o.__name__, o.__version__)"]):
        done = subprocess.run([sys.executable, *program], capture_output=True, text=True, check=True)
        assert done.stdout == f"optsched {optsched.__version__}\n"
        assert done.stderr == ""


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    assert sections[0] == ("Unreleased", "")
    assert all(date for _, date in sections[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds
    for name, _ in sections:
        assert f"\n[{name}]: " in text, name


def test_tags_are_named_after_versions_and_the_changelog_links_to_them() -> None:
    rules = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"`git tag -a v(\S+) -m \"optsched (\S+)\"`", rules)
    assert "tag `vX.Y.Z`" in " ".join(rules.split())
    assert example[0] == example[1]
    assert re.fullmatch(r"\d+\.\d+\.\d+", example[0])
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name, link in re.findall(r"^\[(\d+\.\d+\.\d+)\]: (\S+)$", text, re.MULTILINE):
        assert link.endswith(f"v{name}")


def test_the_package_says_where_it_lives() -> None:
    assert {"Homepage", "Source", "Issues", "Changelog"} <= set(PROJECT["urls"])
    assert all(each.startswith(PROJECT["urls"]["Homepage"]) for each in PROJECT["urls"].values())


def test_every_link_to_the_project_starts_with_its_home_page() -> None:
    home = PROJECT["urls"]["Homepage"]
    host = home.rpartition("/")[0].rpartition("/")[0]
    linked = 0
    for file in [ROOT / "CITATION.cff", *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "docs" / "build.py"]:
        for owner, name in re.findall(re.escape(host) + r"/([\w.-]+)/([\w-]+)", file.read_text(encoding="utf-8")):
            linked += name == "optsched"
            assert name != "optsched" or f"{host}/{owner}/{name}" == home, file
    assert linked > 5


def test_the_pythons_that_are_promised_are_tested() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["unit"]["strategy"]["matrix"]
    promised = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    assert matrix["python"] == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"
    assert {each["os"] for each in matrix["include"]} == {"macos-latest", "windows-latest"}


def test_workflows_run_targets_that_make_knows_and_pin_their_actions() -> None:
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for file in (ROOT / ".github").rglob("*.yml"):
        text = file.read_text(encoding="utf-8")
        assert yaml.safe_load(text)
        assert set(re.findall(r"^ +run: make (\w+)$", text, re.MULTILINE)) <= targets
        for action in re.findall(r"uses: (?!\./)(\S+)", text):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), (file.name, action)  # a tag can be moved


def test_contributing_is_one_page() -> None:
    # what is set up, what is checked, and one example of each thing that is one new file
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for part in ("## Set-up and checks", "**A policy**", "**A bound**", "**A formulation**", "**A dialect**"):
        assert part in text
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(prose.splitlines()) <= 100


def test_the_citation_is_one() -> None:
    # The required keys and the types of Citation File Format 1.2.0; the licence and the address are the project's.
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0"
    assert all(isinstance(cited[key], str) for key in ("message", "title", "abstract", "type"))
    assert [author["name"] for author in cited["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert cited["license"] == PROJECT["license"]
    assert cited["repository-code"] == PROJECT["urls"]["Source"]
    assert "CITATION.cff" in README
