"""The formulations are a link, entry points lead somewhere; what archives and installs hold is tested in tests/install."""

from __future__ import annotations

import importlib
import os
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_formulations_are_a_relative_link() -> None:
    link = ROOT / "optsched" / "models"
    assert link.is_symlink()
    assert os.readlink(link) == "../models"


def test_entry_points_lead_somewhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["optsched"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert project["entry-points"] == {"pytest11": {"optsched": "optsched.pytest_plugin"}}
    assert callable(importlib.import_module("optsched.pytest_plugin").pytest_addoption)


def test_nothing_but_the_plugin_needs_pytest() -> None:
    asked = [
        file.stem for file in (ROOT / "optsched").rglob("*.py") if "import pytest" in file.read_text(encoding="utf-8")
    ]
    assert asked == ["pytest_plugin"]
