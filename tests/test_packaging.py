"""The formulations are a link, and importing is quick; what archives and installs hold is tested in tests/install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
