"""What is installed is what stands in the tree: formulations and instances travel with the package."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_the_formulations_are_a_relative_link() -> None:
    link = ROOT / "optsched" / "models"
    assert link.is_symlink()
    assert os.readlink(link) == "../models"


def test_import_is_quick() -> None:
    # `import optsched` must not pull in solvers, compilers or plotting.
    code = "import sys, optsched; print(sorted({'numba', 'pyomo', 'cvxpy', 'matplotlib', 'polars'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.study
def test_the_wheel_built_from_the_sdist_is_complete(tmp_path: Path) -> None:
    # Needs the package index: the build backend is fetched.
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    data = ("optsched/_instances/index.toml", "optsched/rates/gavel_throughputs.csv", "optsched/py.typed")
    for name in ("optsched/models/time_indexed.py", *data):
        assert name in names
