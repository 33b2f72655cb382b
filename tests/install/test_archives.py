"""The same modules and instances are in the tree, in the wheel, in the sdist and in every wheel made from another method."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from install.archives import PAGES, PLACES, ROOT, build, in_sdist, in_tree, in_wheel

pytestmark = [pytest.mark.release, pytest.mark.xdist_group("install")]  # the archives are made once


def test_one_process_makes_the_archives(request: pytest.FixtureRequest) -> None:
    # Where a version of pytest-xdist loses the groups, every process makes (and compiles) what one should, and says nothing.
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("the tests run in one process, or without groups")
    assert request.node.nodeid.endswith("@install")


def test_a_wheel_holds_the_tree(tree: Path, wheel: Path) -> None:
    names = in_wheel(wheel)
    assert names == in_tree(tree)
    # Said once by name, so that an empty tree would not do.
    assert {"optsched/models/time_indexed.py", "optsched/models/__init__.py", "optsched/_instances/index.csv"} <= names
    assert {"optsched/speeds/gavel_throughputs.csv", "optsched/py.typed"} <= names


def test_a_wheel_tells_pytest_of_its_plugin(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/entry_points.txt")]
        lines = archive.read(name).decode().split()
    assert lines[lines.index("[pytest11]") + 1 :][:3] == ["optsched", "=", "optsched.pytest_plugin"]


def test_an_sdist_holds_the_tree_and_each_file_once(tree: Path, sdist: Path) -> None:
    names = in_sdist(sdist)
    inside = {name: place for folder, place in PLACES.items() for name in names if name.startswith(f"{folder}/")}
    assert {place + name[name.index("/") :] for name, place in inside.items()} == in_tree(tree)
    assert names >= PAGES
    for folder in ("docs", "tests", "notebooks"):
        files = {file.relative_to(tree).as_posix() for file in (tree / folder).rglob("*") if file.is_file()}
        assert {name for name in names if name.startswith(f"{folder}/")} == files
        assert files


def test_a_wheel_from_the_sdist_is_the_wheel_from_the_tree(wheel: Path, unpacked: Path, tmp_path: Path) -> None:
    again = build("wheel", unpacked, tmp_path / "wheel")
    assert again.name == wheel.name
    assert in_wheel(again) == in_wheel(wheel)


def test_a_checkout_without_symbolic_links_makes_the_same_archives(
    wheel: Path, sdist: Path, without_links: Path, tmp_path: Path
) -> None:
    assert (without_links / "optsched" / "models").read_text() == "../models"
    assert in_wheel(build("wheel", without_links, tmp_path / "wheel")) == in_wheel(wheel)
    assert in_sdist(build("sdist", without_links, tmp_path / "sdist")) == in_sdist(sdist)


@pytest.mark.parametrize("way", ["tree", "without_links", "unpacked"])
def test_an_editable_install_copies_nothing(way: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    folder = request.getfixturevalue(way)
    wheel = build("editable", folder, tmp_path / "wheel")
    (name,) = in_wheel(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert Path(archive.read(name).decode().strip()) == folder


@pytest.mark.parametrize("way", ["tree", "without_links", "unpacked"])
def test_an_editable_install_finds_the_formulations(way: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    # What an editable install does is to put the top of the tree on the path.
    folder = request.getfixturevalue(way)
    code = (
        "import pkgutil, optsched, optsched.models.formulation as f;"
        "print(f.__file__, *(m.name for m in pkgutil.iter_modules(optsched.models.__path__)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(folder), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    file, *names = done.stdout.split()
    assert Path(file).resolve() == folder / "models" / "formulation.py"
    assert names == sorted(file.stem for file in (ROOT / "models").glob("*.py") if file.stem != "__init__")


def test_nothing_foreign_is_taken_for_the_formulations(tmp_path: Path) -> None:
    # Where models/ was lost on the way, another package of that name beside the installed one must not serve.
    package = tmp_path / "optsched"
    package.mkdir()
    (package / "__init__.py").write_text((ROOT / "optsched" / "__init__.py").read_text(encoding="utf-8"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", "import optsched.models"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'optsched.models'"
