"""What make would do in a fresh copy of the tree: a run is not made to wait for the tools of the tests."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("install")


def installed(tree: Path, goal: str, folder: Path) -> set[str]:
    """What ``make GOAL`` would install into the environment ``folder``."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    command = ["make", "-n", goal, f"VENV={folder}"]
    done = subprocess.run(command, cwd=tree, env=kept, capture_output=True, text=True, check=True)
    return set(re.findall(r"pip install [^']*-e '(.*?)'", done.stdout))


def test_a_run_needs_neither_tests_nor_tools(tree: Path, tmp_path: Path) -> None:
    assert installed(tree, "run", tmp_path) == {"."}
    assert installed(tree, "test", tmp_path) == {".[test,dev]"}
    assert installed(tree, "site", tmp_path) == {".[test,dev]", ".[docs]"}
    assert installed(tree, "clusters", tmp_path) == {".[test,dev]", ".[dask,ray]"}
    assert installed(tree, "extras", tmp_path) == {".[test,dev]", ".[docs,dask,ray]"}


def test_what_is_installed_for_the_tests_serves_a_run_but_not_the_other_way_round(tree: Path, tmp_path: Path) -> None:
    (tmp_path / ".installed-to-run").touch()
    assert installed(tree, "run", tmp_path) == set()
    assert installed(tree, "test", tmp_path) == {".[test,dev]"}
    (tmp_path / ".installed").touch()
    assert installed(tree, "test", tmp_path) == set()
    later = (
        tmp_path / ".installed"
    ).stat().st_mtime + 10  # clocks of file systems are coarse: now may be the same moment
    os.utime(tree / "pyproject.toml", (later, later))
    assert installed(tree, "run", tmp_path) == {"."}
